// The erasure codes of one worker, the memory that they work in, and how much of a turn they may take.
//
// One thread: the worker. Codes and memory are made when a flow opens that uses them (cold); coding itself
// allocates nothing. A block is coded as a whole, and takes as long as some dozens of datagrams: one block a
// turn, encoded or decoded, so that no turn is longer than that.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/board/board.h"
#include "dataplane/board/codes.h"
#include "dataplane/coding/block_code.h"
#include "dataplane/coding/block_layout.h"

namespace sluice::lane {

using board::kCodeRaptorQ;
using board::kCodeReedSolomon;
using board::kCodesKnown;

inline uint8_t code_bit(coding::Scheme scheme) {
  return scheme == coding::Scheme::kRaptorQ ? kCodeRaptorQ : kCodeReedSolomon;
}
// What this build has.
uint8_t codes_built_in();

inline coding::FlowShape shape_of(const board::FlowConfig& config) {
  return {.extent_bytes = config.extent_bytes, .chunk_bytes = config.chunk_bytes};
}

class Coder {
 public:
  static constexpr uint32_t kBlockMax = 256;  // source symbols
  // Repair symbols that one call makes or uses, at most: as many as a block has, and some that RaptorQ may
  // need besides.
  static constexpr uint32_t kRepairMax = kBlockMax + 16;

  // Makes what flows with such chunks need. Its memory costs nothing before it is used. Cold. False: one of
  // `codes` is not built in.
  bool prepare(uint8_t codes, uint32_t extent_bytes, uint32_t chunk_bytes);
  // Of a flow that was prepared for; nullptr otherwise.
  const coding::BlockCode* find(coding::Scheme scheme, const coding::FlowShape& shape) const;

  std::span<uint8_t> arena() { return {arena_[0].bytes, arena_lines_ * sizeof(Line)}; }
  // Memory for one symbol, kRepairMax of them: what a sender encoded, until it has left; what a receiver
  // decoded, until it is believed.
  uint8_t* encoded(uint32_t index) { return &encoded_[size_t{index} * symbol_bytes_]; }
  uint8_t* decoded(uint32_t index) { return &decoded_[size_t{index} * symbol_bytes_]; }
  // Changes whenever the memory is another one: what had been encoded is gone.
  uint32_t generation() const { return generation_; }
  // The last chunk of an extent, followed by zeros, until the next call.
  uint8_t* padded(std::span<const uint8_t> last_chunk, uint32_t symbol_bytes) {
    std::ranges::copy(last_chunk, last_chunk_.get());
    std::fill(last_chunk_.get() + last_chunk.size(), last_chunk_.get() + symbol_bytes, uint8_t{0});
    return last_chunk_.get();
  }

  // True once in each of the worker's turns.
  bool take_turn(uint64_t turn_ns) {
    if (turn_ns == turn_ns_) return false;
    turn_ns_ = turn_ns;
    return true;
  }

 private:
  struct alignas(64) Line {
    uint8_t bytes[64];
  };
  std::vector<std::unique_ptr<coding::BlockCode>> codes_;
  std::unique_ptr<Line[]> arena_;
  size_t arena_lines_ = 0;
  std::unique_ptr<uint8_t[]> encoded_;
  std::unique_ptr<uint8_t[]> decoded_;
  std::unique_ptr<uint8_t[]> last_chunk_;
  uint32_t symbol_bytes_ = 0;  // the largest that was prepared for
  uint32_t generation_ = 0;
  uint64_t turn_ns_ = UINT64_MAX;
};

}  // namespace sluice::lane
