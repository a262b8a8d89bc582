// Ranges as messages carry them: a few thousand in each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "control/words/messages.h"

namespace sluice::transfer {

// Calls `say` with as many parts as messages need to carry all of `ranges`; never without ranges.
template <typename Say>
void in_parts(const std::vector<recovery::Range>& ranges, Say say) {
  for (size_t at = 0; at < ranges.size(); at += kRangesPerMessage) {
    const auto begin = ranges.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(std::min(ranges.size() - at, kRangesPerMessage));
    say(std::vector<recovery::Range>(begin, end));
  }
}

}  // namespace sluice::transfer
