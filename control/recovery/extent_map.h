// Which extents of one object have been completed: a bit each, and questions about ranges of bytes.
//
// Pure. Used for "given" and "at the peer" at a source, for "written" and "durable" at a destination.
// Invariants: the counts agree with the bits, and no bit is set beyond the last extent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "control/recovery/words.h"
#include "dataplane/base/check.h"
#include "dataplane/base/number.h"
#include "dataplane/base/range.h"
#include "dataplane/crc/crc.h"

namespace sluice::recovery {

using base::Range;  // of bytes of one object

// How one object is cut and checked.
struct Layout {
  uint64_t size_bytes = 0;
  uint32_t extent_bytes = 1;
  crc::CrcKind crc_kind = crc::CrcKind::kNone;
};

// Neighbouring extents of one object.
struct ExtentRun {
  ExtentId first;
  ExtentId end;  // one past the last
};

class ExtentMap {
 public:
  ExtentMap() = default;
  explicit ExtentMap(const Layout& layout);

  uint64_t size_bytes() const { return size_bytes_; }
  uint64_t extents() const { return extents_; }
  ExtentId end_id() const { return ExtentId(extents_); }  // one past the last
  uint64_t set_extents() const { return set_extents_; }
  uint64_t set_bytes() const { return set_bytes_; }
  bool complete() const { return set_extents_ == extents_; }
  bool is_set(ExtentId extent) const {
    DCHECK(extent < end_id(), "an extent of this object");
    return bit(extent.value());
  }

  ExtentId extent_at(uint64_t offset) const { return ExtentId(offset / extent_bytes_); }
  // All extents are alike but the last, which may be short.
  Range range_of(ExtentId extent) const;
  // The extent that is exactly this range, if there is one.
  std::optional<ExtentId> extent_of(Range range) const;
  Range bytes_of(ExtentRun run) const;  // the last extent may be short
  // The extents that lie in the range with all their bytes.
  ExtentRun whole_in(Range range) const;
  // The part of a range that lies in the object; its length is 0 when none does.
  Range cut(Range range) const;

  bool set(ExtentId extent);    // false when it was set already
  bool clear(ExtentId extent);  // false when it was not set
  // Sets a run in a time that does not grow with its length. Returns the bytes that were not set before.
  uint64_t set(ExtentRun run);
  uint64_t clear(ExtentRun run);            // likewise; the bytes that were set
  uint64_t set_bytes(ExtentRun run) const;  // of what is set in the run
  std::vector<ExtentRun> missing(ExtentRun run) const;
  // The first that is not set, from the beginning of the run on; its end if there is none.
  ExtentId next_clear(ExtentRun run) const {
    return ExtentId(find(run.first.value(), run.end.value(), false));
  }
  // The first that is set, from this one on; end_id() if there is none.
  ExtentId next_set(ExtentId from) const { return ExtentId(find(from.value(), extents_, true)); }

  // Runs of extents within the range that are not set, cut to the range, at most `limit` of them, in order.
  std::vector<Range> missing(Range range, size_t limit) const;
  bool complete(Range range) const { return missing(range, 1).empty(); }
  // Whether all that is set in another map of the same object is set here.
  bool contains(const ExtentMap& other) const;
  // A bit for each of the 64 extents from 64 * `index` on.
  uint64_t word(uint64_t index) const { return bits_[index]; }
  void check_invariants() const;  // where DCHECKs are on

 private:
  bool bit(uint64_t extent) const { return bits_[extent / 64] >> (extent % 64) & 1U; }
  // Of a run of extents that are all clear, or all set.
  void put_bits(uint64_t first, uint64_t end, bool set);
  // The first extent, from `from` on, that is set, or is not; `end` if there is none before.
  uint64_t find(uint64_t from, uint64_t end, bool set) const;

  uint64_t size_bytes_ = 0;
  uint64_t extent_bytes_ = 1;
  uint64_t extents_ = 0;
  uint64_t set_extents_ = 0;
  uint64_t set_bytes_ = 0;
  Words bits_;
};

// The bytes of these extents, in order, neighbours joined.
std::vector<Range> join_extents(const ExtentMap& map, std::vector<ExtentId> extents);

}  // namespace sluice::recovery
