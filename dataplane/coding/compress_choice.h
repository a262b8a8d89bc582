// Whether a sender compresses its next extent: only where the network is what it waits for, and only data
// that get shorter (docs/decisions/0027-compression.md).
//
// Pure. A worker compresses on the thread that sends. So it measures how fast it does (CompressSpeed, one for
// a worker), and compresses where that is well above the rate of the flow: then the next extent is ready
// before the one before has left. Each flow remembers what its data were like (CompressChoice): those that do
// not get shorter are tried ever more seldom, and giving one up costs one step (kCompressStepBytes).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/coding/zstd_frame.h"

namespace sluice::coding {

// Plain bits a second that this worker compresses, beside all else that it does meanwhile.
class CompressSpeed {
 public:
  // Until it is measured: what an old core does.
  static constexpr double kFastBps = 1.2e9;
  static constexpr double kShortBps = 0.8e9;

  void took(Effort effort, uint64_t plain_bytes, uint64_t ns) {
    if (plain_bytes == 0 || ns == 0) return;
    double& bps = effort == Effort::kFast ? fast_bps_ : short_bps_;
    const double now_bps = static_cast<double>(plain_bytes) * 8e9 / static_cast<double>(ns);
    bps += (now_bps - bps) / kSmoothing;
  }
  double bps(Effort effort) const { return effort == Effort::kFast ? fast_bps_ : short_bps_; }

 private:
  static constexpr double kSmoothing = 16;  // steps

  double fast_bps_ = kFastBps;
  double short_bps_ = kShortBps;
};

class CompressChoice {
 public:
  enum class Next : uint8_t {
    kCompress,
    kPlain,   // this extent travels plain
    kNotNow,  // so would it, if it left now
  };

  // A frame has to be so much shorter than its extent: what is saved has to be worth the restoring.
  static constexpr uint32_t kFramePercentMax = 95;
  static constexpr uint32_t kPlainBytesMin = 1024;  // extents that are shorter travel plain
  // How much faster a worker has to compress than the flow sends.
  static constexpr double kFasterThanRate = 2;
  static constexpr double kFasterForShort = 4;
  // After two extents in a row that did not get shorter, so many are not tried: twice as many each time.
  static constexpr uint32_t kSkippedMax = 16;

  explicit CompressChoice(bool always) : always_(always) {}

  bool always() const { return always_; }
  // The next extent is about to be decided on; of `rate_bps` of the flow, which is still being found if it
  // `ramps`: then it says nothing of the network, and would not grow beyond what is compressed meanwhile.
  Next next(uint32_t plain_bytes, uint64_t rate_bps, bool ramps, const CompressSpeed& speed) {
    if (plain_bytes < kPlainBytesMin) return Next::kPlain;
    if (always_) return Next::kCompress;
    if (ramps) return Next::kNotNow;
    if (static_cast<double>(rate_bps) * kFasterThanRate > speed.bps(Effort::kFast)) return Next::kNotNow;
    if (skipped_ == 0) return Next::kCompress;
    --skipped_;
    return Next::kPlain;
  }
  static Effort effort(uint64_t rate_bps, const CompressSpeed& speed) {
    const bool in_time = static_cast<double>(rate_bps) * kFasterForShort <= speed.bps(Effort::kShort);
    return in_time ? Effort::kShort : Effort::kFast;
  }
  // At most so long may the frame of an extent be.
  static uint32_t frame_bytes_max(uint32_t plain_bytes) {
    return static_cast<uint32_t>(uint64_t{plain_bytes} * kFramePercentMax / 100);
  }

  void got_shorter(uint32_t plain_bytes, uint32_t wire_bytes) {
    failed_ = 0;
    share_ += (static_cast<double>(wire_bytes) / plain_bytes - share_) / kSmoothing;
  }
  void did_not() {
    share_ += (1 - share_) / kSmoothing;
    failed_ = std::min(failed_ + 1, 10U);
    if (!always_ && failed_ > 1) skipped_ = std::min(1U << (failed_ - 1), kSkippedMax);
  }
  // Of an extent, what lately was left of it on the wire.
  double share() const { return share_; }

 private:
  static constexpr double kSmoothing = 8;  // extents

  const bool always_;
  uint32_t failed_ = 0;   // in a row
  uint32_t skipped_ = 0;  // still to be left plain without a try
  double share_ = 1;
};

}  // namespace sluice::coding
