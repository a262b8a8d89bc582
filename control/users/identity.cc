// SPDX-License-Identifier: Apache-2.0
#include "control/users/identity.h"

#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace sluice::users {
namespace {

constexpr size_t kBytesMax = 16U << 20;  // of a group with very many members
constexpr int kGroupsMax = 65536;        // NGROUPS_MAX

Error configuration(std::string message) { return {ErrorCode::kConfiguration, std::move(message)}; }

struct User {
  std::string name;
  gid_t gid = 0;
};

std::optional<User> user_of(uid_t uid) {
  struct passwd entry {};
  struct passwd* found = nullptr;
  std::vector<char> memory(4096);
  int error = 0;
  while ((error = ::getpwuid_r(uid, &entry, memory.data(), memory.size(), &found)) == ERANGE &&
         memory.size() < kBytesMax)
    memory.resize(memory.size() * 2);
  if (error != 0 || found == nullptr) return std::nullopt;
  return User{.name = found->pw_name, .gid = found->pw_gid};
}

std::optional<gid_t> group_of(const std::string& name) {
  struct group entry {};
  struct group* found = nullptr;
  std::vector<char> memory(4096);
  int error = 0;
  while ((error = ::getgrnam_r(name.c_str(), &entry, memory.data(), memory.size(), &found)) == ERANGE &&
         memory.size() < kBytesMax)
    memory.resize(memory.size() * 2);
  if (error != 0 || found == nullptr) return std::nullopt;
  return found->gr_gid;
}

std::vector<gid_t> groups_of(const User& user) {
  std::vector<gid_t> groups(64);
  int count = static_cast<int>(groups.size());
  while (::getgrouplist(user.name.c_str(), user.gid, groups.data(), &count) < 0 && count <= kGroupsMax) {
    groups.resize(std::max(static_cast<size_t>(count), groups.size() * 2));
    count = static_cast<int>(groups.size());
  }
  groups.resize(static_cast<size_t>(std::clamp(count, 0, static_cast<int>(groups.size()))));
  return groups;
}

Status refused(const char* what) {
  return Error{ErrorCode::kDevice, std::string("cannot ") + what + ": " + std::strerror(errno) +
                                       "; sluice-users needs CAP_SETUID and CAP_SETGID, and nothing else"};
}

bool has_capabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, sets) != 0) return true;
  return std::any_of(std::begin(sets), std::end(sets), [](const __user_cap_data_struct& set) {
    return (set.effective | set.permitted | set.inheritable) != 0;
  });
}

// That all of it is so, as the kernel tells.
bool is(const Account& account) {
  uid_t uids[3] = {};
  gid_t gids[3] = {};
  if (::getresuid(&uids[0], &uids[1], &uids[2]) != 0 || ::getresgid(&gids[0], &gids[1], &gids[2]) != 0)
    return false;
  if (std::any_of(std::begin(uids), std::end(uids), [&](uid_t id) { return id != account.uid; }) ||
      std::any_of(std::begin(gids), std::end(gids), [&](gid_t id) { return id != account.gid; }))
    return false;
  std::vector<gid_t> groups(static_cast<size_t>(std::max(0, ::getgroups(0, nullptr))));
  if (::getgroups(static_cast<int>(groups.size()), groups.data()) != static_cast<int>(groups.size()))
    return false;
  std::vector<gid_t> wanted = account.groups;
  for (std::vector<gid_t>* list : {&groups, &wanted}) {
    std::ranges::sort(*list);
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return groups == wanted && !has_capabilities() && ::setresuid(0, 0, 0) != 0;
}

}  // namespace

Result<Account> member(uid_t uid, const std::string& group, uid_t uid_min) {
  const std::string shown = "user " + std::to_string(uid);
  if (uid == 0)
    return configuration("root sends and gets as an operator of this node: nothing is opened as root");
  if (uid < uid_min)
    return configuration(shown + " is below [control] users_uid_min = " + std::to_string(uid_min) +
                         ": accounts of the system send and get nothing as themselves");
  const std::optional<User> user = user_of(uid);
  if (!user) return configuration(shown + ": this host knows no such user");
  const std::optional<gid_t> wanted = group_of(group);
  if (!wanted) return configuration("[control] users_group = \"" + group + "\": there is no such group");
  Account account{.name = user->name, .uid = uid, .gid = user->gid, .groups = groups_of(*user)};
  if (std::ranges::find(account.groups, *wanted) != account.groups.end()) return account;
  return configuration("user " + user->name + " is no member of group " + group +
                       " ([control] users_group), as the host's files say: add him with 'usermod -aG " +
                       group + " " + user->name + "'");
}

std::string name_of(uid_t uid) {
  const std::optional<User> user = user_of(uid);
  return user ? user->name : std::to_string(uid);
}

Status become(const Account& account) {
  if (account.uid == 0) return refused("be root");
  if (::setgroups(account.groups.size(), account.groups.data()) != 0) return refused("take his groups");
  if (::setresgid(account.gid, account.gid, account.gid) != 0) return refused("take his group");
  ::prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0);
  if (::setresuid(account.uid, account.uid, account.uid) != 0) return refused("become him");
  // Whoever was no root before keeps what he had.
  ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capset, &header, none) != 0) return refused("give up its capabilities");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return refused("give up new privileges");
  if (::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return refused("keep others from tracing it");
  errno = EPERM;
  return is(account) ? Status() : refused("become him whole");
}

}  // namespace sluice::users
