// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/status.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace sluice::wire {
namespace {

std::vector<uint8_t> encoded(const Status& s, size_t room, uint32_t* done, uint32_t* gaps) {
  std::vector<uint8_t> bytes(room);
  bytes.resize(encode_status(s, bytes, done, gaps));
  return bytes;
}

TEST(Status, RoundTripsEveryField) {
  Status s;
  s.echo_send_time_ns = 1;
  s.echo_hold_ns = 2;
  s.received_end = 1000;
  s.credit_extents = 17;
  s.bytes_received = 1ULL << 50;
  s.delay_min_ns = -5;
  s.delay_max_ns = 1'000'000;
  s.done_first = 0xFFFFFFFE;
  s.done_count = 2;
  s.done[0] = {0xFFFFFFFF, UINT64_MAX};
  s.done[1] = {0, 0};
  s.gap_count = 2;
  s.gaps[0] = {100, 1};
  s.gaps[1] = {300, 1'000'000};
  uint32_t done = 0;
  uint32_t gaps = 0;
  const auto bytes = encoded(s, kStatusBytesMax, &done, &gaps);
  EXPECT_EQ(done, 2U);
  EXPECT_EQ(gaps, 2U);
  Status d;
  ASSERT_TRUE(decode_status(bytes, &d));
  EXPECT_EQ(d.received_end, 1000U);
  EXPECT_EQ(d.credit_extents, 17U);
  EXPECT_EQ(d.delay_min_ns, -5);
  EXPECT_EQ(d.done_first, 0xFFFFFFFE);
  EXPECT_EQ(d.done[0].object, 0xFFFFFFFFU);
  EXPECT_EQ(d.done[0].number, UINT64_MAX);
  EXPECT_EQ(d.gaps[0].first, 100U);
  EXPECT_EQ(d.gaps[1].first, 300U);
  EXPECT_EQ(d.gaps[1].count, 1'000'000U);
}

TEST(Status, SaysHowManyEntriesFitted) {
  Status s;
  s.done_count = kStatusDoneMax;
  for (auto& done : s.done) done = {0xFFFFFFFF, UINT64_MAX};
  s.gap_count = kStatusGapsMax;
  for (uint32_t i = 0; i < kStatusGapsMax; ++i) s.gaps[i] = {10ULL * i, 1};
  uint32_t done = 0;
  uint32_t gaps = 0;
  const auto bytes = encoded(s, 200, &done, &gaps);
  EXPECT_LE(bytes.size(), 200U);
  EXPECT_LT(done, kStatusDoneMax);
  Status d;
  ASSERT_TRUE(decode_status(bytes, &d));
  EXPECT_EQ(d.done_count, done);
  EXPECT_EQ(d.gap_count, gaps);
}

TEST(Status, RefusesTruncationAndTrailingBytes) {
  Status s;
  s.gap_count = 1;
  s.gaps[0] = {5, 500};
  uint32_t done = 0;
  uint32_t gaps = 0;
  auto bytes = encoded(s, kStatusBytesMax, &done, &gaps);
  Status d;
  for (size_t n = 0; n < bytes.size(); ++n) EXPECT_FALSE(decode_status(std::span(bytes).first(n), &d)) << n;
  bytes.push_back(0);
  EXPECT_FALSE(decode_status(bytes, &d));
}

TEST(Status, RefusesEmptyAndOverflowingGaps) {
  Status s;
  s.gap_count = 1;
  s.gaps[0] = {5, 0};
  uint32_t done = 0;
  uint32_t gaps = 0;
  Status d;
  EXPECT_FALSE(decode_status(encoded(s, kStatusBytesMax, &done, &gaps), &d));
  s.gaps[0] = {UINT64_MAX - 1, 5};
  EXPECT_FALSE(decode_status(encoded(s, kStatusBytesMax, &done, &gaps), &d));
}

TEST(Status, SurvivesRandomBytes) {
  std::mt19937_64 random(7);
  std::vector<uint8_t> bytes(kStatusBytesMax);
  for (int round = 0; round < 20'000; ++round) {
    for (auto& b : bytes) b = static_cast<uint8_t>(random());
    bytes[60] = bytes[62] = 0;
    Status d;
    if (decode_status(std::span(bytes).first(random() % bytes.size()), &d)) {
      EXPECT_LE(d.done_count, kStatusDoneMax);
      EXPECT_LE(d.gap_count, kStatusGapsMax);
    }
  }
}

}  // namespace
}  // namespace sluice::wire
