// What is kept of a name on request: its owner and its group, each a number and, where it is known, a name;
// its extended attributes; its ACLs.
//
// Plain data. At a source they are as they stand there; a destination finds out what they mean to it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/selection/keep.h"

namespace sluice::catalog {

using selection::Keep;

inline constexpr size_t kAccountBytesMax = 256;  // of the name of an owner or a group
inline constexpr size_t kXattrNameMax = 255;
inline constexpr std::string_view kXattrPrefix = "user.";  // all others mean something to the system
// Of the extended attributes and ACLs of a name, and of all files of a session that are no pack.
inline constexpr size_t kKeptBytesMax = 64U << 10;
inline constexpr size_t kKeptBytesOfAllMax = 16U << 20;

struct Xattr {
  std::string name;
  std::string value;

  bool operator==(const Xattr&) const = default;
};

// The numbers of Linux, as they travel.
namespace acl_tag {
inline constexpr uint32_t kUserObj = 1;
inline constexpr uint32_t kUser = 2;
inline constexpr uint32_t kGroupObj = 4;
inline constexpr uint32_t kGroup = 8;
inline constexpr uint32_t kMask = 16;
inline constexpr uint32_t kOther = 32;
}  // namespace acl_tag

struct AclEntry {
  uint32_t tag = 0;
  uint32_t perm = 0;  // as a digit of a mode
  uint32_t id = 0;    // of kUser and kGroup
  std::string name;   // of that, at the source; empty: only the number counts

  bool operator==(const AclEntry&) const = default;
};
using Acl = std::vector<AclEntry>;  // empty: there is none

struct Attributes {
  std::optional<uint32_t> uid;  // nothing: not kept
  std::optional<uint32_t> gid;
  std::string user;  // the name of `uid` at the source; empty: only the number counts
  std::string group;
  std::vector<Xattr> xattrs = {};  // in the order of their names
  Acl acl = {};
  Acl default_acl = {};  // of directories

  bool operator==(const Attributes&) const = default;
  bool empty() const { return *this == Attributes(); }
  size_t kept_bytes() const;  // of the last three, as the limits count them
};

// What has them: links have neither extended attributes of users nor ACLs.
enum class Bearer : uint8_t { kFile, kDirectory, kLink };
// What a peer may say where this is kept; otherwise what is wrong with it, for people.
std::string_view attributes_problem(const Attributes& attributes, const Keep& keep, Bearer bearer);
// Empty, or one that Linux takes.
bool good_acl(const Acl& acl);

// To and from messages: those of the peer and of the journal are the same.
void put_acl(const Acl& from, auto* to) {
  for (const AclEntry& entry : from) {
    auto* const one = to->Add();
    one->set_tag(entry.tag);
    one->set_perm(entry.perm);
    one->set_id(entry.id);
    one->set_name(entry.name);
  }
}
Acl acl_of(const auto& from) {
  Acl to;
  for (const auto& entry : from)
    to.push_back({.tag = entry.tag(), .perm = entry.perm(), .id = entry.id(), .name = entry.name()});
  return to;
}
void put_attributes(const Attributes& from, auto* wire) {
  if (from.empty()) return;
  auto* const to = wire->mutable_attributes();
  if (from.uid) to->set_uid(*from.uid);
  if (from.gid) to->set_gid(*from.gid);
  to->set_user(from.user);
  to->set_group(from.group);
  for (const Xattr& xattr : from.xattrs) {
    auto* const one = to->add_xattrs();
    one->set_name(xattr.name);
    one->set_value(xattr.value);
  }
  put_acl(from.acl, to->mutable_acl());
  put_acl(from.default_acl, to->mutable_default_acl());
}
Attributes attributes_of(const auto& wire) {
  Attributes to;
  if (!wire.has_attributes()) return to;
  const auto& from = wire.attributes();
  if (from.has_uid()) to.uid = from.uid();
  if (from.has_gid()) to.gid = from.gid();
  to.user = from.user();
  to.group = from.group();
  for (const auto& xattr : from.xattrs()) to.xattrs.push_back({.name = xattr.name(), .value = xattr.value()});
  to.acl = acl_of(from.acl());
  to.default_acl = acl_of(from.default_acl());
  return to;
}

}  // namespace sluice::catalog
