// Padded probes (docs/WIRE.md 1.7): of which sizes how many are still to be sent, and how many have come.
//
// Pure; one owner: a sending flow has a PaddedQueue, a receiving one a PaddedCount.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "dataplane/core/status.h"

namespace sluice {

class PaddedQueue {
 public:
  static constexpr uint32_t kCountMax = 4096;  // of one size

  bool empty() const { return sizes_ == 0; }
  // A new round drops the probes of the round before it that have not left.
  void begin(uint64_t round) {
    if (round == round_) return;
    round_ = round;
    sizes_ = turn_ = 0;
  }
  // False: there are too many sizes or probes already.
  bool add(uint32_t bytes, uint32_t count) {
    for (uint32_t i = 0; i < sizes_; ++i) {
      if (left_[i].bytes != bytes) continue;
      if (count > kCountMax - left_[i].count) return false;
      left_[i].count += count;
      return true;
    }
    if (sizes_ == left_.size() || count == 0 || count > kCountMax) return false;
    left_[sizes_++] = {.bytes = bytes, .count = count};
    return true;
  }
  // Sizes take turns, so that all of them meet the same weather. Not empty.
  uint32_t front() const { return left_[turn_].bytes; }
  void pop() {
    if (--left_[turn_].count == 0) {
      --sizes_;
      for (uint32_t i = turn_; i < sizes_; ++i) left_[i] = left_[i + 1];
    } else {
      ++turn_;
    }
    if (turn_ >= sizes_) turn_ = 0;
  }

 private:
  std::array<wire::PaddedSize, wire::kPaddedSizesMax> left_{};
  uint32_t sizes_ = 0;
  uint32_t turn_ = 0;
  uint64_t round_ = 0;
};

class PaddedCount {
 public:
  // So long after the last one statuses tell of them.
  static constexpr uint64_t kToldNs = 1'000'000'000;

  void came(uint32_t bytes, uint64_t now_ns) {
    last_ns_ = now_ns;
    uint32_t at = 0;
    while (at < sizes_ && counts_[at].bytes != bytes) ++at;
    wire::PaddedSize it{.bytes = bytes, .count = 0};
    if (at < sizes_) {
      it = counts_[at];
    } else if (sizes_ < counts_.size()) {
      ++sizes_;
    } else {
      at = sizes_ - 1;  // what came longest ago is forgotten
    }
    for (; at > 0; --at) counts_[at] = counts_[at - 1];
    ++it.count;
    counts_[0] = it;
  }
  std::span<const wire::PaddedSize> told(uint64_t now_ns) const {
    return {counts_.data(), sizes_ > 0 && now_ns - last_ns_ < kToldNs ? sizes_ : 0};
  }

 private:
  std::array<wire::PaddedSize, wire::kPaddedSizesMax> counts_{};  // the newest first
  uint32_t sizes_ = 0;
  uint64_t last_ns_ = 0;
};

}  // namespace sluice
