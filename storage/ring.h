// One worker's io_uring: whole extents read and written, in batches, never blocking.
//
// One thread (the one that called open). Buffers lie in one registered region, so that the kernel does
// not pin pages per operation; where registration is refused (memory lock limit) it works without and
// says so. Short operations are continued here; the caller sees one completion per extent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <liburing.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "dataplane/core/error.h"

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

class Ring {
 public:
  Ring() = default;
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // `slots`: operations that may be under way, numbered by the caller 0..slots-1. `memory`: region
  // that holds every buffer. `worker_cpus`: where the kernel's helper threads may run (they inherit
  // the affinity of a pinned thread otherwise: measured, tmpfs at half speed); empty: leave.
  // `warn` gets what works less well than it should. kResources when io_uring cannot be had.
  Status open(uint32_t slots, std::span<uint8_t> memory, std::span<const int> worker_cpus,
              const std::function<void(const std::string&)>& warn);

  // Starts an operation on a free slot; it is handed to the kernel at the next submit().
  void start(uint32_t slot, const Operation& operation);
  // Hands over what was started; one system call, none if there is nothing.
  void submit();
  // Finished operations, at most out.size(); does not wait.
  uint32_t poll(std::span<Completion> out);
  uint32_t in_flight() const { return in_flight_; }
  uint64_t short_operations() const { return short_operations_; }

 private:
  struct Progress {
    Operation operation;
    uint32_t done = 0;
  };
  void queue(uint32_t slot);
  // True when the operation is over; *error is set then.
  bool advance(uint32_t slot, int result, int* error);

  io_uring ring_{};
  bool open_ = false;
  bool registered_ = false;
  uint32_t in_flight_ = 0;
  uint32_t unsubmitted_ = 0;
  uint64_t short_operations_ = 0;
  std::vector<Progress> progress_;
};

}  // namespace sluice::storage
