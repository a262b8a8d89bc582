// SPDX-License-Identifier: Apache-2.0
#include "control/ranges/ranges.h"

#include <gtest/gtest.h>

#include "dataplane/crc/crc.h"

namespace sluice::ranges {
namespace {

using selection::FilePart;
constexpr uint64_t kMiB = 1U << 20;
constexpr auto kKind = wire::CrcKind::kCrc64Ecma;
constexpr base::FileTimeNs kTime = 1'700'000'000'000'000'001;
const std::string kSet(32, 'a');

FilePart range(uint64_t offset, uint64_t length, uint64_t whole) {
  return {
      .what = FilePart::What::kRange, .set = kSet, .offset = offset, .length = length, .whole_bytes = whole};
}

FilePart finish(uint64_t whole) {
  return {.what = FilePart::What::kFinish, .set = kSet, .whole_bytes = whole};
}

std::string content(size_t bytes) {
  std::string text(bytes, '\0');
  uint32_t state = 1;
  for (char& byte : text) byte = static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

Record record_of(const std::string& text, uint64_t offset, uint64_t length, wire::CrcKind kind = kKind) {
  return {.part = range(offset, length, text.size()),
          .mtime_ns = kTime,
          .crc_kind = kind,
          .digest = crc::compute(kind, 0, text.data() + offset, length)};
}

TEST(Ranges, ARecordIsReadAsItWasWritten) {
  Record record = record_of(content(3 * kMiB + 5), 2 * kMiB, kMiB + 5);
  EXPECT_EQ(decode(encode(record)), record);
  record.mtime_ns = base::file_time_ns(-20'000'000'000, 9);  // beyond 64 bits of nanoseconds
  EXPECT_EQ(decode(encode(record)), record);
  EXPECT_LE(encode(record).size(), kRecordBytesMax);
}

TEST(Ranges, WhatIsCutOrChangedIsNoRecord) {
  const std::string bytes = encode(record_of(content(kMiB), 0, kMiB));
  for (size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_FALSE(decode(bytes.substr(0, i))) << i;
    std::string other = bytes;
    other[i] = static_cast<char>(other[i] ^ 4);
    EXPECT_FALSE(decode(other)) << i;
  }
  EXPECT_FALSE(decode(bytes + "x"));
}

TEST(Ranges, ARecordOfNoRangeIsNone) {
  Record record = record_of(content(kMiB), 0, kMiB);
  record.part = finish(kMiB);
  EXPECT_FALSE(decode(encode(record)));
  record.part = range(kMiB, kMiB, kMiB);  // beyond the end
  EXPECT_FALSE(decode(encode(record)));
  record = record_of(content(kMiB), 0, kMiB);
  record.crc_kind = wire::CrcKind::kNone;
  EXPECT_FALSE(decode(encode(record)));
}

TEST(Ranges, TheDigestOfAllIsThatOfTheFile) {
  const std::string text = content(5 * kMiB + 77);
  for (const auto kind : {wire::CrcKind::kCrc64Ecma, wire::CrcKind::kCrc32c}) {
    Joined joined(finish(text.size()), kTime, kind);
    for (const auto& [offset, length] :
         {std::pair(0 * kMiB, 2 * kMiB), std::pair(2 * kMiB, kMiB), std::pair(3 * kMiB, 2 * kMiB + 77)}) {
      EXPECT_FALSE(joined.complete());
      EXPECT_EQ(joined.next_offset(), offset);
      ASSERT_TRUE(joined.take(record_of(text, offset, length, kind)));
    }
    EXPECT_TRUE(joined.complete());
    EXPECT_EQ(joined.digest(), crc::compute(kind, 0, text.data(), text.size()));
    EXPECT_EQ(joined.ranges(), 3U);
  }
}

TEST(Ranges, AnEmptyFileIsWholeWithoutARange) {
  const Joined joined(finish(0), kTime, kKind);
  EXPECT_TRUE(joined.complete());
  EXPECT_EQ(joined.digest(), 0U);
}

TEST(Ranges, WhatIsOfAnotherSourceIsNotTaken) {
  const std::string text = content(2 * kMiB);
  const auto code = [&](const Record& record) {
    Joined joined(finish(text.size()), kTime, kKind);
    const Status status = joined.take(record);
    EXPECT_EQ(joined.next_offset(), status ? record.part.length : 0U);
    return status ? ErrorCode::kOk : status.error().code;
  };
  Record record = record_of(text, 0, kMiB);
  EXPECT_EQ(code(record), ErrorCode::kOk);
  record.mtime_ns += 1;
  EXPECT_EQ(code(record), ErrorCode::kIntegrity);
  record = record_of(text, 0, kMiB);
  record.part.whole_bytes += 1;
  EXPECT_EQ(code(record), ErrorCode::kIntegrity);
  record = record_of(text, 0, kMiB);
  record.part.set = std::string(32, 'b');
  EXPECT_EQ(code(record), ErrorCode::kIntegrity);
  record = record_of(text, kMiB, kMiB);  // not where the one before it ends
  EXPECT_EQ(code(record), ErrorCode::kIntegrity);
  record = record_of(text, 0, kMiB, wire::CrcKind::kCrc32c);
  EXPECT_EQ(code(record), ErrorCode::kUsage);
}

TEST(Ranges, ARecordTellsOfTheSameRangeOfTheSameSource) {
  const Record record = record_of(content(2 * kMiB), 0, kMiB);
  EXPECT_TRUE(tells_of(record, record.part, kTime, kKind));
  EXPECT_FALSE(tells_of(record, range(0, kMiB, 3 * kMiB), kTime, kKind));
  EXPECT_FALSE(tells_of(record, range(0, 2 * kMiB, 2 * kMiB), kTime, kKind));
  EXPECT_FALSE(tells_of(record, record.part, kTime + 1, kKind));
  EXPECT_FALSE(tells_of(record, record.part, kTime, wire::CrcKind::kCrc32c));
}

}  // namespace
}  // namespace sluice::ranges
