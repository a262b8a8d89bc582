// How long a worker sleeps that has found nothing to do. Pure; time is what the caller passes.
//
// Each sleep is twice the one before, until something is done. How long the first is that follows work
// decides what a transfer costs that waits for a disk: a worker that wakes for one or two datagrams, and
// finds nothing more, pays more for waking than for them. So it is then what half of the receive queue takes
// to fill, at the pace at which datagrams have moved of late, one way or the other; what is due by itself the
// caller knows. It grows by a quarter each time and shrinks at once: a session that begins is answered soon,
// and a pace that rises is followed with the next sleep. Who waits for no disk waits for a peer that is about
// as fast, and sleeps shortly: long sleeps cost a tenth of what goes from memory to memory. When nothing came
// for a millisecond that peer does something else, such as making the thousand files of a pack, and may need
// this core for it: then sleeps are as long as for a disk. So are they, and they grow faster, while few
// datagrams come: a session of 8 Mbit/s cost a tenth of a core at each end, nearly all of it for waking up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

class IdleSleep {
 public:
  // Below it, waking up costs more than waiting.
  static constexpr uint64_t kNsMin = 10'000;
  // A burst may gather.
  static constexpr uint64_t kNsFirst = 20'000;
  // With flows, at least: half of 256 frames of 9000 bytes stay free at 100 Gbit/s.
  static constexpr uint64_t kNsMax = 100'000;
  // While it waits for a disk, or for a peer that is quiet, and the queue loses nothing; where it loses,
  // until half of it is full.
  static constexpr uint64_t kNsMaxOfDisk = 800'000;
  // A command ends such a sleep. Of several workers each hands datagrams on to the others.
  static constexpr uint64_t kNsMaxWithoutFlows = 4'000'000;
  static constexpr uint64_t kNsMaxWithoutFlowsOfSeveral = 1'000'000;
  // Fewer in such a time, and in the one before it, are few: 2000 datagrams a second.
  static constexpr uint64_t kNsOfPace = 8'000'000;
  static constexpr uint64_t kFew = 16;
  // Of a peer's pause between datagrams.
  static constexpr uint64_t kNsPatience = 1'000'000;
  static constexpr uint32_t kTurnsBefore = 32;
  static constexpr uint32_t kTurnsBeforeLong = 4;

  enum class For : uint8_t { kWork, kPeer, kDisk };  // what it waits for; kWork: it has no flows

  // The receive queue's room, in datagrams; 0: an arrival ends a sleep. `datagram_ns`: what one of the
  // largest takes on the port's wire. Alone: it hands no datagrams on.
  IdleSleep(uint32_t queue_datagrams, bool loses, uint64_t datagram_ns, bool alone = true)
      : half_(queue_datagrams / 2),
        longest_without_flows_ns_(alone ? kNsMaxWithoutFlows : kNsMaxWithoutFlowsOfSeveral),
        longest_of_disk_ns_(loses && half_ != 0 ? std::clamp(half_ * datagram_ns, kNsMax, kNsMaxOfDisk)
                                                : kNsMaxOfDisk) {}

  // A flow was opened: whoever opened it waits.
  void begin() {
    first_ns_ = kNsFirst;
    pace_ns_ = 0;
  }
  void worked() { worked_ = true; }
  // So many turns in vain come before a sleep: where nothing comes soon, fewer.
  uint32_t turns_before() const { return first_ns_ > 2 * kNsFirst ? kTurnsBeforeLong : kTurnsBefore; }

  // Nothing is to do. `moved`: datagrams sent and received since the worker began.
  uint64_t next_ns(uint64_t now_ns, uint64_t moved, For what) {
    if (worked_) {
      worked_ = false;
      adapt(now_ns - std::min(now_ns, counted_ns_), moved - moved_, longest_ns(what));
      look_at_pace(now_ns, moved);
      counted_ns_ = now_ns;
      moved_ = moved;
      next_ns_ = what == For::kDisk ? first_ns_ : kNsFirst;
    }
    const bool quiet = few_ || now_ns - std::min(now_ns, counted_ns_) >= kNsPatience;
    return std::min(next_ns_, longest_ns(what == For::kPeer && quiet ? For::kDisk : what));
  }
  // That long, or until something was due.
  void slept() { next_ns_ = std::min(next_ns_ * (few_ ? 4 : 2), kNsMaxWithoutFlows); }

 private:
  uint64_t longest_ns(For what) const {
    return what == For::kWork ? longest_without_flows_ns_ : what == For::kPeer ? kNsMax : longest_of_disk_ns_;
  }

  void adapt(uint64_t since_ns, uint64_t moved, uint64_t longest_ns) {
    if (half_ == 0) return;
    const bool slow = moved == 0 || since_ns / moved > longest_ns / half_;
    const uint64_t fills_ns = slow ? longest_ns : since_ns * half_ / moved;
    first_ns_ = std::clamp(std::min(fills_ns, first_ns_ + first_ns_ / 4), kNsFirst, longest_ns);
  }

  void look_at_pace(uint64_t now_ns, uint64_t moved) {
    const bool few = moved - pace_moved_ < kFew;
    if (now_ns - std::min(now_ns, pace_ns_) >= kNsOfPace) {
      few_before_ = few && pace_ns_ != 0;
      pace_ns_ = now_ns;
      pace_moved_ = moved;
    }
    few_ = few && few_before_;
  }

  const uint64_t half_;
  const uint64_t longest_without_flows_ns_;
  const uint64_t longest_of_disk_ns_;
  bool worked_ = false;
  uint64_t first_ns_ = kNsFirst;
  uint64_t next_ns_ = kNsFirst;
  uint64_t counted_ns_ = 0;
  uint64_t moved_ = 0;
  uint64_t pace_ns_ = 0;  // since when moves are counted for the pace; 0: not yet
  uint64_t pace_moved_ = 0;
  bool few_before_ = false;
  bool few_ = false;
};

}  // namespace sluice
