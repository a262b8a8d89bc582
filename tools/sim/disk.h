// A worker's disk over a FileSystem: operations take their time, end in any order, and may fail.
//
// Bytes move when an operation ends, as a device does it: whoever uses a buffer again too early is found
// out. When the dataplane dies, what is under way happens, or not, or in part.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "storage/disk.h"
#include "tools/sim/file_system.h"
#include "tools/sim/plan.h"
#include "tools/sim/scheduler.h"
#include "tools/sim/trace.h"

namespace sluice::sim {

class Oracle;

// Descriptors far above those of the process, so that closing one touches nothing.
inline constexpr int kDescriptorBase = 1 << 30;

// What the disks of one node share.
struct DiskShared {
  uint32_t node = 0;
  const DiskPlan& plan;
  FileSystem& files;
  Scheduler& scheduler;
  Trace& trace;
  Oracle& oracle;
  Random random;
  bool faults = true;
  uint32_t errors = 0;
  bool full_told = false;
  bool misread = false;  // the plan wants one, and it has not been yet
  bool misread_done = false;
  std::map<int, uint64_t> descriptors;  // -> inode
  // Does control know the CRC of these bytes from an earlier read? Only then can it find a wrong one.
  std::function<bool(uint64_t inode, uint64_t offset)> crc_known;
  // Errors of single files: 0 for others.
  std::function<int(uint64_t inode)> bad_file = [](uint64_t) { return 0; };
  int error_of(uint64_t inode) const { return faults ? bad_file(inode) : 0; }
  uint64_t latency_ns();
  int open(uint64_t inode);
};

class SimDisk final : public storage::Disk {
 public:
  SimDisk(DiskShared& shared, std::function<void(uint64_t)> wake) : shared_(shared), wake_(std::move(wake)) {}

  Status open(uint32_t slots, std::span<uint8_t> memory, std::span<const int> helper_cpus,
              const std::function<void(const std::string&)>& warn) override;
  void start(uint32_t slot, const storage::Operation& operation) override;
  void submit() override {}
  uint32_t poll(std::span<storage::Completion> out) override;
  uint32_t in_flight() const override { return static_cast<uint32_t>(active_.size()); }
  uint64_t short_operations() const override { return 0; }
  // The process is killed: buffers are still there.
  void die();

 private:
  struct Active {
    uint64_t due_ns = 0;
    uint64_t serial = 0;
    uint32_t slot = 0;
    storage::Operation operation;
  };
  int finish(const storage::Operation& operation);
  int read(const storage::Operation& operation, uint64_t inode);
  void write(const storage::Operation& operation, uint64_t inode, uint64_t length);
  static uint64_t asked(const storage::Operation& operation);

  DiskShared& shared_;
  std::function<void(uint64_t)> wake_;
  std::vector<Active> active_;  // sorted by (due, serial), the first last
  uint64_t serial_ = 0;
  uint32_t slots_ = 0;
};

}  // namespace sluice::sim
