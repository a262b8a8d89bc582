// The CRCs of one object's extents in the form in which the journal keeps them: blocks of 64 extents.
//
// Pure. A block holds the CRC of each extent that it knows, or, once it knows all, nothing but their folded
// digest: eight bytes for 64 extents. The digest of the object is folded as extents come, in any order: the
// CRC of each is shifted past the bytes that follow it, and all are joined by exclusive or. At a source
// "known" means sent once or read again, at a destination durable.
//
// Invariants: an open block has the bits of the map and is not full; a block that is not open is known whole
// or not at all; the digest is that of all that is known.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/recovery/extent_map.h"
#include "dataplane/base/error.h"
#include "dataplane/base/number.h"

namespace sluice::recovery {

inline constexpr uint32_t kBlockExtents = 64;

// A block of an object's ledger, by its place in it.
using BlockId = Number<struct BlockTag, uint64_t>;

// One journal row: a block, and its content as bytes (little-endian: a bitmap of 64 bits, then the CRCs of
// the set extents in order, or one digest when the block is full; a block that was forgotten has no bit).
struct Block {
  BlockId id;
  std::string bytes;
};

class ExtentLedger {
 public:
  enum class Add : uint8_t { kNew, kSame, kDiffers };
  static constexpr uint64_t kZerosOfPiece = 4ULL << 30;

  ExtentLedger() = default;
  explicit ExtentLedger(const Layout& layout);

  const ExtentMap& map() const { return map_; }
  bool complete() const { return map_.complete(); }
  // Of what is known: of the whole object once that is complete.
  uint64_t digest() const { return digest_; }
  // kDiffers when the extent is known with another CRC; in a full block that cannot be seen any more.
  Add add(ExtentId extent, uint64_t crc);
  // These whole extents are zeros, as holes of a file are: as if each were added that is not known yet. Whole
  // blocks take no time, whatever their number, and are not among those that changed.
  void add_zeros(Range range);
  // The blocks that changed since the last call.
  std::vector<Block> take_changed();
  void mark_changed(BlockId block) { changed_.insert(block); }  // it was taken, and not kept
  // What was read is not what is known of these extents. All of a full block go at once, since only their
  // common digest is known. Returns all that is forgotten.
  Range forget(Range range);
  // A row of the journal. kIntegrity when it cannot be a row of this object; nothing of it is taken then.
  Status restore(const Block& block);
  // The CRC of an extent of an open block, or of a full block: for whoever reads the bytes back.
  std::optional<uint64_t> extent_crc(ExtentId extent) const;
  std::optional<uint64_t> block_digest(BlockId block) const;
  // A piece that can be read and compared at once, from this extent on: its full block, full blocks of zeros
  // up to `zeros_bytes_most`, since holes are read at once, or what its block knows without a hole. `from` is
  // known.
  struct Piece {
    Range range;
    uint64_t crc = 0;  // of its bytes
  };
  Piece piece_at(ExtentId from, uint64_t zeros_bytes_most = kZerosOfPiece) const;

  BlockId end_id() const { return BlockId(closed_.size()); }  // one past the last block
  static BlockId block_of(ExtentId extent) { return BlockId(extent.value() / kBlockExtents); }
  static ExtentId first_of(BlockId block) { return ExtentId(block.value() * kBlockExtents); }
  ExtentId end_of(BlockId block) const;  // one past its last extent
  Range range_of(BlockId block) const;
  void check_invariants() const;  // where DCHECKs are on

 private:
  struct Open {  // a block that is not full
    uint64_t bitmap = 0;
    uint64_t crcs[kBlockExtents] = {};
  };
  uint32_t extents_in(BlockId block) const;
  // What a piece that ends at byte `end` adds to the digest of the object.
  uint64_t shifted(uint64_t end, uint64_t crc) const;
  Piece full_piece_at(BlockId block, uint64_t zeros_bytes_most) const;
  uint64_t fold_block(BlockId block, const Open& open) const;
  std::string encode(BlockId block) const;
  void add_zero_blocks(BlockId first, BlockId end);

  Layout layout_;
  ExtentMap map_;
  uint64_t digest_ = 0;
  std::map<BlockId, Open> open_;
  Words closed_;  // digest of each full block
  std::set<BlockId> changed_;
};

}  // namespace sluice::recovery
