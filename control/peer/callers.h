// Who is connected to this node's control port, and whom it lets go when there are too many.
//
// Pure. Strangers, whose key is not judged yet, cost nobody his place: where there are too many of them, the
// oldest one of the address with the most goes. Those at an address where somebody is or was trusted have
// places of their own: however many call from elsewhere, they are displaced by each other only. Those who are
// trusted and have no session yet, or none any more, are limited for each peer, and displace only each other.
// A connection of a session stays: how many sessions there may be is for others to say.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace sluice::peer {

class Callers {
 public:
  struct Limits {
    size_t strangers = 256;
    size_t strangers_of_address = 32;
    size_t at_known_addresses = 256;
    size_t idle_of_peer = 128;
  };
  using Id = uint64_t;

  Callers() = default;
  explicit Callers(const Limits& limits) : limits_(limits) {}

  // Each says whom to let go in return, if anybody; he is gone from here.
  struct Arrival {
    Id id = 0;
    std::optional<Id> let_go;
  };
  Arrival came(const std::string& address, bool known = false);
  // To make room for somebody who is not accepted yet.
  std::optional<Id> oldest_stranger();  // of the address with the most; of the known ones at last
  std::optional<Id> trusted(Id id, const std::string& peer);
  std::optional<Id> set_busy(Id id, bool busy);  // it belongs to a session, or not any more
  void gone(Id id);

  bool knows(Id id) const { return callers_.contains(id); }
  size_t count() const { return callers_.size(); }
  size_t strangers() const { return strangers_.count + known_.count; }

 private:
  enum class Kind : uint8_t { kStranger, kKnownAddress, kIdle, kBusy };
  struct Caller {
    Kind kind = Kind::kStranger;
    std::string group;  // address of a stranger, name of a peer
  };
  struct Groups {
    std::map<std::string, std::set<Id>> members;  // the oldest of each first
    size_t count = 0;
    void add(const std::string& group, Id id);
    void remove(const std::string& group, Id id);
    size_t of(const std::string& group) const;
  };
  void leave(Id id, const Caller& caller);
  Id let_oldest_go(Groups& groups, const std::string& group);
  std::optional<Id> oldest_of(Groups& groups);

  Limits limits_;
  Id next_ = 1;
  std::map<Id, Caller> callers_;
  Groups strangers_;  // by address, as the next
  Groups known_;      // at known addresses
  Groups idle_;       // by peer
};

}  // namespace sluice::peer
