// Which chunks of an extent its receiver does not have, as far as its sender was told.
//
// Pure; one owner: the sender of the extent. Until it is told of a chunk, it holds it missing. What it
// is told may be old or false: nothing follows but what is sent again, and how often.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/core/chunk_bits.h"
#include "dataplane/core/status.h"

namespace sluice {

class HoleMap {
 public:
  void reset(uint32_t chunks) {  // chunks <= wire::kChunksPerExtentMax
    bits_.reset(chunks);
    count_ = 0;
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
  uint32_t chunks() const { return bits_.chunks(); }
  bool has(uint32_t index) const { return bits_.has(index); }  // index < chunks()
  // The first hole at or after `from`; chunks() when there is none.
  uint32_t next(uint32_t from) const { return bits_.next(from, true); }

 private:
  void set(uint32_t from, uint32_t to, bool missing) {
    count_ = static_cast<uint32_t>(count_ + bits_.assign(from, to, missing));
  }

  ChunkBits bits_;  // of those that are missing
  uint32_t count_ = 0;
};

}  // namespace sluice
