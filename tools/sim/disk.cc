// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/disk.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "tools/sim/oracle.h"

namespace sluice::sim {

uint64_t DiskShared::latency_ns() {
  uint64_t ns = plan.latency_ns;
  if (plan.jitter_ns > 0) ns += random.below(plan.jitter_ns);
  if (faults && plan.slow_per_million > 0 && random.chance(plan.slow_per_million)) ns += plan.slow_ns;
  return ns;
}

int DiskShared::open(uint64_t inode) {
  const int fd = kDescriptorBase + static_cast<int>(descriptors.size());
  descriptors[fd] = inode;
  return fd;
}

Status SimDisk::open(uint32_t slots, std::span<uint8_t>, std::span<const int>,
                     const std::function<void(const std::string&)>&) {
  slots_ = slots;
  return {};
}

void SimDisk::start(uint32_t slot, const storage::Operation& operation) {
  const uint64_t due = shared_.scheduler.now_ns() + shared_.latency_ns();
  const auto taken = [&](const Active& each) { return each.slot == slot; };
  if (slot >= slots_ || std::any_of(active_.begin(), active_.end(), taken)) {
    shared_.oracle.fail("a disk slot is used twice at a time");
    return;
  }
  const Active active{.due_ns = due, .serial = serial_++, .slot = slot, .operation = operation};
  const auto at =
      std::upper_bound(active_.begin(), active_.end(), active, [](const Active& a, const Active& b) {
        return a.due_ns != b.due_ns ? a.due_ns > b.due_ns : a.serial > b.serial;
      });
  active_.insert(at, active);
  wake_(due);
}

uint64_t SimDisk::asked(const storage::Operation& op) {
  constexpr uint64_t kAlign = storage::kDirectAlignment;
  return op.direct ? (op.length + kAlign - 1) / kAlign * kAlign : op.length;
}

uint32_t SimDisk::poll(std::span<storage::Completion> out) {
  uint32_t n = 0;
  while (n < out.size() && !active_.empty() && active_.back().due_ns <= shared_.scheduler.now_ns()) {
    const Active done = active_.back();
    active_.pop_back();
    const int error = finish(done.operation);
    shared_.trace.add(shared_.scheduler.now_ns(), shared_.node, done.operation.write ? "write" : "read",
                      done.operation.offset, done.operation.length, static_cast<uint64_t>(error));
    out[n++] = {done.slot, error};
  }
  return n;
}

int SimDisk::finish(const storage::Operation& op) {
  const auto at = shared_.descriptors.find(op.fd);
  if (at == shared_.descriptors.end() || shared_.files.inode(at->second) == nullptr) return EBADF;
  DiskShared& s = shared_;
  if (s.faults && s.errors < s.plan.errors_max && s.random.chance(s.plan.error_per_million)) {
    ++s.errors;
    s.oracle.allow_failures();
    return EIO;
  }
  if (const int error = s.error_of(at->second); error != 0) return error;
  if (!op.write) return read(op, at->second);
  if (s.faults && s.plan.full && s.random.chance(20'000)) {
    s.oracle.allow_failures();
    return ENOSPC;
  }
  write(op, at->second, asked(op));
  return 0;
}

int SimDisk::read(const storage::Operation& op, uint64_t inode) {
  const FileSystem::Inode& file = *shared_.files.inode(inode);
  if (op.offset + op.length > file.now.size()) return ENODATA;
  std::memcpy(op.data, file.now.data() + op.offset, op.length);
  if (shared_.misread && !shared_.misread_done && shared_.crc_known && shared_.crc_known(inode, op.offset) &&
      shared_.random.chance(300'000)) {
    shared_.misread_done = true;
    shared_.oracle.allow(End::kIntegrity);
    shared_.oracle.misread();
    shared_.oracle.allow_failures();
    op.data[shared_.random.below(op.length)] ^= 0x10;
    shared_.trace.add(shared_.scheduler.now_ns(), shared_.node, "misread", op.offset, op.length);
  }
  return 0;
}

void SimDisk::write(const storage::Operation& op, uint64_t inode, uint64_t length) {
  shared_.oracle.written(inode, op.offset, op.data, op.length);
  shared_.files.write(inode, op.offset, op.data, length);
}

void SimDisk::die() {
  for (const Active& each : active_) {
    const auto at = shared_.descriptors.find(each.operation.fd);
    if (!each.operation.write || at == shared_.descriptors.end()) continue;
    const uint64_t length = asked(each.operation);
    const uint64_t part = shared_.random.flip() ? length : shared_.random.below(length + 1) / 512 * 512;
    if (shared_.random.flip())
      shared_.files.write(at->second, each.operation.offset, each.operation.data, part);
  }
  active_.clear();
}

}  // namespace sluice::sim
