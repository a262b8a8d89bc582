// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/status.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <random>
#include <vector>

#include "dataplane/core/wire.h"

namespace sluice::wire {
namespace {

std::vector<uint8_t> encoded(const Status& s, size_t room = kStatusBytesMax, StatusWritten* said = nullptr) {
  std::vector<uint8_t> bytes(room);
  const StatusWritten written = encode_status(s, bytes);
  bytes.resize(written.bytes);
  if (said != nullptr) *said = written;
  return bytes;
}

// Whether a status is right that has these bytes behind what each must have.
bool taken(const std::vector<uint8_t>& more) {
  auto bytes = encoded(Status());
  bytes.insert(bytes.end(), more.begin(), more.end());
  Status d;
  return decode_status(bytes, &d);
}

TEST(Status, RoundTripsEveryField) {
  Status s;
  s.echo_send_time_ns = 1;
  s.echo_hold_ns = 2;
  s.received_end = 1000;
  s.datagrams_received = 990;
  s.no_room = 3;
  s.crc_errors = 4;
  s.credit_extents = 17;
  s.advice_bps = 8'000'000'000;
  s.bytes_received = 1ULL << 50;
  s.delay_min_ns = -5;
  s.delay_max_ns = 1'000'000;
  s.done_end = 2;
  s.done_back = 7;
  s.run_count = 3;
  s.runs[0] = {.object = 0xFFFFFFFF, .count = 1, .first = UINT64_MAX - 1};
  s.runs[1] = {.object = 0, .count = 4, .first = 1000};
  s.runs[2] = {.object = 0, .count = 2, .first = 7};  // completed late
  s.gap_count = 2;
  s.gaps[0] = {100, 1};
  s.gaps[1] = {300, 1'000'000};
  StatusWritten said;
  const auto bytes = encoded(s, kStatusBytesMax, &said);
  EXPECT_EQ(said.runs, 3U);
  EXPECT_EQ(said.gaps, 2U);
  Status d;
  ASSERT_TRUE(decode_status(bytes, &d));
  EXPECT_EQ(d.echo_send_time_ns, 1U);
  EXPECT_EQ(d.echo_hold_ns, 2U);
  EXPECT_EQ(d.received_end, 1000U);
  EXPECT_EQ(d.datagrams_received, 990U);
  EXPECT_EQ(d.no_room, 3U);
  EXPECT_EQ(d.crc_errors, 4U);
  EXPECT_EQ(d.credit_extents, 17U);
  EXPECT_EQ(d.advice_bps, 8'000'000'000U);
  EXPECT_EQ(d.bytes_received, 1ULL << 50);
  EXPECT_EQ(d.delay_min_ns, -5);
  EXPECT_EQ(d.delay_max_ns, 1'000'000);
  EXPECT_EQ(d.done_first(), 0xFFFFFFFB);
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(d.runs[i].object, s.runs[i].object);
    EXPECT_EQ(d.runs[i].first, s.runs[i].first);
    EXPECT_EQ(d.runs[i].count, s.runs[i].count);
  }
  EXPECT_EQ(d.gaps[0].first, 100U);
  EXPECT_EQ(d.gaps[1].first, 300U);
  EXPECT_EQ(d.gaps[1].count, 1'000'000U);
}

TEST(Status, TellsHowManyPaddedProbesOfEachSizeCame) {
  Status s;
  s.gap_count = 1;
  s.gaps[0] = {100, 1};
  s.padded_count = kPaddedSizesMax;
  for (uint32_t i = 0; i < kPaddedSizesMax; ++i) s.padded[i] = {.bytes = kChunkBytesMax - i, .count = i + 1};
  StatusWritten said;
  auto bytes = encoded(s, kStatusBytesMax, &said);
  EXPECT_EQ(said.padded, kPaddedSizesMax);
  Status d;
  ASSERT_TRUE(decode_status(bytes, &d));
  ASSERT_EQ(d.padded_count, kPaddedSizesMax);
  for (uint32_t i = 0; i < kPaddedSizesMax; ++i) {
    EXPECT_EQ(d.padded[i].bytes, kChunkBytesMax - i);
    EXPECT_EQ(d.padded[i].count, i + 1);
  }
  // In a short status there is room for all, or for none of them.
  bytes = encoded(s, kStatusBytesMin + 8, &said);
  EXPECT_EQ(said.padded, 0U);
  ASSERT_TRUE(decode_status(bytes, &d));
  EXPECT_EQ(d.padded_count, 0U);
  EXPECT_EQ(d.gap_count, 1U);
}

TEST(Status, RefusesPaddedSizesThatCannotBe) {
  EXPECT_TRUE(taken({1, 100, 3}));
  EXPECT_FALSE(taken({0}));
  EXPECT_FALSE(taken({1, 100}));
  EXPECT_FALSE(taken({1, 0, 3}));
  EXPECT_FALSE(taken({1, 100, 0}));
  EXPECT_FALSE(taken({1, 0x81, 0x80, 2, 1}));  // 32769 bytes
  EXPECT_FALSE(taken({1, 100, 3, 9}));
  EXPECT_FALSE(taken({17}));
}

Status with_holes() {
  Status s;
  s.holes_count = 3;
  s.holes[0] = {.object = 2, .told = 4096, .number = 300, .run_count = 2};
  s.holes[1] = {.object = 0xFFFFFFFF, .told = 1, .number = UINT64_MAX, .run_count = 1};
  s.holes[2] = {.object = 2, .told = 200, .number = 298, .run_count = 3};
  const ChunkRun runs[] = {{0, 1}, {4000, 96}, {0, 1}, {3, 1}, {5, 100}, {130, 1}};
  std::copy(std::begin(runs), std::end(runs), s.hole_runs);
  return s;
}

TEST(Status, TellsWhichChunksOfExtentsAreMissing) {
  Status s = with_holes();
  for (const uint32_t padded : {0U, 2U}) {
    s.padded_count = padded;
    s.padded[0] = s.padded[1] = {.bytes = 1400, .count = 3};
    StatusWritten said;
    const auto bytes = encoded(s, kStatusBytesMax, &said);
    EXPECT_EQ(said.holes, 3U);
    Status d;
    ASSERT_TRUE(decode_status(bytes, &d));
    EXPECT_EQ(d.padded_count, padded);
    ASSERT_EQ(d.holes_count, 3U);
    for (uint32_t i = 0; i < 3; ++i) {
      EXPECT_EQ(d.holes[i].object, s.holes[i].object);
      EXPECT_EQ(d.holes[i].number, s.holes[i].number);
      EXPECT_EQ(d.holes[i].told, s.holes[i].told);
      EXPECT_EQ(d.holes[i].run_count, s.holes[i].run_count);
    }
    for (uint32_t i = 0; i < 6; ++i) {
      EXPECT_EQ(d.hole_runs[i].first, s.hole_runs[i].first);
      EXPECT_EQ(d.hole_runs[i].count, s.hole_runs[i].count);
    }
  }
}

// Where an extent's runs do not all fit, the first ones are told, and nothing of the chunks behind them.
TEST(Status, TellsOfAsManyHolesAsFitBesideTheGaps) {
  Status s;
  s.holes_count = 2;
  s.holes[0] = {.object = 1, .told = 1100, .number = 7, .run_count = 200};
  s.holes[1] = {.object = 1, .told = 1100, .number = 9, .run_count = 200};
  for (uint32_t i = 0; i < 400; ++i) s.hole_runs[i] = {.first = i % 200 * 5 + 1, .count = 2};
  s.gap_count = kStatusGapsMax;
  for (uint32_t i = 0; i < kStatusGapsMax; ++i) s.gaps[i] = {1000 + 10 * uint64_t{i}, 2};
  uint32_t most = 0;
  for (size_t room = kStatusBytesMin; room <= kStatusBytesMax; ++room) {
    StatusWritten said;
    const auto bytes = encoded(s, room, &said);
    ASSERT_LE(bytes.size(), room);
    Status d;
    ASSERT_TRUE(decode_status(bytes, &d));
    ASSERT_EQ(d.holes_count, said.holes);
    ASSERT_GE(said.holes, 1U);
    ASSERT_GE(said.gaps, 30U);
    const ExtentHoles& last = d.holes[said.holes - 1];
    if (last.run_count < 200) {
      ASSERT_EQ(last.told, s.hole_runs[last.run_count].first);
    } else {
      ASSERT_EQ(last.told, 1100U);
    }
    const uint32_t runs = 200 * (said.holes - 1) + last.run_count;
    ASSERT_GE(runs, most);
    most = runs;
  }
  EXPECT_GT(most, 300U);
}

TEST(Status, RefusesHolesThatCannotBe) {
  EXPECT_TRUE(taken({0, 1, 2, 9, 5, 1, 3, 2}));
  EXPECT_TRUE(taken({1, 100, 3, 1, 2, 9, 5, 0})) << "behind padded sizes; all five have come";
  EXPECT_FALSE(taken({0, 0})) << "of no extent";
  EXPECT_FALSE(taken({0, 33})) << "of too many";
  EXPECT_FALSE(taken({0, 1, 2, 9, 5, 1, 3, 3})) << "beyond what is told";
  EXPECT_FALSE(taken({0, 1, 2, 9, 5, 1, 6, 1}));
  EXPECT_FALSE(taken({0, 1, 2, 9, 5, 1, 3, 0})) << "a run of nothing";
  EXPECT_FALSE(taken({0, 1, 2, 9, 0x81, 0x20, 0})) << "4097 chunks";
  EXPECT_FALSE(taken({0, 1, 2, 9, 5, 1, 3, 2, 0})) << "bytes behind it";
  const std::vector<uint8_t> whole{0, 1, 2, 9, 5, 1, 3, 2};
  for (size_t n = 1; n < whole.size(); ++n) {
    EXPECT_FALSE(taken({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n)})) << n;
  }
  std::vector<uint8_t> many{0, 1, 2, 9, 0x80, 0x20, 0x81, 0x04};  // 513 runs
  for (int i = 0; i < 513; ++i) many.insert(many.end(), {1, 1});
  EXPECT_FALSE(taken(many));
}

TEST(Status, CarriesDelaysOfAnySize) {
  for (const int64_t min : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{1} << 61}) {
    Status s;
    s.delay_min_ns = min;
    s.delay_max_ns = min + INT64_MAX / 2;
    Status d;
    ASSERT_TRUE(decode_status(encoded(s), &d));
    EXPECT_EQ(d.delay_min_ns, s.delay_min_ns);
    EXPECT_EQ(d.delay_max_ns, s.delay_max_ns);
  }
}

// On a channel that loses most long datagrams a status must be short: this is one of a transfer of some GiB,
// with 8 extents and 8 gaps.
TEST(Status, IsShort) {
  Status s;
  s.echo_send_time_ns = 86'400'000'000'000;
  s.echo_hold_ns = 500'000;
  s.received_end = 4'000'000;
  s.datagrams_received = 1'500'000;
  s.credit_extents = 9'000;
  s.bytes_received = 4ULL << 30;
  s.delay_min_ns = -50'000'000'000'000;
  s.delay_max_ns = s.delay_min_ns + 200'000'000;
  s.done_end = 8'000;
  s.done_back = s.run_count = 8;
  for (uint32_t i = 0; i < 8; ++i) s.runs[i] = {.object = 0, .count = 1, .first = 8000 + 3 * i};
  s.gap_count = 8;
  for (uint32_t i = 0; i < 8; ++i) s.gaps[i] = {3'999'000 + 10 * i, 2};
  EXPECT_LT(encoded(s).size(), 100U);
}

TEST(Status, SaysHowManyEntriesFitted) {
  Status s;
  s.echo_send_time_ns = s.echo_hold_ns = s.received_end = s.datagrams_received = UINT64_MAX;
  s.no_room = s.crc_errors = s.credit_extents = s.advice_bps = s.bytes_received = UINT64_MAX;
  s.delay_min_ns = INT64_MIN;
  s.delay_max_ns = -1;
  s.run_count = kStatusRunsMax;
  s.done_end = s.done_back = UINT32_MAX;
  for (uint32_t i = 0; i < kStatusRunsMax; ++i)
    s.runs[i] = {.object = ~i, .count = 8, .first = UINT64_MAX - 8};
  s.gap_count = kStatusGapsMax;
  for (uint32_t i = 0; i < kStatusGapsMax; ++i) s.gaps[i] = {(uint64_t{1} << 63) + 10ULL * i, 1};
  for (size_t room = kStatusBytesMin; room <= kStatusBytesMax; ++room) {
    StatusWritten said;
    const auto bytes = encoded(s, room, &said);
    ASSERT_LE(bytes.size(), room);
    ASSERT_GE(said.runs, 1U) << "there is room for one of each, however large";
    ASSERT_GE(said.gaps, 1U);
    Status d;
    ASSERT_TRUE(decode_status(bytes, &d));
    ASSERT_EQ(d.run_count, said.runs);
    ASSERT_EQ(d.gap_count, said.gaps);
  }
}

TEST(Status, ListsManyExtentsThatWereCompletedInOrder) {
  Status s;
  s.done_end = s.done_back = kStatusDoneMax;
  s.run_count = 1;
  s.runs[0] = {.object = 3, .count = kStatusDoneMax, .first = 70'000};
  Status d;
  ASSERT_TRUE(decode_status(encoded(s), &d));
  EXPECT_EQ(d.runs[0].count, kStatusDoneMax);
  s.done_back = kStatusDoneMax - 1;
  EXPECT_FALSE(decode_status(encoded(s), &d)) << "more than there are";
  s.done_back = 2 * kStatusDoneMax;
  s.run_count = 2;
  s.runs[1] = {.object = 3, .count = 1, .first = 0};
  EXPECT_FALSE(decode_status(encoded(s), &d)) << "more than one status may list";
  s.run_count = 1;
  s.runs[0] = {.object = 3, .count = 2, .first = UINT64_MAX - 1};
  EXPECT_FALSE(decode_status(encoded(s), &d)) << "beyond all numbers";
  s.runs[0] = {.object = 3, .count = 0, .first = 1};
  EXPECT_FALSE(decode_status(encoded(s), &d)) << "a run of nothing";
}

TEST(Status, RefusesTruncationAndTrailingBytes) {
  Status s;
  s.gap_count = 1;
  s.gaps[0] = {5, 500};
  auto bytes = encoded(s);
  Status d;
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(decode_status(std::span(bytes).first(n), &d)) << n;
  bytes.push_back(0);
  EXPECT_FALSE(decode_status(bytes, &d));
}

TEST(Status, RefusesEmptyAndOverflowingGaps) {
  Status s;
  s.gap_count = 1;
  s.gaps[0] = {5, 0};
  Status d;
  EXPECT_FALSE(decode_status(encoded(s), &d));
  s.gaps[0] = {UINT64_MAX - 1, 5};
  EXPECT_FALSE(decode_status(encoded(s), &d));
}

TEST(Status, SurvivesRandomBytes) {
  std::mt19937_64 random(7);
  std::vector<uint8_t> bytes(kStatusBytesMax);
  for (int round = 0; round < 20'000; ++round) {
    for (auto& b : bytes) b = static_cast<uint8_t>(random());
    // Mostly short varints, so that some get as far as the lists.
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] &= random() % 8 == 0 ? 0xFF : 0x7F;
    bytes[13] %= 20;
    bytes[14] %= 20;
    Status d;
    if (decode_status(std::span(bytes).first(random() % bytes.size()), &d)) {
      EXPECT_LE(d.run_count, kStatusRunsMax);
      EXPECT_LE(d.gap_count, kStatusGapsMax);
      EXPECT_LE(d.holes_count, kStatusHolesMax);
    }
  }
}

}  // namespace
}  // namespace sluice::wire
