// Which reading of a device's clock a time of ours is: for frames that the device sends by its own clock.
//
// Pure: is told pairs of times read at one moment. They come late by what reading a device takes, more or
// less a microsecond: so the rate is taken over up to a second, and of a pair's error an eighth is believed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::dpdk {

class DeviceClock {
 public:
  static constexpr uint64_t kObserveNs = 10'000'000;  // a pair so often is enough
  static constexpr uint64_t kBaseNs = 1'000'000'000;
  static constexpr uint64_t kJumpNs = 1'000'000;  // such an error is another time, not an inexact one

  bool due(uint64_t now_ns) const { return pairs_ == 0 || now_ns - newest_ns_ >= kObserveNs; }
  void observe(uint64_t now_ns, uint64_t ticks) {
    if (pairs_ < 2) return begin(now_ns, ticks);
    const uint64_t expected = ticks_at(now_ns);
    const auto error = static_cast<int64_t>(ticks - expected);
    const uint64_t size =
        error < 0 ? uint64_t{0} - static_cast<uint64_t>(error) : static_cast<uint64_t>(error);
    if ((static_cast<__uint128_t>(size) << 32) > static_cast<__uint128_t>(kJumpNs) * ticks_per_ns_fp_) {
      pairs_ = 0;
      return begin(now_ns, ticks);
    }
    set_rate(now_ns, ticks);
    newest_ns_ = now_ns;
    newest_ticks_ = expected + static_cast<uint64_t>((error + (error < 0 ? -7 : 7)) / 8);
    if (now_ns - middle_ns_ < kBaseNs / 2) return;
    base_ns_ = middle_ns_;
    base_ticks_ = middle_ticks_;
    middle_ns_ = now_ns;
    middle_ticks_ = ticks;
  }
  bool known() const { return pairs_ == 2; }
  // known() is true. Exact near to the newest pair, before and after it.
  uint64_t ticks_at(uint64_t ns) const {
    const auto distance = static_cast<__int128_t>(ns) - static_cast<__int128_t>(newest_ns_);
    return newest_ticks_ +
           static_cast<uint64_t>((distance * static_cast<__int128_t>(ticks_per_ns_fp_)) >> 32);
  }

 private:
  void begin(uint64_t now_ns, uint64_t ticks) {
    newest_ns_ = now_ns;
    newest_ticks_ = ticks;
    if (pairs_++ == 0) {
      base_ns_ = middle_ns_ = now_ns;
      base_ticks_ = middle_ticks_ = ticks;
    } else if (now_ns == base_ns_ || ticks <= base_ticks_) {  // it stands, or began anew
      pairs_ = 0;
    } else {
      set_rate(now_ns, ticks);
    }
  }
  void set_rate(uint64_t now_ns, uint64_t ticks) {
    ticks_per_ns_fp_ =
        static_cast<uint64_t>((static_cast<__uint128_t>(ticks - base_ticks_) << 32) / (now_ns - base_ns_));
  }

  uint32_t pairs_ = 0;
  uint64_t base_ns_ = 0;  // half a second to one before the newest
  uint64_t base_ticks_ = 0;
  uint64_t middle_ns_ = 0;  // the next base
  uint64_t middle_ticks_ = 0;
  uint64_t newest_ns_ = 0;
  uint64_t newest_ticks_ = 0;     // smoothed
  uint64_t ticks_per_ns_fp_ = 0;  // 32.32
};

}  // namespace sluice::dpdk
