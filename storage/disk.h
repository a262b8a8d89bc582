// What a worker asks of its disks: whole extents read and written, in batches, never blocking.
//
// One thread: the worker that called open. Ring (ring.h) is the real one; the simulator (tools/sim) puts
// disks of its own here. One virtual call per extent, none per chunk.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "dataplane/base/error.h"

namespace sluice::storage {

struct Completion {
  uint32_t slot = 0;  // as given to start
  int error = 0;      // 0 or errno; ENODATA: the file ended early
};

struct Operation {
  int fd = -1;
  uint8_t* data = nullptr;
  uint64_t offset = 0;
  uint32_t length = 0;  // bytes that matter
  bool write = false;
  bool direct = false;  // O_DIRECT: the length asked of the kernel is rounded up to kDirectAlignment
};
inline constexpr uint32_t kDirectAlignment = 4096;

class Disk {
 public:
  Disk() = default;
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;
  virtual ~Disk() = default;

  // `slots`: operations that may be under way, numbered by the caller 0..slots-1. `memory`: region that
  // holds every buffer. `helper_cpus`: where threads other than the worker's may run; empty: anywhere.
  // `warn` gets what works less well than it should. kResources when there is no such disk to be had.
  virtual Status open(uint32_t slots, std::span<uint8_t> memory, std::span<const int> helper_cpus,
                      const std::function<void(const std::string&)>& warn) = 0;

  // Starts an operation on a free slot; it is handed over at the next submit().
  virtual void start(uint32_t slot, const Operation& operation) = 0;
  // Hands over what was started; one system call at most, none if there is nothing.
  virtual void submit() = 0;
  // Finished operations, at most out.size(); does not wait.
  virtual uint32_t poll(std::span<Completion> out) = 0;
  virtual uint32_t in_flight() const = 0;
  virtual uint64_t short_operations() const = 0;  // continued by itself
};

}  // namespace sluice::storage
