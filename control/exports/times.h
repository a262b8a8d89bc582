// Times since 1970 in nanoseconds, as system calls take them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ctime>

namespace sluice::exports {

// Also before 1970.
inline timespec timespec_of(int64_t ns) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  const int64_t rest_ns = (ns % kSecondNs + kSecondNs) % kSecondNs;
  return {.tv_sec = (ns - rest_ns) / kSecondNs, .tv_nsec = rest_ns};
}

}  // namespace sluice::exports
