// SPDX-License-Identifier: Apache-2.0
#include "dataplane/keeper/fallback_plan.h"

#include <algorithm>

namespace sluice::keeper {

void FallbackPlan::served(uint64_t now_ns) { served_ns_ = std::max<uint64_t>(now_ns, 1); }

void FallbackPlan::fell(uint64_t now_ns) {
  const bool good = served_ns_ != 0 && now_ns - served_ns_ >= kGoodNs;
  wait_ns_ = good || !fell_before_ ? return_ns_ : std::min(2 * wait_ns_, kLongest * return_ns_);
  fell_before_ = true;
  served_ns_ = 0;
  there_ns_ = 0;
}

bool FallbackPlan::may_return(bool there, uint64_t now_ns) {
  if (!there) {
    there_ns_ = 0;
    return false;
  }
  if (there_ns_ == 0) there_ns_ = std::max<uint64_t>(now_ns, 1);
  return now_ns - there_ns_ >= wait_ns_;
}

}  // namespace sluice::keeper
