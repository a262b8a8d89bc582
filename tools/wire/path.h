// One direction of a path: what happens to each frame that enters it, and when its copies leave.
//
//   blackhole -> bottleneck (rate, queue) -> loss -> corruption -> duplication -> delay -> reordering
//
// Pure and deterministic: a function of (settings, seed, the frames, their times). Chance depends on the seed
// and on a frame's number only, so the same frames meet the same fate at any speed (but for what the
// bottleneck and a blackhole drop, which is a matter of time). No allocation per frame, except where the
// first frames are held back. Times are nanoseconds of any clock that does not run backwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tools/wire/bottleneck.h"
#include "tools/wire/corrupt.h"
#include "tools/wire/delay.h"
#include "tools/wire/loss.h"
#include "tools/wire/settings.h"

namespace sluice::emulator {

// Identity, at any time: in + duplicated == sum of the drops + out + held.
struct PathCounters {
  uint64_t in = 0;
  uint64_t in_bytes = 0;
  uint64_t out = 0;
  uint64_t out_bytes = 0;
  uint64_t held = 0;  // inside now, held back for reordering

  uint64_t dropped_blackhole = 0;
  uint64_t dropped_queue = 0;
  uint64_t dropped_loss[kLossReasons] = {};  // by LossReason, kLossNone unused

  uint64_t corrupted[kCorruptKinds] = {};  // by CorruptKind; a frame may count in several
  uint64_t duplicated = 0;
  uint64_t held_back = 0;         // chosen for reordering
  uint64_t overtaking = 0;        // frames that leave before one that came in before them, whatever the cause
  uint64_t queue_bytes_peak = 0;  // since the rate settings last changed

  uint64_t dropped() const;
};

class Path {
 public:
  // Takes what leaves. Calls come in the order in which frames with equal times leave; times may go back and
  // forth: whoever delivers orders by (deliver_ns, order of calls), as DelayLine does.
  class Out {
   public:
    virtual ~Out() = default;
    // `bytes` is valid during the call. deliver_ns >= now_ns of the call that caused it.
    virtual void deliver(std::span<const uint8_t> bytes, uint64_t deliver_ns) = 0;
  };

  Path(const Settings& settings, uint64_t seed, Framing framing = Framing::kEthernet);

  void push(std::span<const uint8_t> frame, uint64_t now_ns, Out& out);

  // Frames held back for which no later one came in time: delivered by the first poll at or after
  // next_poll_ns() (UINT64_MAX: nothing is held).
  void poll(uint64_t now_ns, Out& out);
  uint64_t next_poll_ns() const { return next_poll_ns_; }

  const Settings& settings() const { return settings_; }
  // Valid for the frames that enter from now on. Loss begins to count anew if its settings changed.
  void set(const Settings& settings);
  // Everything that enters before `until_ns` is dropped; what is inside already still arrives.
  void blackhole_until(uint64_t until_ns) { blackhole_until_ns_ = until_ns; }

  const PathCounters& counters() const { return counters_; }
  // Waiting for the link now.
  uint64_t queue_bytes(uint64_t now_ns) const { return bottleneck_.waiting_bytes(now_ns); }

 private:
  struct Held {
    std::vector<uint8_t> bytes;
    uint64_t deliver_ns = 0;
    uint64_t give_up_ns = 0;
    uint32_t later_frames = 0;  // still to go first
  };
  bool dropped(uint32_t length, uint32_t frame_bytes, uint64_t now_ns, uint64_t* leaves_ns);
  void emit(std::span<const uint8_t> bytes, uint64_t deliver_ns, bool overtakes, Out& out);
  void count_later_frame(uint64_t deliver_ns, Out& out);
  void hold(std::span<const uint8_t> bytes, uint64_t deliver_ns, uint64_t now_ns);
  void release(size_t index, uint64_t deliver_ns, Out& out);
  void find_next_poll();

  Settings settings_;
  const uint64_t seed_;
  const Framing framing_;
  uint64_t frame_ = 0;  // number of frames that have come
  uint64_t blackhole_until_ns_ = 0;
  uint64_t deliver_ns_max_ = 0;
  uint64_t next_poll_ns_ = UINT64_MAX;
  Bottleneck bottleneck_;
  Loss loss_;
  Corrupter corrupter_;
  Delay delay_;
  std::vector<Held> held_;   // in the order in which they came
  std::vector<Held> spare_;  // their buffers, to be used again
  PathCounters counters_;
};

}  // namespace sluice::emulator
