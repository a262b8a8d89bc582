// SPDX-License-Identifier: Apache-2.0
#include "control/rate/controller.h"

namespace sluice::rate {

std::string_view condition_name(Condition condition) {
  switch (condition) {
    case Condition::kRamping:
      return "ramping up";
    case Condition::kRunning:
      return "at the rate";
    case Condition::kYielding:
      return "below the rate, because of loss";
    case Condition::kYieldingToOthers:
      return "yielding to other traffic; mode cubic shares with it";
    case Condition::kCrawling:
      return "crawling, the peer is silent";
    case Condition::kStopped:
      return "stopped, the peer is silent";
  }
  return "unknown";
}

}  // namespace sluice::rate
