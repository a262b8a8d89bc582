// SPDX-License-Identifier: Apache-2.0
#include "control/exports/owners.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace sluice::exports {
namespace {

constexpr size_t kAccountTextMax = 1U << 20;  // a group lists its members

// `look_up(text, bytes)`: one of the functions of getpwnam(3), an errno; again with more room, if it wants
// it.
void with_room(const auto& look_up) {
  std::vector<char> text(4096);
  while (look_up(text.data(), text.size()) == ERANGE && text.size() < kAccountTextMax)
    text.resize(4 * text.size());
}

// A longer one does not travel.
std::string bounded(const char* name) {
  std::string text = name;
  return text.size() <= catalog::kAccountBytesMax ? text : std::string();
}

}  // namespace

const std::string& Accounts::user_name(uint32_t uid) {
  const auto [known, is_new] = user_names_.emplace(uid, "");
  std::string& name = known->second;
  if (!is_new) return name;
  with_room([&](char* text, size_t bytes) {
    passwd entry{};
    passwd* found = nullptr;
    const int reason = ::getpwuid_r(uid, &entry, text, bytes, &found);
    if (found != nullptr) name = bounded(found->pw_name);
    return reason;
  });
  return name;
}

const std::string& Accounts::group_name(uint32_t gid) {
  const auto [known, is_new] = group_names_.emplace(gid, "");
  std::string& name = known->second;
  if (!is_new) return name;
  with_room([&](char* text, size_t bytes) {
    struct group entry {};
    struct group* found = nullptr;
    const int reason = ::getgrgid_r(gid, &entry, text, bytes, &found);
    if (found != nullptr) name = bounded(found->gr_name);
    return reason;
  });
  return name;
}

uint32_t Accounts::user(const std::string& name, uint32_t otherwise) {
  if (name.empty() || otherwise == 0) return otherwise;
  const auto [known, is_new] = users_.emplace(name, std::nullopt);
  std::optional<uint32_t>& id = known->second;
  if (is_new) {
    with_room([&](char* text, size_t bytes) {
      passwd entry{};
      passwd* found = nullptr;
      const int reason = ::getpwnam_r(name.c_str(), &entry, text, bytes, &found);
      if (found != nullptr) id = found->pw_uid;
      return reason;
    });
  }
  return id.value_or(otherwise);
}

uint32_t Accounts::group(const std::string& name, uint32_t otherwise) {
  if (name.empty() || otherwise == 0) return otherwise;
  const auto [known, is_new] = groups_.emplace(name, std::nullopt);
  std::optional<uint32_t>& id = known->second;
  if (is_new) {
    with_room([&](char* text, size_t bytes) {
      struct group entry {};
      struct group* found = nullptr;
      const int reason = ::getgrnam_r(name.c_str(), &entry, text, bytes, &found);
      if (found != nullptr) id = found->gr_gid;
      return reason;
    });
  }
  return id.value_or(otherwise);
}

catalog::Attributes Accounts::attributes(uint32_t uid, uint32_t gid, const catalog::Keep& keep) {
  catalog::Attributes found;
  if (keep.owner) found.uid = uid;
  if (keep.group) found.gid = gid;
  if (keep.numeric_ids) return found;
  if (keep.owner && uid != 0) found.user = user_name(uid);
  if (keep.group && gid != 0) found.group = group_name(gid);
  return found;
}

int Accounts::give(int fd, const catalog::Attributes& attributes, const char* name) {
  if (!attributes.uid && !attributes.gid) return 0;
  const uid_t uid = attributes.uid ? user(attributes.user, *attributes.uid) : static_cast<uid_t>(-1);
  const gid_t gid = attributes.gid ? group(attributes.group, *attributes.gid) : static_cast<gid_t>(-1);
  const int done =
      name == nullptr ? ::fchown(fd, uid, gid) : ::fchownat(fd, name, uid, gid, AT_SYMLINK_NOFOLLOW);
  // A number that has no place in this user namespace is as one that may not be given.
  return done == 0 ? 0 : errno == EINVAL ? EPERM : errno;
}

bool may_give_away() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, data) != 0) return false;
  constexpr uint32_t kNeeded = (1U << CAP_CHOWN) | (1U << CAP_FOWNER);
  return (data[0].effective & kNeeded) == kNeeded;
}

}  // namespace sluice::exports
