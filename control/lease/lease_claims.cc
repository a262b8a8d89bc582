// SPDX-License-Identifier: Apache-2.0
#include "control/lease/lease_claims.h"

#include <fmt/format.h>

namespace sluice::lease {

Error LeaseClaims::superseded(const transfer::Lease& lease) {
  return {ErrorCode::kSuperseded,
          fmt::format("lease {} was taken under a higher epoch: whoever has it now goes on, and this session "
                      "does not",
                      transfer::shown_lease(lease))};
}

std::optional<Error> LeaseClaims::over(const transfer::Lease& lease) const {
  if (!book_.is_stale(lease)) return std::nullopt;
  return superseded(lease);
}

Result<LeaseClaims::Step> LeaseClaims::claim(const Claim& claim) {
  const Result<LeaseBook::Answer> answer = book_.judge(claim);
  if (!answer) return answer.error();
  if (unwritten_.contains(claim.lease.name)) return Step{.next = Next::kLater, .row = {}};
  if (*answer == LeaseBook::Answer::kHolds) return Step{.next = Next::kLook, .row = {}};
  unwritten_.insert(claim.lease.name);
  return Step{.next = Next::kWrite, .row = book_.take(claim)};
}

}  // namespace sluice::lease
