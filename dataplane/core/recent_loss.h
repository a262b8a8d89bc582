// What share of the datagrams of a path was lost lately.
//
// Pure; one owner.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

class RecentLoss {
 public:
  static constexpr uint64_t kWindow = 512;  // transmissions

  // How many there were, and how many of them were lost on the way; in all.
  void update(uint64_t sent, uint64_t lost) {
    if (sent - sent_ < kWindow) return;
    const auto more = static_cast<double>(lost - std::min(lost_, lost));
    const double now = std::min(0.95, more / static_cast<double>(sent - sent_));
    share_ += (now - share_) / 4;
    sent_ = sent;
    lost_ = lost;
  }
  double share() const { return share_; }  // 0 to 0.95

 private:
  double share_ = 0;
  uint64_t sent_ = 0;
  uint64_t lost_ = 0;
};

}  // namespace sluice
