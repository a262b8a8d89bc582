// When a file was last written, as file systems keep it: seconds and nanoseconds, which 64 bits of
// nanoseconds hold from 1677 to 2262 only. Archives and instruments with a wrong clock write other years.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::base {

// Nanoseconds since 1970: any number of seconds that a time_t holds, without loss.
using FileTimeNs = __int128;

inline constexpr int64_t kFileSecondNs = 1'000'000'000;

constexpr FileTimeNs file_time_ns(int64_t seconds, int64_t rest_ns) {
  return FileTimeNs{seconds} * kFileSecondNs + rest_ns;
}

// The first, or the last, of what 64 bits hold where it is beyond these.
constexpr int64_t clamped_ns(FileTimeNs time_ns) {
  return static_cast<int64_t>(std::clamp<FileTimeNs>(time_ns, INT64_MIN, INT64_MAX));
}

constexpr bool fits_64_bits(FileTimeNs time_ns) { return time_ns == clamped_ns(time_ns); }

// The second that it lies in, also before 1970, and what is behind the beginning of that.
constexpr int64_t whole_seconds(FileTimeNs time_ns) {
  const FileTimeNs seconds = time_ns / kFileSecondNs - (time_ns % kFileSecondNs < 0 ? 1 : 0);
  return static_cast<int64_t>(seconds);
}
constexpr int64_t rest_of_second_ns(FileTimeNs time_ns) {
  return static_cast<int64_t>(time_ns - FileTimeNs{whole_seconds(time_ns)} * kFileSecondNs);
}

// To and from messages: all have these three fields (docs/WIRE.md 2.7). Who knows `mtime_ns` alone reads the
// nearest time that fits.
void put_file_time(FileTimeNs time_ns, auto* to) {
  to->set_mtime_ns(clamped_ns(time_ns));
  if (fits_64_bits(time_ns)) return;
  to->set_mtime_seconds(whole_seconds(time_ns));
  to->set_mtime_rest_ns(static_cast<uint32_t>(rest_of_second_ns(time_ns)));
}
FileTimeNs file_time_of(const auto& from) {
  if (!from.has_mtime_seconds()) return from.mtime_ns();
  return file_time_ns(from.mtime_seconds(), std::min<int64_t>(from.mtime_rest_ns(), kFileSecondNs - 1));
}

}  // namespace sluice::base
