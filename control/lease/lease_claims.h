// What has to be done before a session may write under a lease: what runs under a lower epoch ends, the
// journal has the row, and only then it begins (docs/WIRE.md, 2.14).
//
// Pure. control/node/lease_desk.h does what it says: it ends sessions, and writes the journal. The simulator
// does the same (tools/sim).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/lease/lease_book.h"

namespace sluice::lease {

class LeaseClaims {
 public:
  using Claim = LeaseBook::Claim;
  enum class Next : uint8_t {
    kLater,  // somebody has just taken it, and the journal does not have that yet
    kWrite,  // what runs under a lower epoch ends now, and `row` is written: then written()
    kLook,   // the journal has it: the session begins once nothing runs under a lower epoch
  };
  struct Step {
    Next next = Next::kLater;
    std::optional<transfer::LeaseRow> row;
  };
  // kSuperseded, kResources: not at all.
  Result<Step> claim(const Claim& claim);
  // The journal has answered.
  void written(const transfer::Lease& lease) { unwritten_.erase(lease.name); }
  // Does what runs under `its` end where somebody claims this one?
  static bool ends(const std::optional<transfer::Lease>& its, const transfer::Lease& claimed) {
    return its && its->name == claimed.name && its->epoch < claimed.epoch;
  }
  // With this; also a session from the journal that ran under it and does not go on. Nothing: it is not over.
  std::optional<Error> over(const transfer::Lease& lease) const;
  static Error superseded(const transfer::Lease& lease);

  void restore(transfer::LeaseRow row) { book_.restore(std::move(row)); }  // from the journal
  std::vector<std::string> forget_old(int64_t now_unix_ns,
                                      const std::function<bool(const std::string&)>& in_use) {
    return book_.forget_old(now_unix_ns, in_use);
  }

 private:
  LeaseBook book_;
  std::set<std::string> unwritten_;  // names that the journal does not have yet as they are here
};

}  // namespace sluice::lease
