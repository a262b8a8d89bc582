// Which chunks of one extent have arrived, and how an extent divides into chunks.
//
// Pure. Chunks start at multiples of chunk_bytes from the start of the extent; only the last one of
// an extent may be shorter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dataplane/base/check.h"
#include "dataplane/core/chunk_bits.h"

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
    bits_.reset(chunks);
    received_ = 0;
  }
  bool has(uint32_t index) const { return bits_.has(index); }  // index < chunks()
  void set(uint32_t index) {                                   // !has(index)
    DCHECK(!has(index), "a chunk is received once");
    bits_.set(index);
    ++received_;
  }
  bool complete() const { return received_ == chunks(); }
  uint32_t chunks() const { return bits_.chunks(); }
  uint32_t received() const { return received_; }

  // First missing chunk at or after `from`; chunks() when there is none. *end is set behind its run.
  uint32_t next_missing(uint32_t from, uint32_t* end) const {
    const uint32_t first = bits_.next(from, false);
    *end = bits_.next(first, true);
    return first;
  }

 private:
  ChunkBits bits_;
  uint32_t received_ = 0;
};

}  // namespace sluice
