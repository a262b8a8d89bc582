// The leases that a node keeps to: of each the highest epoch that it has seen, and which node took it
// (docs/WIRE.md, 2.14).
//
// Pure. Whoever asks writes what was taken into the journal before anything is done under it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "control/words/lease.h"

namespace sluice::lease {

inline constexpr int64_t kKeptNs = 30LL * 86400 * 1'000'000'000;  // after it was named last
inline constexpr int64_t kUsedWithinNs = 3600LL * 1'000'000'000;  // so exactly that is known
inline constexpr size_t kLeasesPerHolder = 10'000;

class LeaseBook {
 public:
  struct Claim {
    const transfer::Lease& lease;
    const std::string& holder;  // empty: this node
    bool goes_on = false;       // a session that has run here under just this lease
    int64_t now_unix_ns = 0;
  };
  enum class Answer : uint8_t {
    kHolds,  // nothing changes
    kTakes,  // it is another epoch, or the time is to be noted: take() has the row for the journal
  };
  // kSuperseded: a higher epoch is known, or another node has taken this one. kResources: the holder has too
  // many.
  Result<Answer> judge(const Claim& claim) const;
  // What judge() said yes to.
  transfer::LeaseRow take(const Claim& claim);
  // From the journal.
  void restore(transfer::LeaseRow row);
  // Is this, or a higher one, known here? `epoch` is to be the highest, else what runs under it has to end.
  bool is_stale(const transfer::Lease& lease) const;
  // Forgets what nobody has named for long, and does not use: their names.
  std::vector<std::string> forget_old(int64_t now_unix_ns,
                                      const std::function<bool(const std::string&)>& in_use);
  size_t size() const { return rows_.size(); }

 private:
  std::map<std::string, transfer::LeaseRow, std::less<>> rows_;
  std::map<std::string, size_t, std::less<>> held_;  // so many are of each holder
};

}  // namespace sluice::lease
