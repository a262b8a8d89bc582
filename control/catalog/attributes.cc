// SPDX-License-Identifier: Apache-2.0
#include "control/catalog/attributes.h"

#include <algorithm>

namespace sluice::catalog {
namespace {

constexpr uint32_t kNoAccount = UINT32_MAX;  // to chown(2): leave it as it is

bool good_account(const std::string& name) {
  return name.size() <= kAccountBytesMax && name.find('\0') == std::string::npos;
}

// What one of them costs beside its bytes.
constexpr size_t kEachBytes = 16;

size_t acl_bytes(const Acl& acl) {
  size_t bytes = 0;
  for (const AclEntry& entry : acl) bytes += kEachBytes + entry.name.size();
  return bytes;
}

bool good_xattrs(const std::vector<Xattr>& xattrs) {
  const std::string* before = nullptr;
  for (const Xattr& each : xattrs) {
    const bool good = each.name.size() > kXattrPrefix.size() && each.name.size() <= kXattrNameMax &&
                      each.name.starts_with(kXattrPrefix) && each.name.find('\0') == std::string::npos;
    if (!good || (before != nullptr && *before >= each.name)) return false;
    before = &each.name;
  }
  return true;
}

bool named(const Acl& acl) {
  return std::any_of(acl.begin(), acl.end(), [](const AclEntry& entry) { return !entry.name.empty(); });
}

bool good_entry(const AclEntry& entry) {
  const bool of_account = entry.tag == acl_tag::kUser || entry.tag == acl_tag::kGroup;
  if (entry.perm > 7 || !good_account(entry.name)) return false;
  return of_account ? entry.id != kNoAccount : entry.id == 0 && entry.name.empty();
}

std::string_view acl_problem(const Attributes& attributes, const Keep& keep, Bearer bearer) {
  const bool any = !attributes.acl.empty() || !attributes.default_acl.empty();
  if (any && !keep.acls) return "an ACL that was not agreed upon";
  if (any && bearer == Bearer::kLink) return "an ACL of a link";
  if (!attributes.default_acl.empty() && bearer != Bearer::kDirectory)
    return "a default ACL of what is no directory";
  if (!good_acl(attributes.acl) || !good_acl(attributes.default_acl)) return "an ACL that cannot be";
  if (keep.numeric_ids && (named(attributes.acl) || named(attributes.default_acl)))
    return "an ACL with names where numbers were agreed upon";
  return "";
}

}  // namespace

size_t Attributes::kept_bytes() const {
  size_t bytes = acl_bytes(acl) + acl_bytes(default_acl);
  for (const Xattr& each : xattrs) bytes += kEachBytes + each.name.size() + each.value.size();
  return bytes;
}

// Each kind of tag in its turn; those of accounts any number of times, and then there is a mask.
bool good_acl(const Acl& acl) {
  if (acl.empty()) return true;
  size_t at = 0;
  const auto has = [&](uint32_t tag) { return at < acl.size() && acl[at].tag == tag && good_entry(acl[at]); };
  const auto take = [&](uint32_t tag) { return has(tag) && ++at != 0; };
  if (!take(acl_tag::kUserObj)) return false;
  while (take(acl_tag::kUser)) {
  }
  if (!take(acl_tag::kGroupObj)) return false;
  while (take(acl_tag::kGroup)) {
  }
  const bool accounts = at > 2;
  if (!take(acl_tag::kMask) && accounts) return false;
  return take(acl_tag::kOther) && at == acl.size();
}

std::string_view attributes_problem(const Attributes& attributes, const Keep& keep, Bearer bearer) {
  if ((attributes.uid || !attributes.user.empty()) && !keep.owner) return "an owner that was not agreed upon";
  if ((attributes.gid || !attributes.group.empty()) && !keep.group) return "a group that was not agreed upon";
  if (attributes.uid == kNoAccount || attributes.gid == kNoAccount) return "an owner or group that cannot be";
  if (keep.numeric_ids && (!attributes.user.empty() || !attributes.group.empty()))
    return "the name of an owner or group where numbers were agreed upon";
  if (!good_account(attributes.user) || !good_account(attributes.group))
    return "the name of an owner or group that cannot be";
  if (!attributes.xattrs.empty() && !keep.xattrs) return "an extended attribute that was not agreed upon";
  if (!attributes.xattrs.empty() && bearer == Bearer::kLink) return "an extended attribute of a link";
  if (attributes.kept_bytes() > kKeptBytesMax)
    return "more extended attributes and ACLs than a name may have";
  if (!good_xattrs(attributes.xattrs)) return "an extended attribute that cannot be";
  return acl_problem(attributes, keep, bearer);
}

}  // namespace sluice::catalog
