// Files that live in memory (tmpfs): no device would read or write them, so their bytes are moved by the
// worker itself, without a copy in between.
//
// A source is mapped, and chunks leave from the mapping; a destination is written from where chunks lie when
// they arrive. Measured: io_uring gives such files to a helper thread and costs a copy more on either side.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>

namespace sluice::storage {

bool is_memory_file(int fd);

// A source, read-only. Made and ended by one thread, cold; the rest by any worker.
//
// Another process may cut the file off meanwhile, and access then raises SIGBUS: a handler of this process
// puts zeros in the place of what is gone, and damaged() tells.
class Mapping {
 public:
  // nullptr where it cannot be had, or the file has holes (a mapping would fill them).
  static std::unique_ptr<Mapping> of(int fd, uint64_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // Makes the bytes accessible without page faults: 0, or errno (ENODATA: the file ended early).
  int populate(uint64_t offset, uint64_t bytes);
  void forget(uint64_t offset, uint64_t bytes);  // the opposite; the file keeps its pages
  uint8_t* data() const { return data_; }
  bool damaged() const { return damaged_.load(std::memory_order_acquire); }

 private:
  Mapping(uint8_t* data, uint64_t bytes) : data_(data), bytes_(bytes) {}
  static void on_sigbus(int signal, siginfo_t* info, void* context);

  uint8_t* data_;
  uint64_t bytes_;
  std::atomic<bool> damaged_{false};
};

// Writes of a destination, gathered over a burst of frames: bytes that follow each other go in one call.
// One thread.
class GatheredWrites {
 public:
  static constexpr uint32_t kPartsMax = 32;

  // False when it is full, or this is not what follows: flush, and add again.
  bool add(int fd, uint64_t offset, const uint8_t* data, uint32_t bytes);
  bool empty() const { return parts_ == 0; }
  // Writes all of it: 0 or errno.
  int flush();

 private:
  std::array<iovec, kPartsMax> vectors_;
  uint32_t parts_ = 0;
  int fd_ = -1;
  uint64_t offset_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace sluice::storage
