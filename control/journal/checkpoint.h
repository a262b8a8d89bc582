// When what stands in the write-ahead log is put into the database: not while anybody waits for a write.
//
// SQLite would do it at the end of the write that fills the log, which then takes some 50 ms instead of one.
// Here it is done when nothing was written for a while; at once only where writes leave no such pause and the
// log grows on.
//
// Pure; time is an argument.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::journal {

class Checkpoint {
 public:
  static constexpr uint32_t kPagesWorthIt = 1000;  // SQLite's own limit: 4 MB
  static constexpr uint32_t kPagesMax = 8 * kPagesWorthIt;
  static constexpr uint64_t kQuietNs = 200'000'000;

  // A write has ended, after which so many pages stand in the log.
  void written(uint32_t pages, uint64_t now_ns) {
    pages_ = pages;
    written_ns_ = now_ns;
  }
  // It was done, or could not be: then it is tried again after the next write.
  void done() { pages_ = 0; }
  // UINT64_MAX: there is nothing worth it.
  uint64_t due_ns() const {
    if (pages_ >= kPagesMax) return written_ns_;
    return pages_ >= kPagesWorthIt ? written_ns_ + kQuietNs : UINT64_MAX;
  }

 private:
  uint32_t pages_ = 0;
  uint64_t written_ns_ = 0;
};

}  // namespace sluice::journal
