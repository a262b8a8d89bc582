// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/extent_map.h"

#include <algorithm>
#include <bit>

namespace sluice::recovery {

ExtentMap::ExtentMap(const Layout& layout)
    : size_bytes_(layout.size_bytes),
      extent_bytes_(layout.extent_bytes),
      extents_(size_bytes_ / extent_bytes_ + (size_bytes_ % extent_bytes_ != 0 ? 1 : 0)),
      bits_((extents_ + 63) / 64, 0) {}

Range ExtentMap::range_of(ExtentId extent) const {
  const uint64_t offset = extent.value() * extent_bytes_;
  return {.offset = offset, .length = std::min(extent_bytes_, size_bytes_ - offset)};
}

std::optional<ExtentId> ExtentMap::extent_of(Range range) const {
  const ExtentId extent = extent_at(range.offset);
  if (extent >= end_id() || range != range_of(extent)) return std::nullopt;
  return extent;
}

Range ExtentMap::cut(Range range) const {
  if (range.offset >= size_bytes_) return {.offset = size_bytes_, .length = 0};
  return {.offset = range.offset, .length = std::min(range.length, size_bytes_ - range.offset)};
}

bool ExtentMap::set(ExtentId extent) {
  CHECK(extent < end_id(), "an extent of this object");
  if (bit(extent.value())) return false;
  bits_[extent.value() / 64] |= uint64_t{1} << (extent.value() % 64);
  ++set_extents_;
  set_bytes_ += range_of(extent).length;
  return true;
}

bool ExtentMap::clear(ExtentId extent) {
  CHECK(extent < end_id(), "an extent of this object");
  if (!bit(extent.value())) return false;
  bits_[extent.value() / 64] &= ~(uint64_t{1} << (extent.value() % 64));
  --set_extents_;
  set_bytes_ -= range_of(extent).length;
  return true;
}

std::vector<Range> ExtentMap::missing(Range range, size_t limit) const {
  std::vector<Range> runs;
  const Range within = cut(range);
  if (within.length == 0) return runs;
  uint64_t extent = within.offset / extent_bytes_;
  const uint64_t extent_end = (within.end() - 1) / extent_bytes_ + 1;
  while (extent < extent_end && runs.size() < limit) {
    const uint64_t open = ~bits_[extent / 64] & (~uint64_t{0} << (extent % 64));
    if (open == 0) {
      extent = (extent / 64 + 1) * 64;
      continue;
    }
    const uint64_t first = extent / 64 * 64 + static_cast<uint64_t>(std::countr_zero(open));
    if (first >= extent_end) break;
    uint64_t last = first;
    while (last < extent_end && !bit(last)) ++last;
    const uint64_t from = std::max(within.offset, first * extent_bytes_);
    runs.push_back({.offset = from, .length = std::min(within.end(), last * extent_bytes_) - from});
    extent = last;
  }
  return runs;
}

bool ExtentMap::contains(const ExtentMap& other) const {
  CHECK(bits_.size() == other.bits_.size(), "maps of the same object");
  for (size_t i = 0; i < bits_.size(); ++i) {
    if ((other.bits_[i] & ~bits_[i]) != 0) return false;
  }
  return true;
}

void ExtentMap::check_invariants() const {
  if (!base::dchecks_enabled) return;
  uint64_t set = 0;
  for (const uint64_t each : bits_) set += static_cast<uint64_t>(std::popcount(each));
  DCHECK(set == set_extents_, "as many extents are counted as are set");
  DCHECK(extents_ % 64 == 0 || bits_.back() >> extents_ % 64 == 0, "no bit lies beyond the last extent");
  const bool last_is_set = extents_ != 0 && bit(extents_ - 1);
  const uint64_t short_by = last_is_set ? extents_ * extent_bytes_ - size_bytes_ : 0;
  DCHECK(set_bytes_ == set * extent_bytes_ - short_by, "the bytes are those of the extents that are set");
}

std::vector<Range> join_extents(const ExtentMap& map, std::vector<ExtentId> extents) {
  std::sort(extents.begin(), extents.end());
  std::vector<Range> ranges;
  for (const ExtentId extent : extents) {
    const Range range = map.range_of(extent);
    if (!ranges.empty() && ranges.back().end() == range.offset) {
      ranges.back().length += range.length;
    } else {
      ranges.push_back(range);
    }
  }
  return ranges;
}

}  // namespace sluice::recovery
