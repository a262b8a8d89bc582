// A file under RaptorQ in one of two ways: one encoder for the whole, which divides it into blocks by its
// size, or parts of a fixed size.
//
// The whole is divided as RFC 6330 (4.3, 4.4.1.2) says, without sub-blocks: as few blocks as fit the
// decoder's memory, of nearly the same number of symbols. So their number and their size vary with the
// file's. Parts of a fixed size all have the same number of symbols, the last one with padding, and one plan.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/coding/block_code.h"
#include "dataplane/coding/block_for_test.h"

namespace sluice::tornado {

struct Division {
  uint32_t symbol_bytes = 1400;
  uint64_t part_bytes = 0;              // 0: one encoder for the whole file
  uint64_t memory_bytes = 10ULL << 20;  // of the decoder
  double repair_share = 0.05;           // repair symbols that are made, of source symbols
};

// Consecutive symbols of the file.
struct Block {
  uint32_t first = 0;  // symbol
  uint32_t count = 0;
  uint32_t k = 0;  // with padding
};

// One thread at a time. The bytes of the file outlive it.
class CodedFile {
 public:
  CodedFile(std::span<uint8_t> file, const Division& division);

  const std::vector<Block>& blocks() const { return blocks_; }
  uint32_t repair_of(const Block& block) const;

  void plan();  // what encoding needs of each K; nothing is made twice
  // All repair symbols of a block, one behind the other.
  void encode(const Block& block, std::vector<uint8_t>* repair);
  // The block without these symbols, whose places are overwritten. False: it did not come back.
  bool decode(const Block& block, std::span<const uint32_t> missing, std::span<const uint8_t> repair);

 private:
  const coding::BlockCode& code_of(const Block& block);
  std::vector<uint8_t*> places_of(const Block& block);

  std::span<uint8_t> file_;
  Division division_;
  std::vector<uint8_t> last_;  // symbol of the file, which may be shorter
  std::vector<Block> blocks_;
  std::map<uint32_t, std::unique_ptr<coding::BlockCode>> codes_;
  coding::AlignedBytes arena_;
};

// One JSON object: what a file of so many bytes takes, of CPU seconds: plan_s, encode_s, decode_s, each the
// median of `repeats`, and how it was divided.
void ask_cost(uint64_t bytes, const Division& division, uint32_t repeats);

}  // namespace sluice::tornado
