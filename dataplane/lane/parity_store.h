// The repair symbols that a receiver keeps until their blocks are decoded.
//
// One thread: the worker. Its memory is made when a flow opens that may bring any (cold). Its places have
// the length of the longest symbols. A symbol that finds none is dropped like a chunk without an extent, and
// counts as lost. All symbols of a block are of one code and say one digest; the first that came decides.
// What one datagram costs does not grow with the symbols of other blocks: each block has a list of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "dataplane/base/check.h"
#include "dataplane/coding/block_code.h"
#include "dataplane/core/wire.h"

namespace sluice::lane {

class ParityStore {
 public:
  enum class Kept : uint8_t { kYes, kHadIt, kNoRoom, kContradiction };

  struct Shape {
    uint32_t symbol_bytes = 0;  // at most
    uint32_t blocks = 0;        // of an extent, at most
  };

  explicit ParityStore(uint32_t extents) : kept_of_(extents, 0) {}

  // `bytes` for symbols of this shape. Where those that are kept are shorter, they are dropped: whoever waits
  // for them is answered without them.
  void make_room(size_t bytes, const Shape& shape) {
    if (shape.blocks > blocks_) spread(shape.blocks);
    const uint32_t symbol_bytes = shape.symbol_bytes;
    if (symbol_bytes == symbol_bytes_ || (kept_ > 0 && symbol_bytes < symbol_bytes_)) return;
    if (bytes > size_) {
      // Without a first value: a page of it costs nothing before it is used.
      bytes_ = std::make_unique_for_overwrite<uint8_t[]>(bytes);
      size_ = bytes;
    }
    symbol_bytes_ = symbol_bytes;
    std::fill(heads_.begin(), heads_.end(), Head{});
    std::fill(kept_of_.begin(), kept_of_.end(), 0);
    const auto count = static_cast<uint32_t>(size_ / std::max(symbol_bytes, kPlaceBytesMin));
    slots_.assign(count, {});
    free_ = kNone;
    kept_ = count;
    for (uint32_t i = count; i > 0; --i) give_back(i - 1);
  }
  uint32_t symbol_bytes() const { return symbol_bytes_; }
  bool has_any(uint32_t extent) const { return kept_of_[extent] > 0; }

  // What a datagram would bring; nothing is kept yet.
  Kept look(uint32_t extent, const wire::Header& header) const {
    if (header.block >= blocks_) return Kept::kNoRoom;
    const Head& head = heads_[at(extent, header.block)];
    if (head.symbols > 0) {
      if (head.flags != header.flags || head.digest != header.block_digest) return Kept::kContradiction;
      for (uint32_t i = head.first; i != kNone; i = slots_[i].next)
        if (slots_[i].id == header.repair_id) return Kept::kHadIt;
    }
    return free_ == kNone || header.length > symbol_bytes_ ? Kept::kNoRoom : Kept::kYes;
  }
  // Where its bytes go; look() said kYes.
  uint8_t* keep(uint32_t extent, const wire::Header& header) {
    CHECK(free_ != kNone && header.length <= symbol_bytes_ && header.block < blocks_,
          "what look() found room for");
    Head& head = heads_[at(extent, header.block)];
    const uint32_t i = free_;
    free_ = slots_[i].next;
    ++kept_;
    ++kept_of_[extent];
    slots_[i] = {.next = head.first, .id = header.repair_id};
    head.first = i;
    head.digest = header.block_digest;
    head.flags = header.flags;
    ++head.symbols;
    return bytes_of(i);
  }

  struct Block {
    uint32_t symbols = 0;
    coding::Scheme scheme = coding::Scheme::kReedSolomon;
    uint64_t digest = 0;
  };
  // What is here of a block.
  Block find(uint32_t extent, uint32_t block) const {
    if (block >= blocks_) return {};
    const Head& head = heads_[at(extent, block)];
    return {.symbols = head.symbols,
            .scheme = (head.flags & wire::kFlagRaptorQ) != 0 ? coding::Scheme::kRaptorQ
                                                             : coding::Scheme::kReedSolomon,
            .digest = head.digest};
  }
  // As many of its symbols as fit go to `out`.
  Block find(uint32_t extent, uint32_t block, std::span<coding::RepairSymbol> out) {
    const Block found = find(extent, block);
    size_t n = 0;
    if (found.symbols > 0)
      for (uint32_t i = heads_[at(extent, block)].first; i != kNone && n < out.size(); i = slots_[i].next)
        out[n++] = {.id = slots_[i].id, .bytes = bytes_of(i)};
    return found;
  }

  // Of one block, or of the whole extent.
  void drop(uint32_t extent, uint32_t block) {
    if (block >= blocks_) return;
    Head& head = heads_[at(extent, block)];
    for (uint32_t i = head.first; i != kNone;) {
      const uint32_t next = slots_[i].next;
      give_back(i);
      i = next;
    }
    kept_of_[extent] -= head.symbols;
    head = {};
  }
  void drop(uint32_t extent) {
    for (uint32_t block = 0; block < blocks_ && has_any(extent); ++block) drop(extent, block);
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kPlaceBytesMin = 512;  // what is known of a symbol takes memory as well
  struct Head {                                    // of a block
    uint64_t digest = 0;
    uint32_t first = kNone;
    uint32_t symbols = 0;
    uint8_t flags = 0;
  };
  struct Slot {
    uint32_t next = kNone;
    uint16_t id = 0;
  };
  size_t at(uint32_t extent, uint32_t block) const { return size_t{extent} * blocks_ + block; }
  // Extents are divided into more blocks now.
  void spread(uint32_t blocks) {
    std::vector<Head> heads(kept_of_.size() * blocks);
    for (size_t i = 0; i < heads_.size(); ++i) heads[i / blocks_ * blocks + i % blocks_] = heads_[i];
    heads_ = std::move(heads);
    blocks_ = blocks;
  }
  void give_back(uint32_t i) {
    slots_[i].next = free_;
    free_ = i;
    --kept_;
  }
  uint8_t* bytes_of(uint32_t i) { return &bytes_[size_t{i} * symbol_bytes_]; }

  std::vector<uint32_t> kept_of_;  // each extent
  std::vector<Head> heads_;        // blocks_ of each extent
  std::vector<Slot> slots_;
  std::unique_ptr<uint8_t[]> bytes_;
  size_t size_ = 0;
  uint32_t blocks_ = 0;
  uint32_t symbol_bytes_ = 0;
  uint32_t kept_ = 0;
  uint32_t free_ = kNone;
};

}  // namespace sluice::lane
