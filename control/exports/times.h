// Times since 1970 in nanoseconds, as system calls take them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>

namespace sluice::exports {

// What a file system may say is more than fits: then the first, or the last, that does.
inline int64_t ns_since_1970(int64_t seconds, int64_t rest_ns) {
  int64_t ns = 0;
  if (__builtin_mul_overflow(seconds, int64_t{1'000'000'000}, &ns) ||
      __builtin_add_overflow(ns, rest_ns, &ns))
    return seconds < 0 ? INT64_MIN : INT64_MAX;
  return ns;
}

inline int64_t ns_of(const timespec& time) { return ns_since_1970(time.tv_sec, time.tv_nsec); }
inline int64_t ns_of(const struct statx_timestamp& time) { return ns_since_1970(time.tv_sec, time.tv_nsec); }

// Also before 1970.
inline timespec timespec_of(int64_t ns) {
  constexpr int64_t kSecondNs = 1'000'000'000;
  const int64_t rest_ns = ns % kSecondNs;
  if (rest_ns >= 0) return {.tv_sec = ns / kSecondNs, .tv_nsec = rest_ns};
  return {.tv_sec = ns / kSecondNs - 1, .tv_nsec = rest_ns + kSecondNs};
}

// A file system may keep less of it: whole seconds, or, as NTFS, hundreds of nanoseconds.
inline bool same_time(const timespec& kept, const timespec& wanted) {
  for (long step = 1; step <= 1'000'000'000; step *= 10) {
    if (kept.tv_nsec == wanted.tv_nsec - wanted.tv_nsec % step) return kept.tv_sec == wanted.tv_sec;
  }
  return false;
}

}  // namespace sluice::exports
