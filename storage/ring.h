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

#include "storage/disk.h"

namespace sluice::storage {

class Ring final : public Disk {
 public:
  Ring() = default;
  ~Ring() override;
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Registers the memory; warns where that is refused, or where the kernel's helper threads cannot be moved
  // (they inherit the affinity of a pinned thread otherwise: measured, tmpfs at half speed), or the ring
  // cannot be restricted.
  Status open(uint32_t slots, std::span<uint8_t> memory, std::span<const int> helper_cpus,
              const std::function<void(const std::string&)>& warn) override;
  void start(uint32_t slot, const Operation& operation) override;
  void submit() override;
  uint32_t poll(std::span<Completion> out) override;
  uint32_t in_flight() const override { return in_flight_; }
  uint64_t short_operations() const override { return short_operations_; }
  // The kernel lets it do nothing but read and write: not open, connect or accept, which no filter of system
  // calls sees.
  bool restricted() const { return restricted_; }

 private:
  struct Progress {
    Operation operation;
    uint32_t done = 0;
    bool cached = false;  // by way of the page cache, after the file system refused it
  };
  void queue(uint32_t slot);
  // True when the operation is over; *error is set then.
  bool advance(uint32_t slot, int result, int* error);

  io_uring ring_{};
  bool open_ = false;
  bool registered_ = false;
  bool restricted_ = false;
  uint32_t in_flight_ = 0;
  uint32_t unsubmitted_ = 0;
  uint64_t short_operations_ = 0;
  std::vector<Progress> progress_;
};

}  // namespace sluice::storage
