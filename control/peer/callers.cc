// SPDX-License-Identifier: Apache-2.0
#include "control/peer/callers.h"

#include <algorithm>
#include <utility>

namespace sluice::peer {

void Callers::Groups::add(const std::string& group, Id id) {
  members[group].insert(id);
  ++count;
}

void Callers::Groups::remove(const std::string& group, Id id) {
  const auto at = members.find(group);
  at->second.erase(id);
  --count;
  if (at->second.empty()) members.erase(at);
}

size_t Callers::Groups::of(const std::string& group) const {
  const auto at = members.find(group);
  return at == members.end() ? 0 : at->second.size();
}

Callers::Arrival Callers::came(const std::string& address, bool known) {
  Arrival arrival{.id = next_++, .let_go = {}};
  Groups& groups = known ? known_ : strangers_;
  if (groups.of(address) >= limits_.strangers_of_address) {
    arrival.let_go = let_oldest_go(groups, address);
  } else if (groups.count >= (known ? limits_.at_known_addresses : limits_.strangers)) {
    arrival.let_go = oldest_of(groups);
  }
  callers_[arrival.id] = {.kind = known ? Kind::kKnownAddress : Kind::kStranger, .group = address};
  groups.add(address, arrival.id);
  return arrival;
}

std::optional<Callers::Id> Callers::oldest_stranger() {
  if (const std::optional<Id> id = oldest_of(strangers_)) return id;
  return oldest_of(known_);
}

std::optional<Callers::Id> Callers::oldest_of(Groups& groups) {
  if (groups.count == 0) return std::nullopt;
  // Of addresses that have equally many, the one that has waited the longest.
  const auto most = std::ranges::max_element(groups.members, {}, [](const auto& group) {
    return std::pair(group.second.size(), -static_cast<int64_t>(*group.second.begin()));
  });
  return let_oldest_go(groups, std::string(most->first));
}

std::optional<Callers::Id> Callers::trusted(Id id, const std::string& peer) {
  const auto at = callers_.find(id);
  if (at == callers_.end()) return std::nullopt;
  leave(id, at->second);
  at->second = {.kind = Kind::kBusy, .group = peer};
  return set_busy(id, false);
}

std::optional<Callers::Id> Callers::set_busy(Id id, bool busy) {
  const auto at = callers_.find(id);
  const Kind kind = busy ? Kind::kBusy : Kind::kIdle;
  if (at == callers_.end() || at->second.kind == kind) return std::nullopt;
  leave(id, at->second);
  at->second.kind = kind;
  if (busy) return std::nullopt;
  const std::string peer = at->second.group;
  idle_.add(peer, id);
  if (idle_.of(peer) <= limits_.idle_of_peer) return std::nullopt;
  return let_oldest_go(idle_, peer);
}

void Callers::gone(Id id) {
  const auto at = callers_.find(id);
  if (at == callers_.end()) return;
  leave(id, at->second);
  callers_.erase(at);
}

void Callers::leave(Id id, const Caller& caller) {
  if (caller.kind == Kind::kStranger) strangers_.remove(caller.group, id);
  if (caller.kind == Kind::kKnownAddress) known_.remove(caller.group, id);
  if (caller.kind == Kind::kIdle) idle_.remove(caller.group, id);
}

Callers::Id Callers::let_oldest_go(Groups& groups, const std::string& group) {
  const Id oldest = *groups.members.at(group).begin();
  gone(oldest);
  return oldest;
}

}  // namespace sluice::peer
