// How a worker writes what another core reads next: through its caches, or past them. Pure.
//
// Through the caches is twice as fast, as long as the lines come quickly from the core that read them last.
// Where they do not, as in some virtual machines for seconds or for hours, each line is waited for, and a
// chunk of 8 KiB takes eight times as long; past the caches it takes the same time always
// (docs/PERFORMANCE.md). So both are measured, all the time: of each window a few turns go the other way, and
// the next window goes by what took less for a byte. The least of a window counts, since a turn that was
// interrupted says nothing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace sluice {

class StoreChoice {
 public:
  static constexpr uint32_t kTrials = 4;  // of a window
  static constexpr uint32_t kTrialEvery = 64;
  // While it goes past them: a turn through the caches may take four times as long.
  static constexpr uint32_t kTrialEveryPast = 256;
  // What takes a turn that wrote less is mostly something else.
  static constexpr uint64_t kBytesMin = 4'096;
  // The other way must save a fifth.
  static constexpr uint64_t kWorth = 5;

  // For the turn that begins.
  bool past_caches() const { return past_caches_ != (turn_ % trial_every() == trial_every() - 1); }

  // That turn has ended: it wrote so many bytes, and took so long.
  void turn(uint64_t bytes, uint64_t ns) {
    if (bytes == 0) return;
    uint64_t& least = least_[past_caches() ? 1 : 0];
    if (bytes >= kBytesMin) least = std::min(least, ns * kPerBytes / bytes);
    if (++turn_ < kTrials * trial_every()) return;
    turn_ = 0;
    const uint64_t now = least_[past_caches_ ? 1 : 0];
    const uint64_t other = least_[past_caches_ ? 0 : 1];
    if (now != UINT64_MAX && other < now - now / kWorth) past_caches_ = !past_caches_;
    least_ = {UINT64_MAX, UINT64_MAX};
  }

 private:
  static constexpr uint64_t kPerBytes = 1 << 16;
  uint32_t trial_every() const { return past_caches_ ? kTrialEveryPast : kTrialEvery; }

  bool past_caches_ = false;
  uint32_t turn_ = 0;
  std::array<uint64_t, 2> least_{UINT64_MAX, UINT64_MAX};  // ns of 64 KiB
};

}  // namespace sluice
