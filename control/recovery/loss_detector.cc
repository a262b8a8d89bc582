// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/loss_detector.h"

#include <algorithm>
#include <bit>

#include "dataplane/base/check.h"

namespace sluice::recovery {
namespace {

constexpr uint64_t kMeasureNs = 200'000'000;

}  // namespace

uint64_t WindowView::find(uint64_t from, uint64_t to, bool received) const {
  uint64_t at = from;
  while (at < to) {
    if (at >= end_) return received ? to : at;  // From here on the bits mean nothing.
    uint64_t word = words_[(at % bits_) / 64].load(std::memory_order_acquire);
    if (!received) word = ~word;
    word &= ~uint64_t{0} << (at % 64);
    const uint64_t word_start = at - at % 64;
    if (word != 0) {
      const uint64_t hit = word_start + static_cast<uint64_t>(std::countr_zero(word));
      if (hit < std::min(to, end_)) return hit;
    }
    // Near the largest number, word_start + 64 would run over.
    const uint64_t next = to - word_start > 64 ? word_start + 64 : to;
    at = std::min(next, std::max(at + 1, end_));
  }
  return to;
}

void LossDetector::adapt_reorder_time(const Seen& seen, uint64_t now_ns) {
  const auto adapted = [&] {
    adapted_ns_ = now_ns;
    adapted_late_ = seen.late_chunks;
    adapted_datagrams_ = seen.datagrams;
  };
  if (adapted_ns_ == 0) adapted();
  if (seen.late_chunks > late_seen_) {
    late_seen_ = seen.late_chunks;
    // A burst of reordering brings many late chunks, and is one piece of news: the time is made longer at
    // most once in each reordering time.
    if (now_ns - adapted_ns_ >= reorder_ns_ || reorder_ns_ == kReorderStartNs) {
      lengthen(seen);
      adapted();
    }
  } else if (now_ns - adapted_ns_ >= 1'000'000'000) {
    reorder_ns_ = std::max(reorder_ns_ - reorder_ns_ / 8, kReorderMinNs);
    adapted();
  }
  const uint64_t room_ns = std::max(seen.memory_ns, kReorderMaxNs);
  reorder_ns_ = std::min(reorder_ns_, room_ns);
}

void LossDetector::lengthen(const Seen& seen) {
  if (reorder_ns_ < kReorderMaxNs) {
    reorder_ns_ = std::min(reorder_ns_ * 2, kReorderMaxNs);
    return;
  }
  const uint64_t late = seen.late_chunks - std::min(adapted_late_, seen.late_chunks);
  const uint64_t datagrams = seen.datagrams - std::min(adapted_datagrams_, seen.datagrams);
  if (late <= datagrams / kLateShare) return;
  const uint64_t longest_ns = std::min({seen.lateness_ns, seen.memory_ns, kReorderLongestNs});
  reorder_ns_ = std::max(reorder_ns_, std::min(reorder_ns_ + reorder_ns_ / 2, longest_ns));
}

uint64_t LossDetector::lasts_ns(uint64_t window_bytes, uint64_t bytes, uint64_t now_ns) {
  if (now_ns - measured_ns_ >= kMeasureNs) {
    const double moved = static_cast<double>(bytes - std::min(measured_bytes_, bytes));
    bytes_per_second_ = static_cast<uint64_t>(moved * 1e9 / static_cast<double>(now_ns - measured_ns_));
    measured_ns_ = now_ns;
    measured_bytes_ = bytes;
  }
  if (bytes_per_second_ == 0) return UINT64_MAX;
  return static_cast<uint64_t>(static_cast<double>(window_bytes) / 2 * 1e9 /
                               static_cast<double>(bytes_per_second_));
}

void LossDetector::remember_boundary(uint64_t boundary, uint64_t now_ns) {
  const uint64_t newest = marks_.empty() ? aged_below_ : marks_.back().boundary;
  if (boundary <= newest) return;
  // Enough marks for the reordering time, however long that is.
  const bool apart =
      marks_.size() < 2 || now_ns - marks_[marks_.size() - 2].time_ns >= reorder_ns_ / (kMarks / 2);
  if (apart && marks_.size() < kMarks) {
    marks_.push_back({.time_ns = now_ns, .boundary = boundary});
  } else {
    // The newest mark takes on the new boundary and its time: it settles late, never early.
    marks_.back() = {.time_ns = now_ns, .boundary = boundary};
  }
}

void LossDetector::step(const WindowView& window, const Seen& seen, uint64_t now_ns, size_t room,
                        std::vector<board::Gap>* lost) {
  adapt_reorder_time(seen, now_ns);
  const uint64_t by_data = window.end() > kReorderPackets ? window.end() - kReorderPackets : 0;
  remember_boundary(std::max(by_data, seen.probe_end), now_ns);
  while (!marks_.empty() && now_ns - marks_.front().time_ns >= reorder_ns_) {
    CHECK(marks_.front().boundary > aged_below_, "boundaries only move on");
    aged_below_ = marks_.front().boundary;
    marks_.pop_front();
  }
  const uint64_t settled_before = settled_below_;
  settle(window, room, lost);
  CHECK(settled_below_ >= settled_before, "what is settled stays settled");
  CHECK(settled_below_ <= aged_below_, "nothing settles before its time");
}

void LossDetector::settle(const WindowView& window, size_t room, std::vector<board::Gap>* lost) {
  if (settled_below_ >= aged_below_) return;
  if (settled_below_ < window.valid_from()) {
    const uint64_t next = std::min(window.valid_from(), aged_below_);
    fell_out_ += next - settled_below_;
    settled_below_ = next;
  }
  size_t used = 0;
  while (settled_below_ < aged_below_) {
    const uint64_t first = window.first_missing(settled_below_, aged_below_);
    if (first == aged_below_) {
      settled_below_ = aged_below_;
      return;
    }
    settled_below_ = first;
    if (used == room) return;
    // Behind `first`: its worker may set that bit between the two looks, and a run of nothing is no run. One
    // that was missing at the first look is repaired for nothing then.
    const uint64_t end = window.first_received(first + 1, aged_below_);
    lost->push_back({.first = first, .count = end - first});
    ++used;
    settled_below_ = end;
  }
}

std::vector<board::Gap> find_losses(LossDetector* detector, const board::FlowSlot& flow, uint64_t now_ns) {
  // The highest comes first: every bit below it was set before it was published.
  const WindowView window(flow.window, board::kWindowBits,
                          flow.state.highest_data_end.load(std::memory_order_acquire));
  const LossDetector::Seen seen{
      .probe_end = flow.state.probe_end.load(std::memory_order_acquire),
      .late_chunks = flow.state.late_chunks.load(std::memory_order_acquire),
      .datagrams = flow.state.datagrams.load(std::memory_order_acquire),
      .lateness_ns = flow.state.lateness_ns.load(std::memory_order_acquire),
      .memory_ns = detector->lasts_ns(
          flow.control.credit_extents.load(std::memory_order_relaxed) * flow.config.extent_bytes,
          flow.state.bytes.load(std::memory_order_acquire), now_ns)};
  std::vector<board::Gap> lost;
  detector->step(window, seen, now_ns, flow.gaps.room(), &lost);
  return lost;
}

}  // namespace sluice::recovery
