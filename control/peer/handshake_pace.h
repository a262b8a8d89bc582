// How soon a caller's handshake may begin: the key exchange is what a stranger can have this node work for.
//
// Pure; time is an argument. Callers from addresses at which nobody was ever trusted share one pace, so that
// however many they are, they take so much of this node's time and no more. An address at which somebody was
// trusted has a pace of its own, which no honest peer reaches: strangers hold it up only from there. Who goes
// away before its turn gives it back. As many wait as are let in (callers.h), so nobody waits longer than
// these take; and as many more may begin at once as wait and go away.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace sluice::peer {

// So many a second, after so many at once.
struct Pace {
  uint32_t per_s = 1;
  uint32_t at_once = 1;
};

class HandshakePace {
 public:
  struct Limits {
    Pace strangers = {.per_s = 200, .at_once = 100};  // all of them together
    Pace known_address = {.per_s = 200, .at_once = 400};
    size_t known_addresses = 1024;  // beyond these, who was trusted the longest ago is forgotten
  };
  struct Turn {
    uint64_t begins_ns = 0;
    bool known = false;  // it is of an address's own pace
  };

  HandshakePace() = default;
  explicit HandshakePace(const Limits& limits) : limits_(limits) {}

  Turn take(const std::string& address, uint64_t now_ns);
  void give_back(const std::string& address, const Turn& turn);
  void trusted(const std::string& address, uint64_t now_ns);  // somebody there is
  bool knows(const std::string& address) const { return known_.contains(address); }
  size_t known_addresses() const { return known_.size(); }

 private:
  // When the next one would begin if all came exactly at the pace.
  struct Schedule {
    uint64_t due_ns = 0;
    uint64_t take(const Pace& pace, uint64_t now_ns);
    void give_back(const Pace& pace);
  };
  struct Known {
    Schedule schedule;
    uint64_t trusted_ns = 0;
  };

  Limits limits_;
  std::map<std::string, Known> known_;
  Schedule strangers_;
};

}  // namespace sluice::peer
