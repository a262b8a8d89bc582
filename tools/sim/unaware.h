// The judge of one rule: no session goes on at a node long after it has ended, or is not known any more, at
// the other.
//
// Looks at the journals and at what each control has under way; decides nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tools/sim/control.h"

namespace sluice::sim {

class Unaware {
 public:
  // Silence on the stream (15 s), the stall timeout (10 s), then the first two questions (10 s, 20 s).
  static constexpr uint64_t kBoundNs = 60'000'000'000;

  // Once nothing is in the way any more, as often as one likes.
  void look(const std::vector<std::unique_ptr<Host>>& hosts, uint64_t now_ns, Oracle& oracle);

 private:
  std::map<std::pair<uint32_t, std::string>, uint64_t> since_ns_;
};

}  // namespace sluice::sim
