// Which file it is, and which state of it: by that a file is known to be as it was without being read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <ctime>

namespace sluice::identity {

struct Stamp {
  dev_t device = 0;
  ino_t inode = 0;
  off_t bytes = 0;
  int64_t modified_ns = 0;
  int64_t changed_ns = 0;
  bool operator==(const Stamp&) const = default;
};

inline int64_t ns_of(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

inline Stamp stamp_of(const struct stat& status) {
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .bytes = status.st_size,
          .modified_ns = ns_of(status.st_mtim),
          .changed_ns = ns_of(status.st_ctim)};
}

}  // namespace sluice::identity
