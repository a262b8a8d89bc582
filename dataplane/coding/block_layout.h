// How the chunks of an extent are divided into blocks that are coded by themselves.
//
// Pure. A code works on a block of K source symbols, and one symbol is one chunk. All blocks of a flow have
// the same K, so one plan of a code serves them all. K follows from the sizes that both nodes agreed on: as
// large as the code likes, and the chunks of a whole extent fill their blocks evenly.
//
// Blocks are interleaved: neighbouring chunks belong to different blocks. A burst of losses then takes a few
// chunks of each block instead of many of one. The places of a block that no chunk fills are padding: zeros
// that both ends know and nobody sends. The last chunk of an extent may be shorter than the others; it counts
// as followed by zeros, too.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/base/check.h"
#include "dataplane/coding/block_code.h"

namespace sluice::coding {

// Most source symbols of a block. Reed-Solomon decodes a block of 64 at the speed of memory if few symbols
// are lost, and has three times as many repair symbols for it. RaptorQ needs fewer repair symbols for each
// lost one the larger its block is, as long as what it works on fits the caches of a core.
inline constexpr uint32_t kReedSolomonBlockMax = 64;
inline constexpr uint32_t kRaptorQBlockMax = 256;
inline constexpr uint32_t kRaptorQBlockBytesMax = 512U << 10;

// K of all blocks of a flow (WIRE.md 1.12).
struct FlowShape {
  uint32_t extent_bytes = 0;
  uint32_t chunk_bytes = 0;  // not 0
};
constexpr uint32_t source_symbols(Scheme scheme, const FlowShape& shape) {
  const uint32_t most = scheme == Scheme::kRaptorQ
                            ? std::clamp(kRaptorQBlockBytesMax / shape.chunk_bytes, 1U, kRaptorQBlockMax)
                            : kReedSolomonBlockMax;
  const uint32_t chunks = (shape.extent_bytes + shape.chunk_bytes - 1) / shape.chunk_bytes;
  const uint32_t blocks = (chunks + most - 1) / most;
  return blocks == 0 ? 1 : (chunks + blocks - 1) / blocks;
}

class BlockLayout {
 public:
  // Of an extent with so many chunks, not 0; the last extent of an object has fewer than the others.
  BlockLayout(uint32_t chunks, uint32_t source_symbols)
      : chunks_(chunks), blocks_((chunks + source_symbols - 1) / source_symbols) {
    CHECK(chunks > 0 && source_symbols > 0, "an extent has a chunk, and a block has a place for it");
  }

  uint32_t blocks() const { return blocks_; }
  uint32_t block_of(uint32_t chunk) const { return chunk % blocks_; }
  // Where in its block a chunk is.
  uint32_t place_of(uint32_t chunk) const { return chunk / blocks_; }
  uint32_t chunk_at(uint32_t block, uint32_t place) const { return place * blocks_ + block; }
  // How many places of a block are chunks; all others are padding. At most K, and never 0.
  uint32_t chunks_of(uint32_t block) const {
    DCHECK(block < blocks_, "a block is one of its extent's");
    return chunks_ / blocks_ + (block < chunks_ % blocks_ ? 1 : 0);
  }

 private:
  uint32_t chunks_;
  uint32_t blocks_;
};

// Of `repair_symbols` for a block of K chunks, those for one with fewer: as many less, and one at least.
constexpr uint32_t parity_of_block(uint32_t chunks, uint32_t source_symbols, uint32_t repair_symbols) {
  return (repair_symbols * chunks + source_symbols - 1) / source_symbols;
}
inline uint32_t parity_of_extent(const BlockLayout& layout, uint32_t source_symbols,
                                 uint32_t repair_symbols) {
  uint32_t symbols = 0;
  for (uint32_t block = 0; block < layout.blocks(); ++block)
    symbols += parity_of_block(layout.chunks_of(block), source_symbols, repair_symbols);
  return symbols;
}

// Bytes of each symbol of an extent's blocks: as many as its first chunk has, which is the longest. No code
// takes less than 64; whatever a chunk lacks of its symbol is zeros, which are not sent.
constexpr uint32_t symbol_bytes(uint32_t extent_length, uint32_t chunk_bytes) {
  return std::max(uint32_t{64}, std::min(extent_length, chunk_bytes));
}

}  // namespace sluice::coding
