// SPDX-License-Identifier: Apache-2.0
#include "control/source/source_recheck.h"

#include <gtest/gtest.h>

namespace sluice::transfer {
namespace {

using Found = SourceRecheck::Found;
constexpr uint64_t kExtentBytes = 8U << 20;
constexpr wire::CrcKind kKind = wire::CrcKind::kCrc64Ecma;

// 255 TiB of which all but the extents at the begin and in the middle are holes.
class OfASparseFile : public testing::Test {
 protected:
  OfASparseFile() {
    for (const ExtentId each : {ExtentId(0), middle_}) sent_.add(each, 5);
    sent_.add_zeros({.offset = 0, .length = kSizeBytes});
    EXPECT_TRUE(sent_.complete());
  }
  // The CRC of what stands in the file.
  uint64_t crc_of(const recovery::Range& range) const {
    uint64_t crc = crc::of_zeros(kKind, range.length);
    for (const ExtentId each : {ExtentId(0), middle_}) {
      const recovery::Range at = sent_.map().range_of(each);
      if (at.offset < range.offset || at.end() > range.end()) continue;
      crc ^= crc::shift(kKind, crc::of_zeros(kKind, at.length) ^ changed(each), range.end() - at.end());
    }
    return crc;
  }
  uint64_t changed(ExtentId extent) const { return extent == changed_ ? 6 : 5; }

  // Reads it again to the end, or to where it differs.
  Found read_again() {
    SourceRecheck recheck;
    EXPECT_TRUE(recheck.add(ObjectId(0), sent_, 1));
    EXPECT_FALSE(recheck.add(ObjectId(0), sent_, 1));
    for (uint64_t at = 0;;) {
      const std::optional<ReadExtents> read = recheck.next();
      EXPECT_EQ(read->ranges.size(), 1U);
      EXPECT_EQ(read->ranges.front().offset, at) << "nothing is left out";
      at = read->ranges.front().end();
      const Found found = recheck.read(crc_of(read->ranges.front()));
      if (found == Found::kSameSoFar) continue;
      EXPECT_LE(recheck.steps(), 1000U) << "no more steps than a hole has TiB, and some";
      EXPECT_EQ(at == kSizeBytes, found == Found::kSame);
      return found;
    }
  }

  static constexpr uint64_t kSizeBytes = (255ULL << 40) - 100;
  ExtentId middle_ = ExtentId(3'000'000);
  ExtentId changed_ = ExtentId(UINT32_MAX);
  recovery::ExtentLedger sent_{
      recovery::Layout{.size_bytes = kSizeBytes, .extent_bytes = kExtentBytes, .crc_kind = kKind}};
};

TEST_F(OfASparseFile, HolesAreReadAtOnce) { EXPECT_EQ(read_again(), Found::kSame); }

TEST_F(OfASparseFile, WhatIsNoHoleIsCompared) {
  for (const ExtentId each : {ExtentId(0), middle_}) {
    changed_ = each;
    EXPECT_EQ(read_again(), Found::kChanged);
  }
}

}  // namespace
}  // namespace sluice::transfer
