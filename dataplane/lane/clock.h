// CLOCK_MONOTONIC in nanoseconds, read from the TSC: one cheap read per loop, no system call.
//
// A thread has its own. The TSC is compared with the system's clock once a millisecond for as long as the
// thread runs (dataplane/core/tick_clock.h). Where the kernel itself keeps time by something else, the TSC is
// not used.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <x86intrin.h>

#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>

#include "dataplane/core/tick_clock.h"

namespace sluice::lane {

inline uint64_t monotonic_ns() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000ULL + static_cast<uint64_t>(t.tv_nsec);
}

// What the kernel keeps time by: "tsc", "kvm-clock", "hpet"; empty where it does not say.
std::string kernel_clock_source();
// Whether time can be told from the TSC while the kernel keeps it by this source. A kernel that has a TSC and
// uses another device found it unstable, stopping, or different from CPU to CPU. Where it does not say, the
// CPU is asked.
bool tsc_is_usable(std::string_view clock_source);

class Clock {
 public:
  // Without the TSC each reading is one of the system's clock.
  explicit Clock(bool with_tsc) : with_tsc_(with_tsc) {}

  uint64_t now_ns() {
    if (!with_tsc_) return monotonic_ns();
    if (const auto ns = ticks_.at(__rdtsc())) return *ns;
    return ticks_.learn(closest_pair(monotonic_ns, read_ticks, &least_gap_ns_));
  }
  // How often the TSC and the system's clock turned out to have parted.
  uint64_t partings() const { return ticks_.partings(); }

 private:
  // Neither before the reading of the system's clock in front of it nor after the one behind it.
  static uint64_t read_ticks() {
    _mm_lfence();
    const uint64_t ticks = __rdtsc();
    _mm_lfence();
    return ticks;
  }

  bool with_tsc_;
  TickClock ticks_;
  uint64_t least_gap_ns_ = UINT64_MAX / 4;
};

}  // namespace sluice::lane
