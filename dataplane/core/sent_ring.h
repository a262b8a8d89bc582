// What each recent tx_seq carried, so that a report of its loss can be answered once.
//
// Pure; one owner. take() clears the entry: a repeated report finds nothing, so nothing is sent twice
// for one loss. An entry that was overwritten by a later tx_seq is gone;
// then NEED on the control stream recovers the bytes. What was sent several times at once is lost when all of
// its copies are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>

#include "dataplane/base/check.h"

namespace sluice {

struct SentChunk {
  uint64_t offset = 0;
  uint32_t object = 0;
  uint32_t length = 0;  // 0: empty
  uint8_t tries = 0;    // how often it was sent again before this transmission
  // A repair symbol: `offset` is that of its extent, `length` one more than the number of its block.
  bool parity = false;
};

class SentRing {
 public:
  static constexpr uint32_t kCopiesMax = 15;

  // Remembers at least `capacity` transmissions.
  explicit SentRing(uint32_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? 2U : capacity) - 1),
        slots_(std::make_unique_for_overwrite<Slot[]>(mask_ + 1)) {}

  // 0 < chunk.length < 65536. `tx_seq` counts up from 0 without a hole; the last one may be put again.
  void put(uint64_t tx_seq, const SentChunk& chunk) {
    DCHECK(chunk.length > 0, "length 0 is an entry that was taken");
    DCHECK(tx_seq == end_ || tx_seq + 1 == end_, "what was not put is never read");
    end_ = tx_seq + 1;
    slots_[tx_seq & mask_] = {.offset = chunk.offset,
                              .object = chunk.object,
                              .length = static_cast<uint16_t>(chunk.length),
                              .tries = static_cast<uint8_t>(std::min(chunk.tries, kTriesMax)),
                              .parity = chunk.parity,
                              .out = 1,
                              .back = 0};
  }
  // `tx_seq`, which was put, is a copy of what `first` sent: only the last of them that is taken gives it.
  void copies(uint64_t tx_seq, uint64_t first) {
    Slot& original = slots_[first & mask_];
    if (tx_seq - first > UINT8_MAX || !remembers(first) || original.out == kCopiesMax) return;
    slots_[tx_seq & mask_].back = static_cast<uint8_t>(tx_seq - first);
    ++original.out;
  }

  // The chunk sent as `tx_seq`, once; length 0 when taken before, overwritten or never sent, or when another
  // copy of it may still arrive.
  SentChunk take(uint64_t tx_seq) {
    Slot& slot = slots_[tx_seq & mask_];
    if (!remembers(tx_seq) || slot.length == 0) return {};
    const SentChunk chunk{.offset = slot.offset,
                          .object = slot.object,
                          .length = slot.length,
                          .tries = slot.tries,
                          .parity = slot.parity};
    slot.length = 0;
    Slot& first = slots_[(tx_seq - slot.back) & mask_];
    if (remembers(tx_seq - slot.back) && --first.out > 0) return {};
    return chunk;
  }
  uint32_t capacity() const { return mask_ + 1; }

 private:
  static constexpr uint8_t kTriesMax = 7;

  struct Slot {  // without a first value: a page of the ring costs nothing before it is used
    uint64_t offset;
    uint32_t object;
    uint16_t length;
    uint8_t tries : 3;
    bool parity : 1;
    uint8_t out : 4;  // of the first: itself and its copies, as far as they were not taken
    uint8_t back;     // of a copy: how far before it the first one was sent
  };
  static_assert(sizeof(Slot) == 16);
  bool remembers(uint64_t tx_seq) const { return tx_seq < end_ && end_ - tx_seq <= capacity(); }

  uint32_t mask_;
  uint64_t end_ = 0;  // of all tx_seq that were put
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace sluice
