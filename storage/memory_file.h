// Files that live in memory (tmpfs): no device would read or write them, so they are mapped, and their bytes
// are moved by the worker itself, without a copy in between (docs/decisions/0009-memory-in-huge-pages.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace sluice::storage {

// Of a tmpfs. Asks the kernel alone, so it answers at once, whatever the file system does.
bool is_memory_file(int fd);

// A source (read only) or a destination, whole. Made and ended by one thread, cold; the rest by any worker.
//
// Another process may cut the file off meanwhile, and access then raises SIGBUS: a handler of this process
// puts zeros in the place of what is gone, and damaged() tells.
class Mapping {
 public:
  // Linux allots a tmpfs page by page, at more than the price of copying it, unless it is told otherwise: a
  // destination is allotted in blocks of this size where it can be.
  static constexpr uint64_t kBlockBytes = 2 * 1024 * 1024;

  // nullptr where it cannot be had, or the file has holes (a mapping would fill them).
  static std::unique_ptr<Mapping> of_source(int fd, uint64_t bytes);
  // `fd` is open for reading, too: mappings need that.
  static std::unique_ptr<Mapping> of_destination(int fd, uint64_t bytes);
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  // Makes the bytes accessible without page faults, those of a destination writable and allotted. 0, or
  // errno: ENODATA, the file ended early; ENOSPC.
  int populate(uint64_t offset, uint64_t bytes);
  void forget(uint64_t offset, uint64_t bytes);  // the opposite; the file keeps its pages
  uint8_t* data() const { return data_; }
  bool damaged() const;

 private:
  Mapping(int fd, uint8_t* data, uint64_t bytes, bool writable, size_t slot);
  static std::unique_ptr<Mapping> of(int fd, uint64_t bytes, bool writable);
  static void on_sigbus(int signal, siginfo_t* info, void* context);
  void allot_blocks(uint64_t offset, uint64_t bytes);

  int fd_;  // the caller's
  uint8_t* data_;
  uint64_t bytes_;
  bool writable_;
  size_t slot_;  // what the signal handler knows of it
  // Of a destination: a bit for each block that was tried.
  std::unique_ptr<std::atomic<uint64_t>[]> allotted_;
};

}  // namespace sluice::storage
