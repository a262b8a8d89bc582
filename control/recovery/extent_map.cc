// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/extent_map.h"

#include <algorithm>
#include <bit>

namespace sluice::recovery {

ExtentMap::ExtentMap(uint64_t size_bytes, uint32_t extent_bytes)
    : size_bytes_(size_bytes),
      extent_bytes_(extent_bytes),
      extents_(size_bytes / extent_bytes + (size_bytes % extent_bytes != 0 ? 1 : 0)),
      bits_((extents_ + 63) / 64, 0) {}

uint64_t ExtentMap::extent_length(uint64_t extent) const {
  return std::min(extent_bytes_, size_bytes_ - extent * extent_bytes_);
}

bool ExtentMap::is_extent(uint64_t offset, uint64_t length, uint64_t* extent) const {
  if (offset % extent_bytes_ != 0 || offset / extent_bytes_ >= extents_) return false;
  *extent = offset / extent_bytes_;
  return length == extent_length(*extent);
}

bool ExtentMap::set(uint64_t extent) {
  const uint64_t bit = uint64_t{1} << (extent % 64);
  if (bits_[extent / 64] & bit) return false;
  bits_[extent / 64] |= bit;
  ++set_extents_;
  set_bytes_ += extent_length(extent);
  return true;
}

bool ExtentMap::clear(uint64_t extent) {
  const uint64_t bit = uint64_t{1} << (extent % 64);
  if (!(bits_[extent / 64] & bit)) return false;
  bits_[extent / 64] &= ~bit;
  --set_extents_;
  set_bytes_ -= extent_length(extent);
  return true;
}

std::vector<Range> ExtentMap::missing(uint64_t offset, uint64_t length, size_t limit) const {
  std::vector<Range> runs;
  if (offset >= size_bytes_ || length == 0) return runs;
  const uint64_t end = offset + std::min(length, size_bytes_ - offset);
  uint64_t extent = offset / extent_bytes_;
  const uint64_t extent_end = (end - 1) / extent_bytes_ + 1;
  while (extent < extent_end && runs.size() < limit) {
    const uint64_t open = ~bits_[extent / 64] & (~uint64_t{0} << (extent % 64));
    if (open == 0) {
      extent = (extent / 64 + 1) * 64;
      continue;
    }
    const uint64_t first = extent / 64 * 64 + static_cast<uint64_t>(std::countr_zero(open));
    if (first >= extent_end) break;
    uint64_t last = first;
    while (last < extent_end && !is_set(last)) ++last;
    const uint64_t from = std::max(offset, first * extent_bytes_);
    runs.push_back({from, std::min(end, last * extent_bytes_) - from});
    extent = last;
  }
  return runs;
}

std::vector<Range> join_extents(const ExtentMap& map, std::vector<uint64_t> extents) {
  std::sort(extents.begin(), extents.end());
  std::vector<Range> ranges;
  for (const uint64_t extent : extents) {
    const uint64_t offset = map.extent_offset(extent);
    if (!ranges.empty() && ranges.back().offset + ranges.back().length == offset) {
      ranges.back().length += map.extent_length(extent);
    } else {
      ranges.push_back({offset, map.extent_length(extent)});
    }
  }
  return ranges;
}

}  // namespace sluice::recovery
