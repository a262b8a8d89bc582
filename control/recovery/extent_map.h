// Which extents of one object have been completed: a bit each, and questions about ranges.
//
// Pure. Used for "first pass sent" at a source, "written" and "durable" at a destination.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::recovery {

struct Range {
  uint64_t offset = 0;
  uint64_t length = 0;
  bool operator==(const Range&) const = default;
};

class ExtentMap {
 public:
  ExtentMap() = default;
  ExtentMap(uint64_t size_bytes, uint32_t extent_bytes);

  uint64_t size_bytes() const { return size_bytes_; }
  uint64_t extents() const { return extents_; }
  uint64_t set_extents() const { return set_extents_; }
  uint64_t set_bytes() const { return set_bytes_; }
  bool complete() const { return set_extents_ == extents_; }
  bool is_set(uint64_t extent) const { return bits_[extent / 64] >> (extent % 64) & 1U; }
  // Bytes of an extent: all alike but the last, which may be short.
  uint64_t extent_offset(uint64_t extent) const { return extent * extent_bytes_; }
  uint64_t extent_length(uint64_t extent) const;
  // True when [offset, offset+length) is exactly one extent of this object; then also its number.
  bool is_extent(uint64_t offset, uint64_t length, uint64_t* extent) const;

  bool set(uint64_t extent);    // false when it was set already
  bool clear(uint64_t extent);  // false when it was not set

  // Runs of extents within [offset, offset+length) that are not set, cut to the range, at most
  // `limit` of them, in order.
  std::vector<Range> missing(uint64_t offset, uint64_t length, size_t limit) const;
  bool complete(uint64_t offset, uint64_t length) const { return missing(offset, length, 1).empty(); }

 private:
  uint64_t size_bytes_ = 0;
  uint64_t extent_bytes_ = 1;
  uint64_t extents_ = 0;
  uint64_t set_extents_ = 0;
  uint64_t set_bytes_ = 0;
  std::vector<uint64_t> bits_;
};

// Sorted extents -> byte ranges, neighbours joined.
std::vector<Range> join_extents(const ExtentMap& map, std::vector<uint64_t> extents);

}  // namespace sluice::recovery
