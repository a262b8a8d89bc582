// SPDX-License-Identifier: Apache-2.0
#include "control/words/records.h"

namespace sluice::transfer {

std::string peers_of(const std::vector<LegRecord>& legs) {
  std::string names;
  for (auto leg = legs.begin(); leg != legs.end(); ++leg) {
    if (std::any_of(legs.begin(), leg, [&](const LegRecord& before) { return before.peer == leg->peer; }))
      continue;
    if (!names.empty()) names += ", ";
    names += leg->peer;
  }
  return names;
}

}  // namespace sluice::transfer
