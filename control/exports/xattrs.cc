// SPDX-License-Identifier: Apache-2.0
#include "control/exports/xattrs.h"

#include <linux/limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <set>
#include <vector>

#include "control/exports/beneath.h"
#include "control/exports/tree_walk.h"
#include "dataplane/base/check.h"

namespace sluice::exports {
namespace {

using catalog::Acl;
using catalog::AclEntry;
using catalog::Failure;

constexpr const char* kAccessAcl = "system.posix_acl_access";
constexpr const char* kDefaultAcl = "system.posix_acl_default";
constexpr uint32_t kAclVersion = 2;
constexpr size_t kAclHeadBytes = 4;
constexpr size_t kAclEntryBytes = 8;
constexpr uint32_t kNoId = UINT32_MAX;

// A file system without them has none.
bool has_none(int reason) { return reason == EOPNOTSUPP || reason == ENODATA; }

// Least byte first, as it stands on disks whatever the processor.
void put_number(uint32_t number, size_t bytes, std::string* to) {
  for (size_t i = 0; i < bytes; ++i) to->push_back(static_cast<char>(number >> (8 * i)));
}
uint32_t number_at(std::string_view text, size_t at, size_t bytes) {
  uint32_t number = 0;
  for (size_t i = 0; i < bytes; ++i) number |= uint32_t{static_cast<uint8_t>(text[at + i])} << (8 * i);
  return number;
}

// Those of users, sorted; an errno.
int names_of(int fd, std::vector<std::string>* names) {
  std::array<char, XATTR_LIST_MAX>
      list;  // NOLINT(cppcoreguidelines-pro-type-member-init): 64 KiB, for each name
  const ssize_t bytes = ::flistxattr(fd, list.data(), list.size());
  if (bytes < 0) return has_none(errno) ? 0 : errno;
  std::string_view left(list.data(), static_cast<size_t>(bytes));
  while (!left.empty()) {
    const std::string_view name = left.substr(0, left.find('\0'));
    if (name.starts_with(catalog::kXattrPrefix)) names->emplace_back(name);
    left.remove_prefix(std::min(left.size(), name.size() + 1));
  }
  std::sort(names->begin(), names->end());
  return 0;
}

// Nothing: there is none. An errno.
int value_of(int fd, const char* name, std::optional<std::string>* value) {
  std::array<char, XATTR_SIZE_MAX> text;  // NOLINT(cppcoreguidelines-pro-type-member-init): as above
  const ssize_t bytes = ::fgetxattr(fd, name, text.data(), text.size());
  if (bytes < 0) return has_none(errno) ? 0 : errno;
  value->emplace(text.data(), static_cast<size_t>(bytes));
  return 0;
}

Failure failure_of(int reason) {
  return reason == E2BIG || reason == ERANGE ? Failure::kAttributesTooLarge : read_failure(reason);
}

Failure read_acl(int fd, const char* name, bool numeric, Accounts& accounts, Acl* into) {
  std::optional<std::string> bytes;
  if (const int reason = value_of(fd, name, &bytes); reason != 0) return failure_of(reason);
  if (!bytes) return Failure::kNone;
  std::optional<Acl> acl = acl_of_bytes(*bytes);
  if (!acl) return Failure::kUnreadable;
  for (AclEntry& entry : *acl) {
    if (numeric || entry.id == 0) continue;
    if (entry.tag == catalog::acl_tag::kUser) entry.name = accounts.user_name(entry.id);
    if (entry.tag == catalog::acl_tag::kGroup) entry.name = accounts.group_name(entry.id);
  }
  *into = std::move(*acl);
  return Failure::kNone;
}

bool may_be_touched(const std::string& name) {
  return name.starts_with(catalog::kXattrPrefix) || name == kAccessAcl || name == kDefaultAcl;
}

// A directory that is there may be one that its own owner may not write to.
int set(int fd, const std::string& name, const std::string& value) {
  DCHECK(may_be_touched(name), "what else there is means something to the system");
  if (::fsetxattr(fd, name.c_str(), value.data(), value.size(), 0) == 0) return 0;
  struct stat info {};
  if (errno != EACCES || ::fstat(fd, &info) != 0 || ::fchmod(fd, (info.st_mode & 07777) | S_IWUSR) != 0)
    return errno;
  return ::fsetxattr(fd, name.c_str(), value.data(), value.size(), 0) == 0 ? 0 : errno;
}
int remove(int fd, const std::string& name) {
  DCHECK(may_be_touched(name), "what else there is means something to the system");
  return ::fremovexattr(fd, name.c_str()) == 0 || has_none(errno) ? 0 : errno;
}

Refused give_xattrs(int fd, const std::vector<catalog::Xattr>& xattrs) {
  std::vector<std::string> there;
  if (const int reason = names_of(fd, &there); reason != 0) return {reason, "its extended attributes"};
  std::set<std::string, std::less<>> wanted;
  for (const catalog::Xattr& each : xattrs) {
    wanted.insert(each.name);
    if (const int reason = set(fd, each.name, each.value); reason != 0)
      return {reason, "its extended attribute " + printable(each.name)};
  }
  for (const std::string& name : there) {
    if (wanted.contains(name)) continue;
    if (const int reason = remove(fd, name); reason != 0)
      return {reason, "its extended attributes without " + printable(name)};
  }
  return {};
}

// A new name may have one of the directory that it was made in.
int give_acl(int fd, const char* name, const Acl& acl, Accounts& accounts) {
  if (acl.empty()) return remove(fd, name);
  Acl here = acl;
  for (AclEntry& entry : here) {
    if (entry.tag == catalog::acl_tag::kUser) entry.id = accounts.user(entry.name, entry.id);
    if (entry.tag == catalog::acl_tag::kGroup) entry.id = accounts.group(entry.name, entry.id);
  }
  DCHECK(acl_of_bytes(bytes_of_acl(here)), "an ACL that was checked is one in bytes, too");
  return set(fd, name, bytes_of_acl(here));
}

}  // namespace

std::optional<Acl> acl_of_bytes(std::string_view bytes) {
  if (bytes.size() < kAclHeadBytes || number_at(bytes, 0, 4) != kAclVersion ||
      (bytes.size() - kAclHeadBytes) % kAclEntryBytes != 0)
    return std::nullopt;
  Acl acl;
  for (size_t at = kAclHeadBytes; at < bytes.size(); at += kAclEntryBytes) {
    const uint32_t id = number_at(bytes, at + 4, 4);
    acl.push_back(
        {.tag = number_at(bytes, at, 2), .perm = number_at(bytes, at + 2, 2), .id = id, .name = {}});
    const bool of_account =
        acl.back().tag == catalog::acl_tag::kUser || acl.back().tag == catalog::acl_tag::kGroup;
    if (!of_account) acl.back().id = 0;
  }
  return catalog::good_acl(acl) ? std::optional(acl) : std::nullopt;
}

std::string bytes_of_acl(const Acl& acl) {
  std::string bytes;
  put_number(kAclVersion, 4, &bytes);
  for (const AclEntry& entry : acl) {
    const bool of_account = entry.tag == catalog::acl_tag::kUser || entry.tag == catalog::acl_tag::kGroup;
    put_number(entry.tag, 2, &bytes);
    put_number(entry.perm, 2, &bytes);
    put_number(of_account ? entry.id : kNoId, 4, &bytes);
  }
  return bytes;
}

Failure read_kept(int fd, bool is_directory, const catalog::Keep& keep, Accounts& accounts,
                  catalog::Attributes* into) {
  std::vector<std::string> names;
  if (keep.xattrs) {
    if (const int reason = names_of(fd, &names); reason != 0) return failure_of(reason);
  }
  for (std::string& name : names) {
    std::optional<std::string> value;
    if (const int reason = value_of(fd, name.c_str(), &value); reason != 0) return failure_of(reason);
    if (value) into->xattrs.push_back({.name = std::move(name), .value = std::move(*value)});
    if (into->kept_bytes() > catalog::kKeptBytesMax) return Failure::kAttributesTooLarge;
  }
  if (!keep.acls) return Failure::kNone;
  Failure failure = read_acl(fd, kAccessAcl, keep.numeric_ids, accounts, &into->acl);
  if (failure == Failure::kNone && is_directory)
    failure = read_acl(fd, kDefaultAcl, keep.numeric_ids, accounts, &into->default_acl);
  if (failure != Failure::kNone) return failure;
  return into->kept_bytes() > catalog::kKeptBytesMax ? Failure::kAttributesTooLarge : Failure::kNone;
}

Refused give_kept(int fd, bool is_directory, const catalog::Attributes& attributes, const catalog::Keep& keep,
                  Accounts& accounts) {
  if (keep.xattrs) {
    if (Refused refused = give_xattrs(fd, attributes.xattrs); refused.reason != 0) return refused;
  }
  if (!keep.acls) return {};
  if (const int reason = give_acl(fd, kAccessAcl, attributes.acl, accounts); reason != 0)
    return {reason, "its ACL"};
  if (!is_directory) return {};
  const int reason = give_acl(fd, kDefaultAcl, attributes.default_acl, accounts);
  return reason == 0 ? Refused() : Refused{reason, "its default ACL"};
}

// There is no room for what is longer than a file system has a place for, either.
bool concerns_disk(int fd, int reason) {
  if (reason != ENOSPC) return reason == EIO || reason == EROFS || reason == ENOMEM || reason == EDQUOT;
  constexpr uint64_t kFewBlocks = 16;
  struct statvfs info {};
  return ::fstatvfs(fd, &info) == 0 && info.f_bavail < kFewBlocks;
}

}  // namespace sluice::exports
