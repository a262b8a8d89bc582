// What each recent tx_seq carried, so that a report of its loss can be answered once.
//
// Pure; one owner. take() clears the entry: a repeated report finds nothing, so nothing is sent twice
// for one loss. An entry that was overwritten by a later tx_seq is gone;
// then NEED on the control stream recovers the bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <memory>

#include "dataplane/base/check.h"

namespace sluice {

struct SentChunk {
  uint64_t offset = 0;
  uint32_t object = 0;
  uint32_t length = 0;  // 0: empty
};

class SentRing {
 public:
  // Remembers at least `capacity` transmissions.
  explicit SentRing(uint32_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? 2U : capacity) - 1), slots_(std::make_unique<Slot[]>(mask_ + 1)) {}

  void put(uint64_t tx_seq, const SentChunk& chunk) {  // chunk.length > 0
    DCHECK(chunk.length > 0, "length 0 is an entry that was taken");
    slots_[tx_seq & mask_] = {tx_seq, chunk};
  }

  // The chunk sent as `tx_seq`, once; length 0 when taken before, overwritten or never sent.
  SentChunk take(uint64_t tx_seq) {
    Slot& slot = slots_[tx_seq & mask_];
    if (slot.tx_seq != tx_seq) return {};
    const SentChunk chunk = slot.chunk;
    slot.chunk.length = 0;
    return chunk;
  }
  uint32_t capacity() const { return mask_ + 1; }

 private:
  struct Slot {
    uint64_t tx_seq = UINT64_MAX;
    SentChunk chunk;
  };
  uint32_t mask_;
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace sluice
