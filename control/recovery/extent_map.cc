// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/extent_map.h"

#include <algorithm>
#include <bit>

namespace sluice::recovery {

ExtentMap::ExtentMap(const Layout& layout)
    : size_bytes_(layout.size_bytes),
      extent_bytes_(layout.extent_bytes),
      extents_(size_bytes_ / extent_bytes_ + (size_bytes_ % extent_bytes_ != 0 ? 1 : 0)),
      bits_((extents_ + 63) / 64) {}

Range ExtentMap::range_of(ExtentId extent) const {
  const uint64_t offset = extent.value() * extent_bytes_;
  return {.offset = offset, .length = std::min(extent_bytes_, size_bytes_ - offset)};
}

Range ExtentMap::bytes_of(ExtentRun run) const {
  const uint64_t offset = run.first.value() * extent_bytes_;
  return {.offset = offset, .length = std::min(run.end.value() * extent_bytes_, size_bytes_) - offset};
}

ExtentRun ExtentMap::whole_in(Range range) const {
  const Range within = cut(range);
  const ExtentId first(within.offset / extent_bytes_ + (within.offset % extent_bytes_ != 0 ? 1 : 0));
  const ExtentId end = within.end() == size_bytes_ ? end_id() : extent_at(within.end());
  return {std::min(first, end), end};
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
  put_bits(extent.value(), extent.value() + 1, true);
  ++set_extents_;
  set_bytes_ += range_of(extent).length;
  return true;
}

bool ExtentMap::clear(ExtentId extent) {
  CHECK(extent < end_id(), "an extent of this object");
  if (!bit(extent.value())) return false;
  put_bits(extent.value(), extent.value() + 1, false);
  --set_extents_;
  set_bytes_ -= range_of(extent).length;
  return true;
}

uint64_t ExtentMap::find(uint64_t from, uint64_t end, bool set) const {
  const uint64_t other = set ? 0 : ~uint64_t{0};  // a word without any
  while (from < end) {
    const uint64_t found = (bits_[from / 64] ^ other) & (~uint64_t{0} << (from % 64));
    if (found != 0) return std::min(end, from / 64 * 64 + static_cast<uint64_t>(std::countr_zero(found)));
    from = bits_.skip(from / 64 + 1, bits_.size(), other) * 64;
  }
  return end;
}

uint64_t ExtentMap::set(ExtentRun run) {
  CHECK(run.first <= run.end && run.end <= end_id(), "extents of this object");
  const uint64_t before = set_bytes_;
  const uint64_t end = run.end.value();
  for (uint64_t first = find(run.first.value(), end, false); first < end; first = find(first, end, false)) {
    const uint64_t last = find(first, end, true);
    set_extents_ += last - first;
    set_bytes_ += bytes_of({ExtentId(first), ExtentId(last)}).length;
    put_bits(first, last, true);
  }
  return set_bytes_ - before;
}

uint64_t ExtentMap::clear(ExtentRun run) {
  CHECK(run.first <= run.end && run.end <= end_id(), "extents of this object");
  const uint64_t before = set_bytes_;
  const uint64_t end = run.end.value();
  for (uint64_t first = find(run.first.value(), end, true); first < end; first = find(first, end, true)) {
    const uint64_t last = find(first, end, false);
    set_extents_ -= last - first;
    set_bytes_ -= bytes_of({ExtentId(first), ExtentId(last)}).length;
    put_bits(first, last, false);
  }
  return before - set_bytes_;
}

void ExtentMap::put_bits(uint64_t first, uint64_t end, bool set) {
  while (first < end) {
    const uint64_t word = first / 64;
    if (first % 64 == 0 && end - first >= 64) {
      bits_.fill(word, end / 64, set ? ~uint64_t{0} : 0);
      first = end / 64 * 64;
      continue;
    }
    const uint64_t last = std::min(end, (word + 1) * 64);
    const uint64_t mask = (~uint64_t{0} << (first % 64)) & (~uint64_t{0} >> ((word + 1) * 64 - last));
    bits_.set(word, set ? bits_[word] | mask : bits_[word] & ~mask);
    first = last;
  }
}

uint64_t ExtentMap::set_bytes(ExtentRun run) const {
  uint64_t bytes = 0;
  const uint64_t end = run.end.value();
  for (uint64_t first = find(run.first.value(), end, true); first < end; first = find(first, end, true)) {
    const uint64_t last = find(first, end, false);
    bytes += bytes_of({ExtentId(first), ExtentId(last)}).length;
    first = last;
  }
  return bytes;
}

std::vector<ExtentRun> ExtentMap::missing(ExtentRun run) const {
  std::vector<ExtentRun> runs;
  const uint64_t end = run.end.value();
  for (uint64_t first = find(run.first.value(), end, false); first < end; first = find(first, end, false)) {
    const uint64_t last = find(first, end, true);
    runs.push_back({ExtentId(first), ExtentId(last)});
    first = last;
  }
  return runs;
}

std::vector<Range> ExtentMap::missing(Range range, size_t limit) const {
  std::vector<Range> runs;
  const Range within = cut(range);
  if (within.length == 0) return runs;
  const uint64_t extent_end = (within.end() - 1) / extent_bytes_ + 1;
  uint64_t first = find(within.offset / extent_bytes_, extent_end, false);
  while (first < extent_end && runs.size() < limit) {
    const uint64_t last = find(first, extent_end, true);
    const uint64_t from = std::max(within.offset, first * extent_bytes_);
    runs.push_back({.offset = from, .length = std::min(within.end(), last * extent_bytes_) - from});
    first = find(last, extent_end, false);
  }
  return runs;
}

bool ExtentMap::contains(const ExtentMap& other) const {
  CHECK(bits_.size() == other.bits_.size(), "maps of the same object");
  for (uint64_t i = 0; i < bits_.size(); ++i) {
    if ((other.bits_[i] & ~bits_[i]) != 0) return false;
  }
  return true;
}

void ExtentMap::check_invariants() const {
  if (!base::dchecks_enabled) return;
  uint64_t set = 0;
  for (uint64_t i = 0; i < bits_.size(); ++i) set += static_cast<uint64_t>(std::popcount(bits_[i]));
  DCHECK(set == set_extents_, "as many extents are counted as are set");
  DCHECK(extents_ % 64 == 0 || bits_[bits_.size() - 1] >> extents_ % 64 == 0,
         "no bit lies beyond the last extent");
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
