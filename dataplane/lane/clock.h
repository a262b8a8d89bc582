// CLOCK_MONOTONIC in nanoseconds, read from the TSC: one cheap read per loop, no system call.
//
// The invariant TSC is calibrated against CLOCK_MONOTONIC once at start; the difference afterwards is
// the frequency error of that calibration (some parts per million), which matters to no user of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <x86intrin.h>

#include <cstdint>
#include <ctime>

namespace sluice::lane {

inline uint64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000ULL + static_cast<uint64_t>(t.tv_nsec);
}

class Clock {
 public:
  // Blocks for about 20 ms.
  static Clock calibrate() {
    constexpr uint64_t kWindowNs = 20'000'000;
    Clock clock;
    clock.base_ns_ = monotonic_ns();
    clock.base_tsc_ = __rdtsc();
    uint64_t now = clock.base_ns_;
    while (now - clock.base_ns_ < kWindowNs) now = monotonic_ns();
    const uint64_t ticks = __rdtsc() - clock.base_tsc_;
    clock.ns_per_tick_fp_ =
        static_cast<uint64_t>((static_cast<__uint128_t>(now - clock.base_ns_) << 32) / ticks);
    return clock;
  }
  uint64_t now_ns() const {
    return base_ns_ +
           static_cast<uint64_t>((static_cast<__uint128_t>(__rdtsc() - base_tsc_) * ns_per_tick_fp_) >> 32);
  }

 private:
  uint64_t base_ns_ = 0;
  uint64_t base_tsc_ = 0;
  uint64_t ns_per_tick_fp_ = 0;
};

}  // namespace sluice::lane
