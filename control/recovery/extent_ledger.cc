// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/extent_ledger.h"

#include <algorithm>
#include <bit>

namespace sluice::recovery {
namespace {

void put(std::string* out, uint64_t value) {
  for (int i = 0; i < 8; ++i) *out += static_cast<char>(value >> (8 * i));
}

uint64_t get(const std::string& in, size_t at) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) {
    value |= static_cast<uint64_t>(static_cast<uint8_t>(in[at + static_cast<size_t>(i)])) << (8 * i);
  }
  return value;
}

uint64_t full_bitmap(uint32_t extents) { return extents == 64 ? ~uint64_t{0} : (uint64_t{1} << extents) - 1; }

}  // namespace

ExtentLedger::ExtentLedger(const Layout& layout)
    : layout_(layout), map_(layout), closed_((map_.extents() + kBlockExtents - 1) / kBlockExtents) {}

ExtentId ExtentLedger::end_of(BlockId block) const {
  return std::min(first_of(block).plus(kBlockExtents), map_.end_id());
}

uint32_t ExtentLedger::extents_in(BlockId block) const {
  return static_cast<uint32_t>(end_of(block).value() - first_of(block).value());
}

Range ExtentLedger::range_of(BlockId block) const {
  const uint64_t offset = map_.range_of(first_of(block)).offset;
  const uint64_t end = map_.range_of(ExtentId(end_of(block).value() - 1)).end();
  return {.offset = offset, .length = end - offset};
}

uint64_t ExtentLedger::shifted(uint64_t end, uint64_t crc) const {
  return crc::shift(layout_.crc_kind, crc, layout_.size_bytes - end);
}

uint64_t ExtentLedger::fold_block(BlockId block, const Open& open) const {
  uint64_t digest = 0;
  const uint64_t end = range_of(block).end();
  for (uint32_t i = 0; i < extents_in(block); ++i) {
    const uint64_t behind = end - map_.range_of(first_of(block).plus(i)).end();
    digest ^= crc::shift(layout_.crc_kind, open.crcs[i], behind);
  }
  return digest;
}

ExtentLedger::Add ExtentLedger::add(ExtentId extent, uint64_t crc) {
  const BlockId block = block_of(extent);
  const uint64_t i = extent.value() % kBlockExtents;
  if (map_.is_set(extent)) {
    const auto known = open_.find(block);
    return known != open_.end() && known->second.crcs[i] != crc ? Add::kDiffers : Add::kSame;
  }
  map_.set(extent);
  digest_ ^= shifted(map_.range_of(extent).end(), crc);
  Open& open = open_[block];
  open.bitmap |= uint64_t{1} << i;
  open.crcs[i] = crc;
  changed_.insert(block);
  if (open.bitmap == full_bitmap(extents_in(block))) {
    closed_.set(block.value(), fold_block(block, open));
    open_.erase(block);
  }
  return Add::kNew;
}

void ExtentLedger::add_zeros(Range range) {
  const auto add_each = [this](ExtentId from, ExtentId end) {
    for (ExtentId extent = from; extent < end; ++extent)
      add(extent, crc::of_zeros(layout_.crc_kind, map_.range_of(extent).length));
  };
  for (const ExtentRun& run : map_.missing(map_.whole_in(range))) {
    const BlockId first = block_of(run.first.plus(kBlockExtents - 1));
    const BlockId end = run.end == map_.end_id() ? end_id() : block_of(run.end);
    if (first >= end) {
      add_each(run.first, run.end);
      continue;
    }
    add_each(run.first, first_of(first));
    add_zero_blocks(first, end);
    add_each(first_of(end), run.end);
  }
}

// All but the last of an object are alike, so that they are filled in at once. Nobody is told that they
// changed: the holes of a file are in the journal by themselves.
void ExtentLedger::add_zero_blocks(BlockId first, BlockId end) {
  map_.set({first_of(first), end_of(BlockId(end.value() - 1))});
  const uint64_t block_bytes = uint64_t{kBlockExtents} * layout_.extent_bytes;
  closed_.fill(first.value(), end.value(), crc::of_zeros(layout_.crc_kind, block_bytes));
  const BlockId last(end.value() - 1);
  closed_.set(last.value(), crc::of_zeros(layout_.crc_kind, range_of(last).length));
  const uint64_t bytes_end = range_of(last).end();
  const uint64_t bytes = bytes_end - range_of(first).offset;
  digest_ ^= shifted(bytes_end, crc::of_zeros(layout_.crc_kind, bytes));
}

std::string ExtentLedger::encode(BlockId block) const {
  std::string bytes;
  const auto open = open_.find(block);
  if (open == open_.end() && !map_.is_set(first_of(block))) {
    put(&bytes, 0);  // all of it was forgotten
    return bytes;
  }
  if (open == open_.end()) {
    put(&bytes, full_bitmap(extents_in(block)));
    put(&bytes, closed_[block.value()]);
    return bytes;
  }
  put(&bytes, open->second.bitmap);
  for (uint32_t i = 0; i < kBlockExtents; ++i) {
    if (open->second.bitmap >> i & 1U) put(&bytes, open->second.crcs[i]);
  }
  return bytes;
}

std::vector<Block> ExtentLedger::take_changed() {
  std::vector<Block> blocks;
  for (const BlockId block : changed_) blocks.push_back({.id = block, .bytes = encode(block)});
  changed_.clear();
  return blocks;
}

Status ExtentLedger::restore(const Block& block) {
  const auto bad = [&] {
    return Error{ErrorCode::kIntegrity,
                 "the journal's block " + std::to_string(block.id.value()) + " is damaged: not used"};
  };
  if (block.id >= end_id() || block.bytes.size() < 8 || block.bytes.size() % 8 != 0) return bad();
  const uint64_t bitmap = get(block.bytes, 0);
  const uint64_t full = full_bitmap(extents_in(block.id));
  const auto values = block.bytes.size() / 8 - 1;
  const bool is_full = bitmap == full;
  if ((bitmap & ~full) != 0 || values != (is_full ? 1 : static_cast<size_t>(std::popcount(bitmap)))) {
    return bad();
  }
  const ExtentId first = first_of(block.id);
  for (ExtentId extent = first; extent < end_of(block.id); ++extent) {
    if (map_.is_set(extent)) return bad();  // The row came twice.
  }
  if (is_full) {
    map_.set({first, end_of(block.id)});
    closed_.set(block.id.value(), get(block.bytes, 8));
    digest_ ^= shifted(range_of(block.id).end(), closed_[block.id.value()]);
    return {};
  }
  size_t at = 8;
  for (uint32_t i = 0; i < kBlockExtents; ++i) {
    if (!(bitmap >> i & 1U)) continue;
    add(first.plus(i), get(block.bytes, at));
    at += 8;
  }
  changed_.erase(block.id);
  return {};
}

std::optional<uint64_t> ExtentLedger::extent_crc(ExtentId extent) const {
  const auto open = open_.find(block_of(extent));
  if (open == open_.end() || !map_.is_set(extent)) return std::nullopt;
  return open->second.crcs[extent.value() % kBlockExtents];
}

std::optional<uint64_t> ExtentLedger::block_digest(BlockId block) const {
  if (!map_.is_set(first_of(block)) || open_.contains(block)) return std::nullopt;
  return closed_[block.value()];
}

ExtentLedger::Piece ExtentLedger::full_piece_at(BlockId block, uint64_t zeros_bytes_most) const {
  Piece piece{.range = range_of(block), .crc = closed_[block.value()]};
  const uint64_t block_bytes = piece.range.length;
  const uint64_t zeros = crc::of_zeros(layout_.crc_kind, block_bytes);
  if (piece.crc != zeros) return piece;
  while (++block < end_id() && piece.range.length + block_bytes <= zeros_bytes_most &&
         range_of(block).length == block_bytes && block_digest(block) == zeros)
    piece.range.length += block_bytes;
  piece.crc = crc::of_zeros(layout_.crc_kind, piece.range.length);
  return piece;
}

ExtentLedger::Piece ExtentLedger::piece_at(ExtentId from, uint64_t zeros_bytes_most) const {
  DCHECK(map_.is_set(from), "an extent that is known");
  const BlockId block = block_of(from);
  const auto open = open_.find(block);
  if (open == open_.end()) return full_piece_at(block, zeros_bytes_most);
  Piece piece{.range = {.offset = map_.range_of(from).offset}};
  for (ExtentId extent = from; extent < end_of(block) && map_.is_set(extent); ++extent) {
    const uint64_t bytes = map_.range_of(extent).length;
    piece.crc =
        crc::shift(layout_.crc_kind, piece.crc, bytes) ^ open->second.crcs[extent.value() % kBlockExtents];
    piece.range.length += bytes;
  }
  return piece;
}

Range ExtentLedger::forget(Range range) {
  ExtentId first = map_.extent_at(range.offset);
  ExtentId last = map_.extent_at(range.end() - 1);
  if (block_digest(block_of(first))) first = first_of(block_of(first));
  if (block_digest(block_of(last))) last = ExtentId(end_of(block_of(last)).value() - 1);
  for (ExtentId extent = first; extent <= last;) {
    const BlockId block = block_of(extent);
    const auto open = open_.find(block);
    if (open == open_.end()) {
      if (map_.is_set(first_of(block))) digest_ ^= shifted(range_of(block).end(), closed_[block.value()]);
      for (ExtentId each = first_of(block); each < end_of(block); ++each) map_.clear(each);
      extent = end_of(block);
    } else {
      const uint64_t i = extent.value() % kBlockExtents;
      if (map_.clear(extent)) digest_ ^= shifted(map_.range_of(extent).end(), open->second.crcs[i]);
      open->second.bitmap &= ~(uint64_t{1} << i);
      if (open->second.bitmap == 0) open_.erase(open);
      ++extent;
    }
    changed_.insert(block);
  }
  const uint64_t offset = map_.range_of(first).offset;
  return {.offset = offset, .length = map_.range_of(last).end() - offset};
}

void ExtentLedger::check_invariants() const {
  if (!base::dchecks_enabled) return;
  map_.check_invariants();
  uint64_t digest = 0;
  for (BlockId block; block < end_id(); ++block) {
    const uint64_t bitmap = map_.word(block.value());
    const uint64_t full = full_bitmap(extents_in(block));
    const auto open = open_.find(block);
    if (open == open_.end()) {
      DCHECK(bitmap == 0 || bitmap == full, "a block of which some extents are known is open");
      if (bitmap == full) digest ^= shifted(range_of(block).end(), closed_[block.value()]);
      continue;
    }
    DCHECK(open->second.bitmap == bitmap && bitmap != full, "an open block has the map's bits, not all");
    for (uint32_t i = 0; i < extents_in(block); ++i) {
      const uint64_t end = map_.range_of(first_of(block).plus(i)).end();
      if (bitmap >> i & 1U) digest ^= shifted(end, open->second.crcs[i]);
    }
  }
  DCHECK(digest == digest_, "the digest is that of all that is known");
  DCHECK(changed_.empty() || *changed_.rbegin() < end_id(), "blocks of this object");
}

}  // namespace sluice::recovery
