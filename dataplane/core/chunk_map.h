// Which chunks of one extent have arrived, and how an extent divides into chunks.
//
// Pure. Chunks start at multiples of chunk_bytes from the start of the extent; only the last one of
// an extent may be shorter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "dataplane/base/check.h"
#include "dataplane/core/wire.h"

namespace sluice {

inline uint32_t chunk_count(uint32_t extent_length, uint32_t chunk_bytes) {
  return (extent_length + chunk_bytes - 1) / chunk_bytes;
}
// index < chunk_count(extent_length, chunk_bytes)
inline uint32_t chunk_length(uint32_t extent_length, uint32_t chunk_bytes, uint32_t index) {
  const uint32_t begin = index * chunk_bytes;
  DCHECK(begin < extent_length, "a chunk begins within its extent");
  return extent_length - begin < chunk_bytes ? extent_length - begin : chunk_bytes;
}

class ChunkMap {
 public:
  void reset(uint32_t chunks) {  // chunks <= wire::kChunksPerExtentMax
    CHECK(chunks <= wire::kChunksPerExtentMax, "the map has a bit for every chunk");
    chunks_ = chunks;
    received_ = 0;
    std::memset(bits_, 0, 8 * ((chunks + 63) / 64));
  }
  bool has(uint32_t index) const {  // index < chunks()
    DCHECK(index < chunks_, "a chunk is one of its extent's");
    return (bits_[index >> 6] >> (index & 63)) & 1;
  }
  void set(uint32_t index) {  // !has(index)
    DCHECK(!has(index), "a chunk is received once");
    bits_[index >> 6] |= 1ULL << (index & 63);
    ++received_;
  }
  bool complete() const { return received_ == chunks_; }
  uint32_t chunks() const { return chunks_; }
  uint32_t received() const { return received_; }

  // First missing chunk at or after `from`; chunks() when there is none. *end is set behind its run.
  uint32_t next_missing(uint32_t from, uint32_t* end) const {
    const uint32_t first = next(from, false);
    *end = next(first, true);
    return first;
  }

 private:
  // The first chunk at or after `from` that was received, or was not; chunks() when there is none.
  uint32_t next(uint32_t from, bool received) const {
    for (uint32_t at = from; at < chunks_; at = (at / 64 + 1) * 64) {
      const uint64_t word = (received ? bits_[at / 64] : ~bits_[at / 64]) >> (at % 64);
      if (word != 0) return std::min(chunks_, at + static_cast<uint32_t>(std::countr_zero(word)));
    }
    return chunks_;
  }

  uint32_t chunks_ = 0;
  uint32_t received_ = 0;
  uint64_t bits_[wire::kChunksPerExtentMax / 64] = {};
};

}  // namespace sluice
