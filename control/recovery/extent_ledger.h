// The CRCs of one object's extents in the form in which the journal keeps them: blocks of 64 extents.
//
// Pure. A block holds the CRC of each extent that it knows, or, once it knows all, their folded digest
// alone: eight bytes for 64 extents. The digest of the object is folded as extents come, in any order
// (shared/design/protocol.md D). At a source "known" means sent once, at a destination durable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "control/recovery/extent_map.h"
#include "dataplane/base/error.h"
#include "dataplane/crc/crc.h"

namespace sluice::recovery {

inline constexpr uint32_t kBlockExtents = 64;

// How one object is cut and checked.
struct Layout {
  uint64_t size_bytes = 0;
  uint32_t extent_bytes = 1;
  crc::CrcKind crc_kind = crc::CrcKind::kNone;
};

// One journal row: block `index`, and its content as bytes (little-endian: a bitmap of 64 bits, then the
// CRCs of the set extents in order, or one digest when the block is full).
struct Block {
  uint64_t index = 0;
  std::string bytes;
};

class ExtentLedger {
 public:
  enum class Add : uint8_t { kNew, kSame, kDiffers };

  ExtentLedger() = default;
  explicit ExtentLedger(const Layout& layout);

  const ExtentMap& map() const { return map_; }
  bool complete() const { return map_.complete(); }
  // Of the whole object once complete. Before: of what is known.
  uint64_t digest() const { return digest_; }
  // kDiffers: that extent is known with another CRC, as far as it is known by itself. `extent` is valid.
  Add add(uint64_t extent, uint64_t crc);
  // Blocks changed since the last call.
  std::vector<Block> take_changed();
  void mark_changed(uint64_t block) { changed_.insert(block); }  // it was taken, but not kept
  // A row of the journal. kIntegrity when it cannot be one of this object; nothing is taken then.
  Status restore(const Block& block);
  // The CRC of an extent, or of a whole block, where known by itself: for reading back.
  std::optional<uint64_t> extent_crc(uint64_t extent) const;
  std::optional<uint64_t> block_digest(uint64_t block) const;
  uint64_t blocks() const { return (map_.extents() + kBlockExtents - 1) / kBlockExtents; }

 private:
  struct Open {  // a block that is not full
    uint64_t bitmap = 0;
    uint64_t crcs[kBlockExtents] = {};
  };
  uint32_t extents_in(uint64_t block) const;
  uint64_t block_end(uint64_t block) const;  // in bytes
  void fold(uint64_t end, uint64_t crc);
  uint64_t close(uint64_t block, const Open& open) const;
  std::string encode(uint64_t block) const;

  Layout layout_;
  ExtentMap map_;
  uint64_t digest_ = 0;
  std::map<uint64_t, Open> open_;
  std::vector<uint64_t> closed_;  // digest of each full block
  std::set<uint64_t> changed_;
};

}  // namespace sluice::recovery
