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
    : layout_(layout), map_(layout.size_bytes, layout.extent_bytes), closed_(blocks(), 0) {}

uint32_t ExtentLedger::extents_in(uint64_t block) const {
  return static_cast<uint32_t>(std::min<uint64_t>(kBlockExtents, map_.extents() - block * kBlockExtents));
}

uint64_t ExtentLedger::block_end(uint64_t block) const {
  const uint64_t last = block * kBlockExtents + extents_in(block) - 1;
  return map_.extent_offset(last) + map_.extent_length(last);
}

void ExtentLedger::fold(uint64_t end, uint64_t crc) {
  digest_ ^= crc::shift(layout_.crc_kind, crc, layout_.size_bytes - end);
}

uint64_t ExtentLedger::close(uint64_t block, const Open& open) const {
  uint64_t digest = 0;
  const uint64_t end = block_end(block);
  for (uint32_t i = 0; i < extents_in(block); ++i) {
    const uint64_t extent = block * kBlockExtents + i;
    const uint64_t behind = end - map_.extent_offset(extent) - map_.extent_length(extent);
    digest ^= crc::shift(layout_.crc_kind, open.crcs[i], behind);
  }
  return digest;
}

ExtentLedger::Add ExtentLedger::add(uint64_t extent, uint64_t crc) {
  const uint64_t block = extent / kBlockExtents;
  const uint32_t i = extent % kBlockExtents;
  if (map_.is_set(extent)) {
    const auto known = open_.find(block);
    return known != open_.end() && known->second.crcs[i] != crc ? Add::kDiffers : Add::kSame;
  }
  map_.set(extent);
  fold(map_.extent_offset(extent) + map_.extent_length(extent), crc);
  Open& open = open_[block];
  open.bitmap |= uint64_t{1} << i;
  open.crcs[i] = crc;
  changed_.insert(block);
  if (open.bitmap == full_bitmap(extents_in(block))) {
    closed_[block] = close(block, open);
    open_.erase(block);
  }
  return Add::kNew;
}

std::string ExtentLedger::encode(uint64_t block) const {
  std::string bytes;
  const auto open = open_.find(block);
  if (open == open_.end()) {
    put(&bytes, full_bitmap(extents_in(block)));
    put(&bytes, closed_[block]);
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
  for (const uint64_t block : changed_) blocks.push_back({block, encode(block)});
  changed_.clear();
  return blocks;
}

Status ExtentLedger::restore(const Block& block) {
  const auto bad = [&] {
    return Error{ErrorCode::kIntegrity,
                 "the journal's block " + std::to_string(block.index) + " is damaged: not used"};
  };
  if (block.index >= blocks() || block.bytes.size() < 16 || block.bytes.size() % 8 != 0) return bad();
  const uint64_t bitmap = get(block.bytes, 0);
  const uint64_t full = full_bitmap(extents_in(block.index));
  const auto values = block.bytes.size() / 8 - 1;
  const bool is_full = bitmap == full;
  if ((bitmap & ~full) != 0 || values != (is_full ? 1 : static_cast<size_t>(std::popcount(bitmap)))) {
    return bad();
  }
  const uint64_t first = block.index * kBlockExtents;
  for (uint32_t i = 0; i < extents_in(block.index); ++i) {
    if (map_.is_set(first + i)) return bad();  // twice
  }
  if (is_full) {
    for (uint32_t i = 0; i < extents_in(block.index); ++i) map_.set(first + i);
    closed_[block.index] = get(block.bytes, 8);
    fold(block_end(block.index), closed_[block.index]);
    return {};
  }
  size_t at = 8;
  for (uint32_t i = 0; i < kBlockExtents; ++i) {
    if (!(bitmap >> i & 1U)) continue;
    add(first + i, get(block.bytes, at));
    at += 8;
  }
  changed_.erase(block.index);
  return {};
}

std::optional<uint64_t> ExtentLedger::extent_crc(uint64_t extent) const {
  const auto open = open_.find(extent / kBlockExtents);
  if (open == open_.end() || !map_.is_set(extent)) return std::nullopt;
  return open->second.crcs[extent % kBlockExtents];
}

std::optional<uint64_t> ExtentLedger::block_digest(uint64_t block) const {
  if (!map_.is_set(block * kBlockExtents) || open_.contains(block)) return std::nullopt;
  return closed_[block];
}

}  // namespace sluice::recovery
