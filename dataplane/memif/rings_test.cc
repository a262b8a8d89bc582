// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memif/rings.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>

#include "dataplane/memif/region_for_test.h"

namespace sluice::memif {
namespace {

constexpr uint32_t kSmallBufferBytes = 512;

class SharedRegion : public SharedRegionForTest {
 public:
  SharedRegion(uint32_t pairs, uint32_t log2_slots)
      : SharedRegionForTest(pairs, log2_slots, kSmallBufferBytes) {}
};

TEST(Region, CountsRingsAndTheirSlots) {
  SharedRegion shared(3, 5);
  EXPECT_EQ(shared.region.rings, 6U);
  EXPECT_EQ(shared.region.log2_slots, 5U);
  std::memset(shared.begin(), 0, 4);
  EXPECT_EQ(Region::inspect(shared.begin(), shared.bytes()).rings, 0U);
  EXPECT_EQ(Region::inspect(shared.begin(), 3).rings, 0U);
}

TEST(Region, DoesNotCountARingThatIsCutOff) {
  SharedRegion shared(1, 5);
  const uint64_t ring_bytes = kRingHeadBytes + (sizeof(Descriptor) << 5);
  EXPECT_EQ(Region::inspect(shared.begin(), ring_bytes + 64).rings, 0U);
}

TEST(Region, LeavesRingsThatDoNotBeginAtACacheLine) {
  EXPECT_EQ(SharedRegion(2, 1).region.rings, 0U);  // two slots: 160 bytes a ring
  EXPECT_EQ(SharedRegion(2, 2).region.rings, 4U);
}

TEST(Region, KnowsAClientWhoseBuffersLieElsewhere) {
  SharedRegion shared(1, 6);
  EXPECT_TRUE(shared.region.has_buffers());
  const uint64_t rings_bytes = 2 * (kRingHeadBytes + (sizeof(Descriptor) << 6));
  const uint64_t pages = (rings_bytes + 4095) / 4096 * 4096;
  EXPECT_EQ(Region::inspect(shared.begin(), pages).rings, 2U);
  EXPECT_FALSE(Region::inspect(shared.begin(), pages).has_buffers());
}

TEST(Ring, AServerSendsOnlyWhenTheClientHasOfferedBuffers) {
  SharedRegion shared(1, 4);
  const Ring to_client(shared.region, 0, false, true, kSmallBufferBytes);
  EXPECT_FALSE(to_client.offered());
  const Ring at_client(shared.region, 0, true, false, kSmallBufferBytes);
  EXPECT_TRUE(to_client.offered());
  EXPECT_EQ(to_client.ready(), 16U);
}

TEST(Ring, ABufferIsOfferedAgainWithoutTheMarksOfItsLastFrame) {
  SharedRegion shared(1, 4);
  Ring from(shared.region, 0, false, true, kSmallBufferBytes);
  Ring to(shared.region, 0, true, false, kSmallBufferBytes);
  from.slot(0).flags = kChained;
  from.slot(0).length = 7;
  from.give(1);
  ASSERT_EQ(to.read(0).flags, kChained);
  to.give(1);
  EXPECT_EQ(from.slot(15).flags, 0);
  EXPECT_EQ(from.slot(15).length, kSmallBufferBytes);
}

// Frames of random sizes in random bursts, both directions, round the 16-bit indices more than once.
class RingTest : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Directions, RingTest, testing::Bool(),
                         [](const auto& each) { return each.param ? "ClientToServer" : "ServerToClient"; });

TEST_P(RingTest, CarriesEveryFrameOnceAndInOrder) {
  const bool to_server = GetParam();
  SharedRegion shared(2, 4);
  Ring from(shared.region, 1, to_server, true, kSmallBufferBytes);
  Ring to(shared.region, 1, !to_server, false, kSmallBufferBytes);
  Ring other(shared.region, 0, !to_server, false, kSmallBufferBytes);
  std::mt19937 random(7);
  std::deque<std::pair<uint32_t, uint8_t>> expected;
  for (uint32_t sent = 0; sent < 200'000;) {
    const uint32_t free = from.ready();
    ASSERT_LE(free, 16U);
    ASSERT_EQ(free + expected.size(), 16U);
    const uint32_t burst = std::min<uint32_t>(free, random() % 20);
    for (uint32_t i = 0; i < burst; ++i) {
      Descriptor& slot = from.slot(i);
      if (!to_server) {
        ASSERT_EQ(slot.length, kSmallBufferBytes);
      }
      const uint32_t bytes = 1 + random() % kSmallBufferBytes;
      uint8_t* const data = from.buffer(slot, bytes);
      ASSERT_NE(data, nullptr);
      slot.length = bytes;
      const auto fill = static_cast<uint8_t>(random());
      std::memset(data, fill, bytes);
      expected.emplace_back(bytes, fill);
    }
    from.give(burst);
    sent += burst;
    const uint32_t there = to.ready();
    ASSERT_EQ(there, expected.size());
    const uint32_t taken = std::min<uint32_t>(there, random() % 20);
    for (uint32_t i = 0; i < taken; ++i) {
      const auto [bytes, fill] = expected.front();
      expected.pop_front();
      ASSERT_EQ(to.slot(i).length, bytes);
      const uint8_t* const data = to.buffer(to.slot(i), bytes);
      ASSERT_NE(data, nullptr);
      ASSERT_EQ(data[0], fill);
      ASSERT_EQ(data[bytes - 1], fill);
    }
    if (taken > 0) to.give(taken);
  }
  EXPECT_EQ(other.ready(), 0U) << "the other pair's ring";
}

TEST_P(RingTest, TakesNothingFromAPeerThatBreaksTheRules) {
  const bool to_server = GetParam();
  SharedRegion shared(1, 4);
  Ring to(shared.region, 0, !to_server, false, kSmallBufferBytes);
  const uint64_t ring_bytes = kRingHeadBytes + (sizeof(Descriptor) << 4);
  auto* const head = reinterpret_cast<RingHead*>(shared.begin() + (to_server ? 0 : ring_bytes));
  auto& theirs = to_server ? head->head : head->tail;
  theirs = 17;  // more frames than slots
  EXPECT_EQ(to.ready(), 0U);
  theirs = 0xFFFF;  // backwards
  EXPECT_EQ(to.ready(), 0U);
  theirs = 1;
  ASSERT_EQ(to.ready(), 1U);

  const auto end = static_cast<uint32_t>(shared.bytes());
  Descriptor frame{.length = 100, .offset = end - 100};
  EXPECT_NE(to.buffer(frame, frame.length), nullptr);
  frame.offset = end - 99;
  EXPECT_EQ(to.buffer(frame, frame.length), nullptr);
  frame = {.length = 0xFFFFFFFF, .offset = 0xFFFFFFFF};
  EXPECT_EQ(to.buffer(frame, frame.length), nullptr);
  frame = {.region = 1, .length = 1};
  EXPECT_EQ(to.buffer(frame, frame.length), nullptr) << "a region that is not mapped";
}

}  // namespace
}  // namespace sluice::memif
