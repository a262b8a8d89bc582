// The completed extents of a flow, by number: what the receiver lists, and what the sender has taken.
//
// Pure; one owner each. Both remember more than the other side should still need, since what one datagram
// said may turn out wrong: the sender's echo may go back, and the receiver then lists again; a list that
// contradicts an earlier one makes the sender go back, and the peer's next lists decide. What does not fit
// into one status the next ones say, round and round, and the sender takes entries in any order: so one
// status that is lost holds up nothing but its own entries. docs/WIRE.md 1.6 has the rules.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

#include "dataplane/core/status.h"

namespace sluice {

inline constexpr uint32_t kDoneKept = 1024;  // a power of two
// Entries that the sender has echoed, and that are listed once more: so that it can compare.
inline constexpr uint32_t kDoneAgain = 8;
// Where lists contradict each other, a sender asks for so many entries again.
inline constexpr uint32_t kDoneBack = 64;

// The receiver's side.
class DoneLog {
 public:
  // Keeps at least so many of the newest entries.
  explicit DoneLog(uint32_t kept = kDoneKept)
      : kept_(std::bit_ceil(kept)), items_(std::make_unique<wire::DoneExtent[]>(kept_)) {}

  void push(const wire::DoneExtent& extent) {
    items_[end_++ % kept_] = extent;
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
  uint32_t kept() const { return kept_; }

  // Fills in the list of a status: from where the one before ended, or else from the first one that the
  // sender has not echoed, and some before it.
  void list(wire::Status* status) const {
    uint64_t at = std::max(oldest(), known_ - std::min<uint64_t>(known_, kDoneAgain));
    if (next_ > at) at = next_;
    status->done_end = static_cast<uint32_t>(end_);
    status->done_back = static_cast<uint32_t>(end_ - at);
    status->run_count = 0;
    const uint64_t end = std::min<uint64_t>(end_, at + wire::kStatusDoneMax);
    for (; at < end; ++at) {
      const wire::DoneExtent& extent = items_[at % kept_];
      wire::DoneRun& run = status->runs[status->run_count - (status->run_count > 0 ? 1 : 0)];
      if (status->run_count > 0 && run.object == extent.object && run.first + run.count == extent.number) {
        ++run.count;
        continue;
      }
      if (status->run_count == wire::kStatusRunsMax) return;
      status->runs[status->run_count++] = {.object = extent.object, .count = 1, .first = extent.number};
    }
  }
  // So many runs of that list were said.
  void listed(const wire::Status& status, uint32_t runs) {
    next_ = end_ - status.done_back;
    for (uint32_t i = 0; i < runs; ++i) next_ += status.runs[i].count;
    if (next_ == end_) next_ = 0;  // all was said: once more from the beginning
  }

 private:
  uint64_t oldest() const { return end_ - std::min<uint64_t>(end_, kept_); }

  uint32_t kept_;  // a power of two
  std::unique_ptr<wire::DoneExtent[]> items_;
  uint64_t end_ = 0;
  uint64_t known_ = 0;
  uint64_t next_ = 0;  // where the next list goes on, if that lies behind what the sender knows
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
  enum class Answer : uint8_t {
    kOld,            // nothing is to be done: it is known, or its number is out of reach
    kNext,           // to be taken; and what contradicted() returns, if anything, to be undone before
    kContradiction,  // of an earlier list: nothing more of this one is to be taken
  };

  // Takes entries up to `reach` beyond the first one that is missing.
  explicit DoneRecord(uint32_t reach = kDoneKept)
      : reach_(std::bit_ceil(std::max(reach, 2 * kDoneBack))),
        kept_(2 * reach_),
        items_(std::make_unique<Item[]>(kept_)) {}

  // All entries below this number were taken: what is echoed to the peer.
  uint32_t seen() const { return static_cast<uint32_t>(seen_); }

  Answer look(uint32_t number, const wire::DoneExtent& extent) {
    const auto step = static_cast<int32_t>(number - static_cast<uint32_t>(seen_));
    const auto at = static_cast<int64_t>(seen_) + step;
    if (step >= static_cast<int32_t>(reach_) || at < static_cast<int64_t>(oldest())) return Answer::kOld;
    const auto place = static_cast<uint64_t>(at);
    Item& item = items_[place % kept_];
    if (item.place != place) return place < seen_ ? Answer::kOld : Answer::kNext;
    const wire::DoneExtent& known = item.taken.extent;
    if (known.object == extent.object && known.number == extent.number) {
      item.sure = true;
      advance();
      return Answer::kOld;
    }
    if (!item.sure) return Answer::kNext;
    // One of both lists is false, and may be so from so far back on: the peer is asked to say it all again.
    const uint64_t back = std::max(oldest(), place - std::min<uint64_t>(place, kDoneBack));
    seen_ = std::min(seen_, back);
    for (uint64_t doubted = seen_; doubted < end_; ++doubted) items_[doubted % kept_].sure = false;
    return Answer::kContradiction;
  }
  // After kNext of this number: what was taken under it before, and was something else; nullptr: nothing.
  const DoneTaken* contradicted(uint32_t number) const {
    const uint64_t place = place_of(number);
    const Item& item = items_[place % kept_];
    return item.place == place ? &item.taken : nullptr;
  }
  // The newest completed extent of the peer is the one before this number. What was taken beyond it is to be
  // undone, one for each call, until nullptr.
  const DoneTaken* beyond(uint32_t list_end) {
    const auto step = static_cast<int32_t>(list_end - static_cast<uint32_t>(end_));
    const auto at = static_cast<int64_t>(end_) + step;
    if (step >= 0 || at < static_cast<int64_t>(oldest())) return nullptr;
    while (end_ > static_cast<uint64_t>(at)) {
      --end_;
      seen_ = std::min(seen_, end_);
      Item& item = items_[end_ % kept_];
      if (item.place != end_) continue;
      item.place = UINT64_MAX;
      return &item.taken;
    }
    return nullptr;
  }
  // After kNext of this number: it was taken.
  void take(uint32_t number, const DoneTaken& taken) {
    const uint64_t place = place_of(number);
    items_[place % kept_] = {.taken = taken, .place = place, .sure = true};
    end_ = std::max(end_, place + 1);
    most_ = std::max(most_, end_);
    advance();
  }

 private:
  struct Item {
    DoneTaken taken;
    uint64_t place = UINT64_MAX;  // its number; UINT64_MAX: nothing was taken
    bool sure = false;            // false: taken, but the peer shall say it again
  };
  uint64_t place_of(uint32_t number) const {
    return seen_ + static_cast<uint64_t>(static_cast<int64_t>(static_cast<int32_t>(number - seen())));
  }
  void advance() {
    while (seen_ < end_ && items_[seen_ % kept_].place == seen_ && items_[seen_ % kept_].sure) ++seen_;
  }
  uint64_t oldest() const { return most_ - std::min<uint64_t>(most_, kept_); }

  uint32_t reach_;  // powers of two
  uint32_t kept_;
  std::unique_ptr<Item[]> items_;
  uint64_t seen_ = 0;
  uint64_t end_ = 0;   // 1 + the highest number that was ever taken
  uint64_t most_ = 0;  // the most that end_ ever was
};

}  // namespace sluice
