// Which chunks of an extent its receiver does not have, as far as its sender was told.
//
// Pure; one owner: the sender of the extent. Until it is told of a chunk, it holds it missing. What it
// is told may be old or false: nothing follows but what is sent again, and how often.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include "dataplane/base/check.h"
#include "dataplane/core/status.h"
#include "dataplane/core/wire.h"

namespace sluice {

class HoleMap {
 public:
  void reset(uint32_t chunks) {  // chunks <= wire::kChunksPerExtentMax
    CHECK(chunks <= wire::kChunksPerExtentMax, "the map has a bit for every chunk");
    chunks_ = chunks;
    count_ = 0;
    std::fill_n(bits_, (chunks + 63) / 64, uint64_t{0});
    set(0, chunks, true);
  }
  // Of the chunks below `told` those in `holes` are missing, which ascend and end there, and no others.
  void take(uint32_t told, std::span<const wire::ChunkRun> holes) {
    uint32_t at = 0;
    for (const wire::ChunkRun& hole : holes) {
      set(at, hole.first, false);
      at = hole.first + hole.count;
      set(hole.first, at, true);
    }
    set(at, told, false);
  }
  uint32_t count() const { return count_; }
  uint32_t chunks() const { return chunks_; }
  bool has(uint32_t index) const {  // index < chunks()
    DCHECK(index < chunks_, "a chunk is one of its extent's");
    return (bits_[index / 64] >> (index % 64)) & 1;
  }
  // The first hole at or after `from`; chunks() when there is none.
  uint32_t next(uint32_t from) const {
    for (uint32_t at = from; at < chunks_; at = (at / 64 + 1) * 64) {
      const uint64_t word = bits_[at / 64] >> (at % 64);
      if (word != 0) return at + static_cast<uint32_t>(std::countr_zero(word));
    }
    return chunks_;
  }

 private:
  void set(uint32_t from, uint32_t to, bool missing) {
    to = std::min(to, chunks_);
    for (uint32_t at = from; at < to;) {
      const uint32_t end = std::min(to, (at / 64 + 1) * 64);
      const uint64_t mask = (~uint64_t{0} >> (64 - (end - at))) << (at % 64);
      uint64_t& word = bits_[at / 64];
      count_ -= static_cast<uint32_t>(std::popcount(word & mask));
      word = missing ? word | mask : word & ~mask;
      count_ += static_cast<uint32_t>(std::popcount(word & mask));
      at = end;
    }
  }

  uint32_t chunks_ = 0;
  uint32_t count_ = 0;
  uint64_t bits_[wire::kChunksPerExtentMax / 64] = {};
};

}  // namespace sluice
