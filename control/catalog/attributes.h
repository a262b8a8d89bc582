// What is kept of a name on request: its owner and its group, each a number and, where it is known, a name.
//
// Plain data. At a source they are as they stand there; a destination finds out what they mean to it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "control/selection/keep.h"

namespace sluice::catalog {

using selection::Keep;

inline constexpr size_t kAccountBytesMax = 256;  // of the name of an owner or a group

struct Attributes {
  std::optional<uint32_t> uid;  // nothing: not kept
  std::optional<uint32_t> gid;
  std::string user;  // the name of `uid` at the source; empty: only the number counts
  std::string group;

  bool operator==(const Attributes&) const = default;
  bool empty() const { return !uid && !gid && user.empty() && group.empty(); }
};

// What a peer may say where this is kept; otherwise what is wrong with it, for people.
std::string_view attributes_problem(const Attributes& attributes, const Keep& keep);

// To and from messages: those of the peer and of the journal are the same.
void put_attributes(const Attributes& from, auto* wire) {
  if (from.empty()) return;
  auto* const to = wire->mutable_attributes();
  if (from.uid) to->set_uid(*from.uid);
  if (from.gid) to->set_gid(*from.gid);
  to->set_user(from.user);
  to->set_group(from.group);
}
Attributes attributes_of(const auto& wire) {
  Attributes to;
  if (!wire.has_attributes()) return to;
  const auto& from = wire.attributes();
  if (from.has_uid()) to.uid = from.uid();
  if (from.has_gid()) to.gid = from.gid();
  to.user = from.user();
  to.group = from.group();
  return to;
}

}  // namespace sluice::catalog
