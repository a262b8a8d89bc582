// What share of the datagrams of a path is lost, for whoever must decide early in a transfer.
//
// Pure; one owner. A short file is over before much is known of its path. So the estimate begins with what a
// path may lose of which nothing is known yet, and follows what was counted as soon as that says more: the
// mean of a beta distribution, as for any share that is counted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

class LossEstimate {
 public:
  // Before anything was counted: a quarter of a datagram in fifty.
  static constexpr double kLostBefore = 0.25;
  static constexpr double kSentBefore = 50;
  // What was counted longer ago than so many transmissions counts half, since paths change.
  static constexpr double kRemembered = 8192;

  // Of the transmissions that the peer knows of: how many there were, and how many of them were lost; in all.
  void update(uint64_t sent, uint64_t lost) {
    if (sent <= sent_) return;
    lost_share_of_ += static_cast<double>(lost - std::min(lost, lost_));
    sent_share_of_ += static_cast<double>(sent - sent_);
    sent_ = sent;
    lost_ = std::max(lost, lost_);
    if (sent_share_of_ <= kRemembered) return;
    lost_share_of_ /= 2;
    sent_share_of_ /= 2;
  }
  // Of what was counted; 0: nothing was lost.
  double counted() const {
    return sent_share_of_ == 0 ? 0 : std::min(kMost, lost_share_of_ / sent_share_of_);
  }
  // Never 0.
  double expected() const {
    return std::min(kMost, (lost_share_of_ + kLostBefore) / (sent_share_of_ + kSentBefore));
  }

 private:
  static constexpr double kMost = 0.95;
  uint64_t sent_ = 0;
  uint64_t lost_ = 0;
  double sent_share_of_ = 0;  // of these, what still counts
  double lost_share_of_ = 0;
};

}  // namespace sluice
