// Times since 1970 in nanoseconds, and as system calls take them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>

#include "dataplane/base/file_time.h"

namespace sluice::exports {

inline base::FileTimeNs ns_of(const timespec& time) { return base::file_time_ns(time.tv_sec, time.tv_nsec); }
inline base::FileTimeNs ns_of(const struct statx_timestamp& time) {
  return base::file_time_ns(time.tv_sec, time.tv_nsec);
}
// Of times that the clock of this system gave, and nobody else.
inline int64_t clock_ns_of(const timespec& time) { return base::clamped_ns(ns_of(time)); }
inline int64_t clock_ns_of(const struct statx_timestamp& time) { return base::clamped_ns(ns_of(time)); }

inline timespec timespec_of(base::FileTimeNs time_ns) {
  return {.tv_sec = base::whole_seconds(time_ns), .tv_nsec = base::rest_of_second_ns(time_ns)};
}

// A file system may keep less of it: whole seconds, or, as NTFS, hundreds of nanoseconds.
inline bool same_time(const timespec& kept, const timespec& wanted) {
  for (long step = 1; step <= 1'000'000'000; step *= 10) {
    if (kept.tv_nsec == wanted.tv_nsec - wanted.tv_nsec % step) return kept.tv_sec == wanted.tv_sec;
  }
  return false;
}

// Did a file system make `kept` of a time that it was given? Of one that it cannot hold it makes another:
// which, is tried out on `fd`, something in it whose time does not matter.
inline bool is_made_of(const timespec& kept, const timespec& given, int fd) {
  if (same_time(kept, given)) return true;
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, given};
  struct stat made {};
  return ::futimens(fd, times) == 0 && ::fstat(fd, &made) == 0 && made.st_mtim.tv_sec == kept.tv_sec &&
         made.st_mtim.tv_nsec == kept.tv_nsec;
}

}  // namespace sluice::exports
