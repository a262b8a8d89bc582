// Leaky bucket of one lane, in integer arithmetic: when may the next frame leave?
//
// Pure; time is what the caller passes, nanoseconds of one monotonic clock. Each frame moves the
// earliest time of the next one by its bytes on the wire; after a stall at most `burst_ns` (but two
// frames) of the past may be caught up, so that a pause never becomes a burst.
// Design: shared/design/protocol.md A, "Pacing on a DPDK core"; FMFT (shared/seeds/000), section 4.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice {

class Pacer {
 public:
  static constexpr uint64_t kBurstNs = 10'000;

  // 0 stops. What is owed stays owed, in bytes: a rise shortens it, so that a lane which crawled goes on at
  // once.
  void set_rate(uint64_t rate_bps) {
    if (rate_bps == rate_bps_) return;
    const uint64_t before_bps = rate_bps_;
    rate_bps_ = rate_bps == 1 ? 2 : rate_bps;  // one bit a second would not fit
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
    // At a crawl a frame takes seconds: more than 32 bits of nanoseconds.
    const __uint128_t cost_fp = static_cast<__uint128_t>(wire_bytes) * ns_per_byte_fp_;
    const auto two_frames_ns = static_cast<uint64_t>((2 * cost_fp) >> 32);
    const uint64_t allowance_ns = two_frames_ns > kBurstNs ? two_frames_ns : kBurstNs;
    if (next_ns_ + allowance_ns < now_ns) {
      next_ns_ = now_ns - allowance_ns;
      fraction_ = 0;
    }
    last_ns_ = now_ns;
    last_bytes_ = wire_bytes;
    const uint64_t sum = fraction_ + static_cast<uint32_t>(cost_fp);
    next_ns_ += static_cast<uint64_t>(cost_fp >> 32) + (sum >> 32);
    fraction_ = sum & 0xFFFFFFFF;
  }

 private:
  // What is owed since the last frame, at the new rate; and nothing that was saved up before it.
  void rise(uint64_t before_bps) {
    const uint64_t owed_ns = next_ns_ > last_ns_ ? next_ns_ - last_ns_ : 0;
    const auto at_new_rate_ns =
        static_cast<uint64_t>(static_cast<__uint128_t>(owed_ns) * before_bps / rate_bps_);
    const auto frame_ns =
        static_cast<uint64_t>((static_cast<__uint128_t>(last_bytes_) * ns_per_byte_fp_) >> 32);
    next_ns_ = last_ns_ + (at_new_rate_ns > frame_ns ? at_new_rate_ns : frame_ns);
  }

  uint64_t rate_bps_ = 0;
  uint64_t ns_per_byte_fp_ = 0;
  uint64_t next_ns_ = 0;
  uint64_t last_ns_ = 0;  // when the last frame left
  uint32_t last_bytes_ = 0;
  uint64_t fraction_ = 0;  // of a nanosecond, 32 bits
};

}  // namespace sluice
