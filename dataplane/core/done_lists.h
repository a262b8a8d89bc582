// The completed extents of a flow, by number: what the receiver lists, and what the sender has taken.
//
// Pure; one owner each. Both remember more than the other side should still need, since what one datagram
// said may turn out wrong: the sender's echo may go back, and the receiver then lists again; a list that
// contradicts an earlier one makes the sender go back, and the peer's next lists decide.
// docs/WIRE.md 1.6 has the rules.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "dataplane/core/status.h"

namespace sluice {

inline constexpr uint32_t kDoneKept = 1024;  // a power of two
// Entries that the sender has echoed, and that are listed once more: so that it can compare.
inline constexpr uint32_t kDoneAgain = 8;
// A list of fewer entries ends with the newest completed extent: so many always fit into a status.
inline constexpr uint32_t kDoneListPart = 40;

// The receiver's side.
class DoneLog {
 public:
  DoneLog() : items_(std::make_unique<wire::DoneExtent[]>(kDoneKept)) {}

  void push(const wire::DoneExtent& extent) {
    items_[end_++ % kDoneKept] = extent;
    known_ = std::max(known_, oldest());
  }
  // The sender says that it has learned of so many. False when that cannot be; nothing changes then.
  bool echoed(uint32_t done_seen) {
    // Serial-number arithmetic (RFC 1982): the echo may lie on either side of what was known.
    const auto step = static_cast<int32_t>(done_seen - static_cast<uint32_t>(known_));
    const auto known = static_cast<int64_t>(known_) + step;
    if (known < static_cast<int64_t>(oldest()) || known > static_cast<int64_t>(end_)) return false;
    known_ = static_cast<uint64_t>(known);
    return true;
  }
  uint64_t end() const { return end_; }      // how many there were in all
  uint64_t known() const { return known_; }  // how many of them the sender has echoed
  uint32_t unknown() const { return static_cast<uint32_t>(end_ - known_); }

  // Fills in the list of a status.
  void list(wire::Status* status) const {
    const uint64_t first = std::max(oldest(), known_ - std::min<uint64_t>(known_, kDoneAgain));
    status->done_first = static_cast<uint32_t>(first);
    status->done_count = static_cast<uint32_t>(std::min<uint64_t>(end_ - first, wire::kStatusDoneMax));
    for (uint32_t i = 0; i < status->done_count; ++i) status->done[i] = items_[(first + i) % kDoneKept];
  }

 private:
  uint64_t oldest() const { return end_ - std::min<uint64_t>(end_, kDoneKept); }

  std::unique_ptr<wire::DoneExtent[]> items_;
  uint64_t end_ = 0;
  uint64_t known_ = 0;
};

// What a sender did with an entry of a list. Who asks to undo it gets that back.
enum class DoneEffect : uint8_t {
  kCounted,  // no such extent was held: it was counted as opened
  kRetired,  // it was held, and is not any more
  kMarked,   // its first pass is under way, and was marked
};

struct DoneTaken {
  wire::DoneExtent extent;
  DoneEffect effect{};
};

// The sender's side.
class DoneRecord {
 public:
  enum class Verdict : uint8_t {
    kOld,            // nothing is to be done: it is known, or its number is not the next one
    kNext,           // to be taken; and what contradicted() returns, if anything, to be undone before
    kContradiction,  // of an earlier list: nothing more of this one is to be taken
  };

  DoneRecord() : items_(std::make_unique<DoneTaken[]>(kDoneKept)) {}

  // How many were taken: what is echoed to the peer.
  uint32_t seen() const { return static_cast<uint32_t>(seen_); }

  Verdict look(uint32_t number, const wire::DoneExtent& extent) {
    const auto step = static_cast<int32_t>(number - static_cast<uint32_t>(seen_));
    const auto at = static_cast<int64_t>(seen_) + step;
    if (step > 0 || at < static_cast<int64_t>(oldest())) return Verdict::kOld;
    const auto place = static_cast<uint64_t>(at);
    if (place == end_) return Verdict::kNext;
    const wire::DoneExtent& known = items_[place % kDoneKept].extent;
    if (known.object == extent.object && known.number == extent.number) {
      if (step == 0) ++seen_;
      return Verdict::kOld;
    }
    if (step == 0) return Verdict::kNext;
    // One of both lists is false, and may be so from so far back on: the peer is asked to say it all again.
    seen_ = std::max(oldest(), place - std::min<uint64_t>(place, wire::kStatusDoneMax));
    return Verdict::kContradiction;
  }
  // After kNext: what was taken under this number before, and was something else; nullptr: nothing.
  const DoneTaken* contradicted() const { return seen_ < end_ ? &items_[seen_ % kDoneKept] : nullptr; }
  // The newest completed extent of the peer is the one before this number. What was taken beyond it is to be
  // undone, one for each call, until nullptr.
  const DoneTaken* beyond(uint32_t list_end) {
    const auto step = static_cast<int32_t>(list_end - static_cast<uint32_t>(end_));
    const auto at = static_cast<int64_t>(end_) + step;
    if (step >= 0 || at < static_cast<int64_t>(oldest())) return nullptr;
    --end_;
    seen_ = std::min(seen_, end_);
    return &items_[end_ % kDoneKept];
  }
  // After kNext: it was taken.
  void take(const DoneTaken& taken) {
    items_[seen_++ % kDoneKept] = taken;
    end_ = std::max(end_, seen_);
    most_ = std::max(most_, end_);
  }

 private:
  uint64_t oldest() const { return most_ - std::min<uint64_t>(most_, kDoneKept); }

  std::unique_ptr<DoneTaken[]> items_;
  uint64_t seen_ = 0;
  uint64_t end_ = 0;   // 1 + the highest number that was ever taken; those from seen_ on are in doubt
  uint64_t most_ = 0;  // the most that end_ ever was
};

}  // namespace sluice
