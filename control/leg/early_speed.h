// How fast the first bytes of a leg come, from the first of them on: what a short session tells of its path.
//
// Pure. The last eighth does not count: what was lost and is sent again comes a round trip late.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::transfer {

class EarlySpeed {
 public:
  static constexpr uint64_t kStepNs = 10'000'000;
  static constexpr size_t kStepsMax = 200;  // then others have taken samples
  static constexpr uint64_t kBytesMin = 256U << 10;

  void look(uint64_t bytes, uint64_t now_ns) {
    if (bytes == 0 || seen_.size() == kStepsMax) return;
    if (!seen_.empty() && (now_ns < seen_.back().at_ns + kStepNs || bytes <= seen_.back().bytes)) return;
    seen_.push_back({.at_ns = now_ns, .bytes = bytes});
  }
  // 0: too little has come.
  double bps() const {
    if (seen_.size() < 2) return 0;
    const Seen first = seen_.front();
    const uint64_t all = seen_.back().bytes - first.bytes;
    if (all < kBytesMin) return 0;
    size_t at = 1;
    while (seen_[at].bytes - first.bytes < all - all / 8) ++at;
    return 8e9 * static_cast<double>(seen_[at].bytes - first.bytes) /
           static_cast<double>(seen_[at].at_ns - first.at_ns);
  }

 private:
  struct Seen {
    uint64_t at_ns = 0;
    uint64_t bytes = 0;
  };
  std::vector<Seen> seen_;
};

}  // namespace sluice::transfer
