// The pacing ladder: five ways to decide whether a frame may leave now, from none to ours.
//
// FMFT climbed it (section 4 of the paper, docs/SOURCES.md): send continuously; a second's budget at once; a
// millisecond's; at every event, look at the last second and send what is missing. `Bucket` is the product's
// own pacer. Pure functions of (state, now), nanoseconds of one monotonic clock; one owner. All have the
// shape in which dataplane/lane/tx_pump.cc uses the pacer: ready(now), then sent(now) for each frame of a
// burst.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

#include "dataplane/core/pacer.h"

namespace sluice::probe {

inline constexpr uint64_t kSecondNs = 1'000'000'000;

struct Pace {
  uint64_t rate_bps = 0;
  uint32_t wire_bytes = 0;  // of one frame, with FCS, preamble and gap
  uint64_t start_ns = 0;
};

// Whole frames that `rate_bps` allows in `duration_ns`.
inline uint64_t frames_in(const Pace& pace, uint64_t duration_ns) {
  const __uint128_t bit_ns = static_cast<__uint128_t>(pace.rate_bps) * duration_ns;
  return static_cast<uint64_t>(bit_ns / (8ULL * kSecondNs * pace.wire_bytes));
}

class Unpaced {
 public:
  explicit Unpaced(const Pace&) {}
  bool ready(uint64_t) { return true; }
  void sent(uint64_t) {}
  uint64_t next_ns() const { return 0; }
};

// The budget of a whole slot as fast as it goes, then nothing until the next slot. A budget has whole frames,
// so short slots of long frames miss the rate; what a slot could not send is not made up for.
template <uint64_t kSlotNs>
class Slots {
 public:
  explicit Slots(const Pace& pace)
      : frames_(std::max<uint64_t>(1, frames_in(pace, kSlotNs))), slot_end_ns_(pace.start_ns) {}
  bool ready(uint64_t now_ns) {
    if (now_ns >= slot_end_ns_) {
      slot_end_ns_ += ((now_ns - slot_end_ns_) / kSlotNs + 1) * kSlotNs;
      left_ = frames_;
    }
    return left_ > 0;
  }
  void sent(uint64_t) { --left_; }
  // Earliest time of the next frame, or anything before now if it may leave already.
  uint64_t next_ns() const { return left_ > 0 ? 0 : slot_end_ns_; }

 private:
  const uint64_t frames_;
  uint64_t left_ = 0;
  uint64_t slot_end_ns_;
};
using SlotSecond = Slots<kSecondNs>;
using SlotMillisecond = Slots<1'000'000>;

// FMFT's final scheme. Until a second has passed the history is as long as what has passed: with a target for
// the whole second from the start it would be slot-1s for ever, since every burst leaves the window as one.
// (So does what is caught up after a stall: it comes back as a burst every second.)
class History {
 public:
  static constexpr uint64_t kFramesMax = 1U << 25;  // of a second: 256 MiB of history

  explicit History(const Pace& pace)
      : start_ns_(pace.start_ns),
        frames_per_ns_fp_(static_cast<uint64_t>((static_cast<__uint128_t>(pace.rate_bps) << 64) /
                                                (8ULL * kSecondNs * pace.wire_bytes))),
        frames_per_second_(frames_in(pace, kSecondNs)),
        mask_(std::bit_ceil(frames_per_second_ + 2) - 1),
        times_ns_(std::make_unique<uint64_t[]>(mask_ + 1)) {}

  bool ready(uint64_t now_ns) {
    while (oldest_ != next_ && now_ns - times_ns_[oldest_ & mask_] >= kSecondNs) ++oldest_;
    const uint64_t passed_ns = now_ns - start_ns_;
    const auto wanted =
        passed_ns >= kSecondNs
            ? frames_per_second_
            : static_cast<uint64_t>((static_cast<__uint128_t>(passed_ns) * frames_per_ns_fp_) >> 64);
    return next_ - oldest_ < wanted;
  }
  void sent(uint64_t now_ns) { times_ns_[next_++ & mask_] = now_ns; }
  uint64_t next_ns() const { return 0; }

 private:
  const uint64_t start_ns_;
  const uint64_t frames_per_ns_fp_;  // 0.64 fixed point
  const uint64_t frames_per_second_;
  const uint64_t mask_;
  std::unique_ptr<uint64_t[]> times_ns_;  // when each frame of the window left
  uint64_t oldest_ = 0;
  uint64_t next_ = 0;
};

class Bucket {
 public:
  explicit Bucket(const Pace& pace) : wire_bytes_(pace.wire_bytes) { pacer_.set_rate(pace.rate_bps); }
  bool ready(uint64_t now_ns) { return pacer_.ready(now_ns); }
  void sent(uint64_t now_ns) { pacer_.sent(now_ns, wire_bytes_); }
  uint64_t next_ns() const { return pacer_.next_ns(); }

 private:
  const uint32_t wire_bytes_;
  Pacer pacer_;
};

}  // namespace sluice::probe
