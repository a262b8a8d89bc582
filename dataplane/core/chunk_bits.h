// A bit for each chunk of an extent.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "dataplane/base/check.h"
#include "dataplane/core/wire.h"

namespace sluice {

class ChunkBits {
 public:
  void reset(uint32_t chunks) {  // none is set; chunks <= wire::kChunksPerExtentMax
    CHECK(chunks <= wire::kChunksPerExtentMax, "the map has a bit for every chunk");
    chunks_ = chunks;
    std::fill_n(words_, (chunks + 63) / 64, uint64_t{0});
  }
  uint32_t chunks() const { return chunks_; }
  bool has(uint32_t index) const {  // index < chunks()
    DCHECK(index < chunks_, "a chunk is one of its extent's");
    return (words_[index / 64] >> (index % 64)) & 1;
  }
  void set(uint32_t index) { words_[index / 64] |= uint64_t{1} << (index % 64); }  // index < chunks()
  // All in [from, to), as far as there are any. Returns how many more are set than before.
  int64_t assign(uint32_t from, uint32_t to, bool value) {
    int64_t more = 0;
    to = std::min(to, chunks_);
    for (uint32_t at = from; at < to;) {
      const uint32_t end = std::min(to, (at / 64 + 1) * 64);
      const uint64_t mask = (~uint64_t{0} >> (64 - (end - at))) << (at % 64);
      uint64_t& word = words_[at / 64];
      more -= std::popcount(word);
      word = value ? word | mask : word & ~mask;
      more += std::popcount(word);
      at = end;
    }
    return more;
  }
  // The first at or after `from` that is set, or is not; chunks() when there is none.
  uint32_t next(uint32_t from, bool value) const {
    for (uint32_t at = from; at < chunks_; at = (at / 64 + 1) * 64) {
      const uint64_t word = (value ? words_[at / 64] : ~words_[at / 64]) >> (at % 64);
      if (word != 0) return std::min(chunks_, at + static_cast<uint32_t>(std::countr_zero(word)));
    }
    return chunks_;
  }

 private:
  uint32_t chunks_ = 0;
  uint64_t words_[wire::kChunksPerExtentMax / 64] = {};
};

}  // namespace sluice
