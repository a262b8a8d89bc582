// Decides which transmissions of a receiving flow are lost, from what the worker saw arrive.
//
// Pure: (board snapshot, now) -> runs of lost tx_seq. A tx_seq is lost when later packets arrived, or a probe
// said that it was sent, and this was already so one reordering time ago. One instance per flow.
//
// Everything below settled_below() was received, has been reported once, or fell out of the window unseen;
// settled_below() never decreases, whatever stands on the board.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "dataplane/board/board.h"

namespace sluice::recovery {

// What arrived: bit tx_seq % bits of `words` for numbers below `highest_data_end`.
class WindowView {
 public:
  WindowView(const std::atomic<uint64_t>* words, uint64_t bits, uint64_t highest_data_end)
      : words_(words), bits_(bits), end_(highest_data_end) {}

  uint64_t end() const { return end_; }
  // The oldest number whose bit still means something.
  uint64_t valid_from() const { return end_ > bits_ / 2 ? end_ - bits_ / 2 : 0; }
  // The first number in [from, to) that was received, or that was not; `to` when there is none.
  uint64_t first_received(uint64_t from, uint64_t to) const { return find(from, to, true); }
  uint64_t first_missing(uint64_t from, uint64_t to) const { return find(from, to, false); }

 private:
  uint64_t find(uint64_t from, uint64_t to, bool received) const;

  const std::atomic<uint64_t>* words_;
  uint64_t bits_;  // how many there are: a power of two, >= 64
  uint64_t end_;
};

class LossDetector {
 public:
  static constexpr uint64_t kReorderPackets = 3;
  static constexpr uint64_t kReorderStartNs = 2'000'000;
  static constexpr uint64_t kReorderMinNs = 500'000;
  // Up to here the time is doubled for whatever comes late; beyond, only where much does.
  static constexpr uint64_t kReorderMaxNs = 50'000'000;
  static constexpr uint64_t kReorderLongestNs = 2'000'000'000;
  // One in so many that comes after it was reported is better than waiting longer for all.
  static constexpr uint64_t kLateShare = 20;

  struct Seen {
    uint64_t probe_end = 0;
    uint64_t late_chunks = 0;  // in all: those that arrived after they were reported
    uint64_t datagrams = 0;    // in all: those that arrived
    // The most by which a datagram was late that others had overtaken, and for how long what was granted to
    // the sender lasts while an extent waits: no time for reordering is longer than either.
    uint64_t lateness_ns = 0;
    uint64_t memory_ns = UINT64_MAX;
  };

  LossDetector() = default;
  // Goes on where the detector of a former control had settled.
  explicit LossDetector(uint64_t settled_below) : aged_below_(settled_below), settled_below_(settled_below) {}

  // Appends at most `room` runs to `lost`. What does not fit is found again by the next call.
  void step(const WindowView& window, const Seen& seen, uint64_t now_ns, size_t room,
            std::vector<board::Gap>* lost);

  // How long a window lasts at the rate at which `bytes` have come so far, in half: the other half is for
  // what is lost while the first waits.
  uint64_t lasts_ns(uint64_t window_bytes, uint64_t bytes, uint64_t now_ns);

  uint64_t settled_below() const { return settled_below_; }
  uint64_t reorder_ns() const { return reorder_ns_; }
  // How many numbers left the window unsettled. Only NEED finds their bytes.
  uint64_t fell_out() const { return fell_out_; }

 private:
  struct Mark {
    uint64_t time_ns = 0;
    uint64_t boundary = 0;
  };
  static constexpr size_t kMarks = 128;

  void adapt_reorder_time(const Seen& seen, uint64_t now_ns);
  void lengthen(const Seen& seen);
  void remember_boundary(uint64_t boundary, uint64_t now_ns);
  void settle(const WindowView& window, size_t room, std::vector<board::Gap>* lost);

  std::deque<Mark> marks_;   // boundaries that have not settled, oldest first
  uint64_t aged_below_ = 0;  // the latest boundary that is at least reorder_ns_ old
  uint64_t settled_below_ = 0;
  uint64_t reorder_ns_ = kReorderStartNs;
  uint64_t late_seen_ = 0;
  uint64_t adapted_ns_ = 0;
  uint64_t adapted_late_ = 0;  // as they were then
  uint64_t adapted_datagrams_ = 0;
  uint64_t fell_out_ = 0;
  uint64_t measured_ns_ = 0;  // since when the rate is measured, and how many bytes had come then
  uint64_t measured_bytes_ = 0;
  uint64_t bytes_per_second_ = 0;
};

// One step for a flow on the board: the runs that are lost now, as many as its ring of gaps has room for.
std::vector<board::Gap> find_losses(LossDetector* detector, const board::FlowSlot& flow, uint64_t now_ns);

}  // namespace sluice::recovery
