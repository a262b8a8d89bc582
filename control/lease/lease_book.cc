// SPDX-License-Identifier: Apache-2.0
#include "control/lease/lease_book.h"

#include <fmt/format.h>

namespace sluice::lease {

using transfer::LeaseRow;

Result<LeaseBook::Answer> LeaseBook::judge(const Claim& claim) const {
  const auto found = rows_.find(claim.lease.name);
  if (found == rows_.end()) {
    const auto held = held_.find(claim.holder);
    if (held == held_.end() || held->second < kLeasesPerHolder) return Answer::kTakes;
    return Error{
        ErrorCode::kResources,
        fmt::format("{} leases are kept for one node already: an unused one is forgotten after {} days",
                    kLeasesPerHolder, kKeptNs / 86'400'000'000'000)};
  }
  const LeaseRow& row = found->second;
  if (claim.lease.epoch > row.lease.epoch) return Answer::kTakes;
  const std::string shown = transfer::shown_lease(claim.lease);
  if (claim.lease.epoch < row.lease.epoch)
    return Error{
        ErrorCode::kSuperseded,
        fmt::format("lease {} is over: epoch {} of it was taken since; begin again only under a higher "
                    "one, which whoever plans this work has given to you",
                    shown, row.lease.epoch)};
  if (!claim.goes_on && claim.holder != row.holder)
    return Error{
        ErrorCode::kSuperseded,
        fmt::format("lease {} was taken by another node under the same epoch: begin again only under a "
                    "higher one",
                    shown)};
  return claim.now_unix_ns - row.used_unix_ns > kUsedWithinNs ? Answer::kTakes : Answer::kHolds;
}

LeaseRow LeaseBook::take(const Claim& claim) {
  const auto found = rows_.find(claim.lease.name);
  const bool same = found != rows_.end() && found->second.lease.epoch == claim.lease.epoch;
  const LeaseRow row{.lease = claim.lease,
                     .holder = same ? found->second.holder : claim.holder,
                     .used_unix_ns = claim.now_unix_ns};
  restore(row);
  return row;
}

void LeaseBook::restore(LeaseRow row) {
  LeaseRow& at = rows_[row.lease.name];
  if (at.lease.epoch != 0 && --held_[at.holder] == 0) held_.erase(at.holder);
  ++held_[row.holder];
  at = std::move(row);
}

bool LeaseBook::is_stale(const transfer::Lease& lease) const {
  const auto found = rows_.find(lease.name);
  return found != rows_.end() && found->second.lease.epoch > lease.epoch;
}

std::vector<std::string> LeaseBook::forget_old(int64_t now_unix_ns,
                                               const std::function<bool(const std::string&)>& in_use) {
  std::vector<std::string> old;
  for (const auto& [name, row] : rows_) {
    if (now_unix_ns - row.used_unix_ns > kKeptNs && !in_use(name)) old.push_back(name);
  }
  for (const std::string& name : old) {
    const auto row = rows_.find(name);
    if (--held_[row->second.holder] == 0) held_.erase(row->second.holder);
    rows_.erase(row);
  }
  return old;
}

}  // namespace sluice::lease
