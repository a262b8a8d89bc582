// Two leaky buckets of one lane, in integer arithmetic: when may the next frame leave?
//
// Pure; time is what the caller passes, nanoseconds of one monotonic clock. Each frame moves the earliest
// time of the next one by its bytes on the wire. The first bucket runs at the rate and remembers what was
// missed in a stall: up to 1 ms, and no more frames than the peer says that its receive queue takes, since in
// front of a link that carries the rate and no more they queue up. The second runs an eighth faster and
// remembers next to nothing: so a pause is made up for by and by, and never becomes a burst. With one bucket
// that forgets after 10 us the pauses of a virtual machine took 1.5 % of 10 Gbit/s and 4 % of 25.
// docs/decisions/0006-pacing-remembers-a-stall.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

class Pacer {
 public:
  // What a stall may leave to be made up for. Where the peer does not say what its queue takes: half of the
  // 256 frames that a shallow switch port holds.
  static constexpr uint64_t kDebtNs = 1'000'000;
  static constexpr uint64_t kDebtFrames = 128;
  static constexpr uint64_t kDebtFramesMin = 16;
  // Of the queue so much is left to others.
  static constexpr uint64_t kQueueSpared = 8;
  // Frames that take so long leave each by itself; of shorter ones so many nanoseconds at once.
  static constexpr uint64_t kSingleFrameNs = 2'000;
  static constexpr uint64_t kBurstNs = 10'000;
  // The second bucket's rate is (1 + 1/7) of the first's.
  static constexpr uint64_t kPeakShare = 8;

  // Of this lane so many datagrams may wait where the peer receives it; 0: it does not say.
  void set_queue(uint64_t datagrams) {
    debt_frames_ =
        datagrams == 0 ? kDebtFrames : std::max(datagrams - datagrams / kQueueSpared, kDebtFramesMin);
  }

  // 0 stops. What is owed stays owed, in bytes: a rise shortens it, so that a lane which crawled goes on at
  // once.
  void set_rate(uint64_t rate_bps) {
    if (rate_bps == rate_bps_) return;
    const uint64_t before_bps = rate_bps_;
    rate_bps_ = rate_bps == 1 ? 2 : rate_bps;  // the price of a byte at one bit a second would not fit
    // Nanoseconds a byte in 32.32 fixed point: 8e9 / rate.
    ns_per_byte_fp_ =
        rate_bps == 0 ? 0
                      : static_cast<uint64_t>((static_cast<__uint128_t>(8'000'000'000ULL) << 32) / rate_bps_);
    if (before_bps != 0 && rate_bps_ > before_bps) rise(before_bps);
  }
  uint64_t rate_bps() const { return rate_bps_; }

  bool ready(uint64_t now_ns) const { return rate_bps_ != 0 && now_ns >= next_ns_; }
  uint64_t next_ns() const { return next_ns_; }

  // A frame of `wire_bytes` (frame, FCS, preamble and gap) leaves at `now_ns`; ready() was true.
  void sent(uint64_t now_ns, uint32_t wire_bytes) {
    // At a crawl a frame takes seconds, which are more than 32 bits of nanoseconds.
    const __uint128_t cost_fp = static_cast<__uint128_t>(wire_bytes) * ns_per_byte_fp_;
    const auto frames_ns = static_cast<uint64_t>((debt_frames_ * cost_fp) >> 32);
    const uint64_t burst_ns = (cost_fp >> 32) < kSingleFrameNs ? kBurstNs : 0;
    if (last_bytes_ == 0) mean_ = peak_ = {.next_ns = now_ns};  // before the first nothing was missed
    mean_.take(now_ns, cost_fp, std::min(kDebtNs, frames_ns));
    peak_.take(now_ns, cost_fp - cost_fp / kPeakShare, burst_ns);
    next_ns_ = std::max(mean_.next_ns, peak_.next_ns);
    last_ns_ = now_ns;
    last_bytes_ = wire_bytes;
  }

 private:
  struct Bucket {
    uint64_t next_ns = 0;
    uint64_t fraction = 0;  // of a nanosecond, 32 bits

    void take(uint64_t now_ns, __uint128_t cost_fp, uint64_t remembered_ns) {
      if (next_ns + remembered_ns < now_ns) {
        next_ns = now_ns - remembered_ns;
        fraction = 0;
      }
      const uint64_t sum = fraction + static_cast<uint32_t>(cost_fp);
      next_ns += static_cast<uint64_t>(cost_fp >> 32) + (sum >> 32);
      fraction = sum & 0xFFFFFFFF;
    }
  };

  // What is owed since the last frame, at the new rate; and nothing that was saved up before it.
  void rise(uint64_t before_bps) {
    const uint64_t owed_ns = next_ns_ > last_ns_ ? next_ns_ - last_ns_ : 0;
    const auto at_new_rate_ns =
        static_cast<uint64_t>(static_cast<__uint128_t>(owed_ns) * before_bps / rate_bps_);
    const auto frame_ns =
        static_cast<uint64_t>((static_cast<__uint128_t>(last_bytes_) * ns_per_byte_fp_) >> 32);
    next_ns_ = last_ns_ + std::max(at_new_rate_ns, frame_ns);
    mean_ = peak_ = {.next_ns = next_ns_};
  }

  uint64_t rate_bps_ = 0;
  uint64_t ns_per_byte_fp_ = 0;
  uint64_t debt_frames_ = kDebtFrames;
  Bucket mean_;
  Bucket peak_;
  uint64_t next_ns_ = 0;
  uint64_t last_ns_ = 0;  // when the last frame left
  uint32_t last_bytes_ = 0;
};

}  // namespace sluice
