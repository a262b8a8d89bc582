// How fast a disk takes what a worker gives it, and the rate that follows for the senders.
//
// Pure; one owner: the receiving side of a worker. The disk's speed is known only while it is what holds
// things up: while it has work all the time. Then the advice is its speed, a little more while buffers are
// free and down to half of it as they fill up; otherwise there is none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

class DrainRate {
 public:
  static constexpr uint64_t kSampleNs = 20'000'000;
  // A single write may take longer than a sample. A disk that ends none in this time stands still.
  static constexpr uint64_t kStillNs = 1'000'000'000;
  static constexpr uint64_t kLeastBps = 1'000'000;  // 0 would mean no advice
  // With fewer extents at the disk than this part of all it is not the disk that is slow.
  static constexpr uint32_t kBusyShare = 8;

  struct Buffers {
    uint32_t all = 0;
    uint32_t free = 0;
    uint32_t writing = 0;  // the disk has them
  };

  void written(uint64_t bytes) { bytes_ += bytes; }
  // The disk has nothing to do.
  void idle() {
    was_busy_ = false;
    advice_bps_ = 0;
  }
  void sample(const Buffers& buffers, uint64_t now_ns) {
    if (buffers.writing == 0) return idle();
    const bool busy = buffers.writing >= std::max(2U, buffers.all / kBusyShare);
    if (!busy || !was_busy_) {
      begin(now_ns);
      was_busy_ = busy;
      has_ended_one_ = false;
      return;
    }
    // Time counts from the end of a write: the disk had begun the first ones at different times before.
    if (!has_ended_one_ && bytes_ != 0) {
      has_ended_one_ = true;
      return begin(now_ns);
    }
    const uint64_t elapsed_ns = now_ns - began_ns_;
    const bool measures = bytes_ != 0 || (has_ended_one_ && drain_bps_ != 0);
    if (elapsed_ns < (measures ? kSampleNs : kStillNs)) return;
    const double now_bps = static_cast<double>(bytes_) * 8e9 / static_cast<double>(elapsed_ns);
    drain_bps_ = drain_bps_ == 0 ? now_bps : drain_bps_ + (now_bps - drain_bps_) / 4;
    const double target = std::max(1.0, static_cast<double>(buffers.all) / 2);
    const double surplus = (static_cast<double>(buffers.free) - target) / target;
    advice_bps_ = std::max<uint64_t>(
        kLeastBps, static_cast<uint64_t>(drain_bps_ * std::clamp(1 + 0.5 * surplus, 0.5, 1.1)));
    begin(now_ns);
  }
  uint64_t advice_bps() const { return advice_bps_; }  // of all flows together; 0: none

 private:
  void begin(uint64_t now_ns) {
    began_ns_ = now_ns;
    bytes_ = 0;
  }

  uint64_t bytes_ = 0;
  uint64_t began_ns_ = 0;
  bool was_busy_ = false;
  bool has_ended_one_ = false;  // a write, since it is busy
  double drain_bps_ = 0;
  uint64_t advice_bps_ = 0;
};

}  // namespace sluice
