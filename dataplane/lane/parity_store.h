// The repair symbols that a receiver keeps until their blocks are decoded.
//
// One thread: the worker. Its memory is made when a flow opens that may bring any (cold). Its places have
// the length of the longest symbols. A symbol that finds none is dropped like a chunk without an extent, and
// counts as lost. All symbols of a block are of one code and say one digest; the first that came decides.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "dataplane/base/check.h"
#include "dataplane/coding/block_code.h"
#include "dataplane/core/wire.h"

namespace sluice::lane {

class ParityStore {
 public:
  enum class Kept : uint8_t { kYes, kHadIt, kNoRoom, kContradiction };

  explicit ParityStore(uint32_t extents) : first_(extents, kNone) {}

  // `bytes` for symbols of at most symbol_bytes. Where those that are kept are shorter, they are dropped:
  // whoever waits for them is answered without them.
  void make_room(size_t bytes, uint32_t symbol_bytes) {
    if (symbol_bytes == symbol_bytes_ || (kept_ > 0 && symbol_bytes < symbol_bytes_)) return;
    if (bytes > size_) {
      // Without a first value: a page of it costs nothing before it is used.
      bytes_ = std::make_unique_for_overwrite<uint8_t[]>(bytes);
      size_ = bytes;
    }
    symbol_bytes_ = symbol_bytes;
    std::fill(first_.begin(), first_.end(), kNone);
    const auto count = static_cast<uint32_t>(size_ / std::max(symbol_bytes, kPlaceBytesMin));
    slots_.assign(count, {});
    free_ = kNone;
    kept_ = count;
    for (uint32_t i = count; i > 0; --i) give_back(i - 1);
  }
  uint32_t symbol_bytes() const { return symbol_bytes_; }
  bool has_any(uint32_t extent) const { return first_[extent] != kNone; }

  // What a datagram would bring; nothing is kept yet.
  Kept look(uint32_t extent, const wire::Header& header) const {
    for (uint32_t i = first_[extent]; i != kNone; i = slots_[i].next) {
      const Slot& slot = slots_[i];
      if (slot.block != header.block) continue;
      if (slot.flags != header.flags || slot.digest != header.block_digest) return Kept::kContradiction;
      if (slot.id == header.repair_id) return Kept::kHadIt;
    }
    return free_ == kNone || header.length > symbol_bytes_ ? Kept::kNoRoom : Kept::kYes;
  }
  // Where its bytes go; look() said kYes.
  uint8_t* keep(uint32_t extent, const wire::Header& header) {
    CHECK(free_ != kNone && header.length <= symbol_bytes_, "what look() found room for");
    const uint32_t i = free_;
    free_ = slots_[i].next;
    ++kept_;
    slots_[i] = {.digest = header.block_digest,
                 .next = first_[extent],
                 .id = header.repair_id,
                 .block = header.block,
                 .flags = header.flags};
    first_[extent] = i;
    return bytes_of(i);
  }

  struct Block {
    uint32_t symbols = 0;
    coding::Scheme scheme = coding::Scheme::kReedSolomon;
    uint64_t digest = 0;
  };
  // What is here of a block; as many of its symbols as fit go to `out`.
  Block find(uint32_t extent, uint32_t block, std::span<coding::RepairSymbol> out) {
    Block found;
    for (uint32_t i = first_[extent]; i != kNone; i = slots_[i].next) {
      const Slot& slot = slots_[i];
      if (slot.block != block) continue;
      found.digest = slot.digest;
      found.scheme =
          (slot.flags & wire::kFlagRaptorQ) != 0 ? coding::Scheme::kRaptorQ : coding::Scheme::kReedSolomon;
      if (found.symbols < out.size()) out[found.symbols] = {.id = slot.id, .bytes = bytes_of(i)};
      ++found.symbols;
    }
    return found;
  }

  // Of one block, or of the whole extent.
  void drop(uint32_t extent, uint32_t block) {
    drop_if(extent, [block](const Slot& slot) { return slot.block == block; });
  }
  void drop(uint32_t extent) {
    drop_if(extent, [](const Slot&) { return true; });
  }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  static constexpr uint32_t kPlaceBytesMin = 512;  // what is known of a symbol takes memory as well
  struct Slot {
    uint64_t digest = 0;
    uint32_t next = kNone;
    uint16_t id = 0;
    uint8_t block = 0;
    uint8_t flags = 0;
  };
  template <typename Which>
  void drop_if(uint32_t extent, Which which) {
    for (uint32_t* link = &first_[extent]; *link != kNone;) {
      const uint32_t i = *link;
      if (!which(slots_[i])) {
        link = &slots_[i].next;
        continue;
      }
      *link = slots_[i].next;
      give_back(i);
    }
  }
  void give_back(uint32_t i) {
    slots_[i].next = free_;
    free_ = i;
    --kept_;
  }
  uint8_t* bytes_of(uint32_t i) { return &bytes_[size_t{i} * symbol_bytes_]; }

  std::vector<uint32_t> first_;  // of each extent: the head of its list
  std::vector<Slot> slots_;
  std::unique_ptr<uint8_t[]> bytes_;
  size_t size_ = 0;
  uint32_t symbol_bytes_ = 0;
  uint32_t kept_ = 0;
  uint32_t free_ = kNone;
};

}  // namespace sluice::lane
