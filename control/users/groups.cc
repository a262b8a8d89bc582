// SPDX-License-Identifier: Apache-2.0
#include "control/users/groups.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace sluice::users {
namespace {

constexpr size_t kEntryBytesMax = 16U << 20;  // of a group with very many members
constexpr int kMembershipsMax = 65536;        // NGROUPS_MAX

// `ask(memory, size)` fills one of the system's structures; ERANGE: it wants more memory.
template <typename Ask>
bool ask_with_room(std::vector<char>& memory, Ask ask) {
  memory.resize(4096);
  int error = 0;
  while ((error = ask(memory.data(), memory.size())) == ERANGE && memory.size() < kEntryBytesMax)
    memory.resize(memory.size() * 2);
  return error == 0;
}

}  // namespace

Result<uid_t> uid_of(const std::string& name) {
  struct passwd entry {};
  struct passwd* found = nullptr;
  std::vector<char> memory;
  const bool asked = ask_with_room(
      memory, [&](char* at, size_t size) { return ::getpwnam_r(name.c_str(), &entry, at, size, &found); });
  if (asked && found != nullptr) return found->pw_uid;
  return Error{ErrorCode::kConfiguration,
               "this host has no user " + name + "; make it with: useradd --system " + name};
}

bool is_member(uid_t uid, const std::string& group) {
  struct passwd user {};
  struct passwd* known = nullptr;
  std::vector<char> memory;
  if (!ask_with_room(memory,
                     [&](char* at, size_t size) { return ::getpwuid_r(uid, &user, at, size, &known); }) ||
      known == nullptr)
    return false;
  struct group wanted {};
  struct group* there = nullptr;
  std::vector<char> more;
  if (!ask_with_room(
          more,
          [&](char* at, size_t size) { return ::getgrnam_r(group.c_str(), &wanted, at, size, &there); }) ||
      there == nullptr)
    return false;
  std::vector<gid_t> all(64);
  int count = static_cast<int>(all.size());
  while (::getgrouplist(user.pw_name, user.pw_gid, all.data(), &count) < 0 && count <= kMembershipsMax) {
    all.resize(std::max(static_cast<size_t>(count), all.size() * 2));
    count = static_cast<int>(all.size());
  }
  all.resize(static_cast<size_t>(std::clamp(count, 0, static_cast<int>(all.size()))));
  return std::ranges::find(all, wanted.gr_gid) != all.end();
}

}  // namespace sluice::users
