// SPDX-License-Identifier: Apache-2.0
#include "dataplane/board/board.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <thread>

namespace sluice::board {
namespace {

TEST(SpscRing, HandsOverEveryItemInOrderBetweenTwoThreads) {
  constexpr uint64_t kItems = 500'000;
  auto ring = std::make_unique<SpscRing<Event, 64>>();
  std::thread producer([&] {
    for (uint64_t i = 0; i < kItems;) {
      if (ring->push({.offset = i, .digest = ~i})) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (uint64_t i = 0; i < kItems;) {
    Event event;
    if (!ring->pop(&event)) {
      std::this_thread::yield();
      continue;
    }
    ASSERT_EQ(event.offset, i);
    ASSERT_EQ(event.digest, ~i);
    ++i;
  }
  producer.join();
  EXPECT_TRUE(ring->empty());
}

TEST(SpscRing, RefusesWhenFullAndSaysHowMuchRoomIsLeft) {
  SpscRing<int, 4> ring;
  EXPECT_EQ(ring.room(), 4U);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.push(i));
  EXPECT_FALSE(ring.push(4));
  EXPECT_EQ(ring.room(), 0U);
  int out = -1;
  EXPECT_TRUE(ring.pop(&out));
  EXPECT_EQ(out, 0);
  EXPECT_EQ(ring.room(), 1U);
}

TEST(SpscRing, AnEmptyOneIsWaitedForUntilTheProducerRings) {
  constexpr uint64_t kForEver = 1'000'000'000'000;
  SpscRing<int, 4> ring;
  for (int round = 0; round < 200; ++round) {
    std::thread producer([&ring, round] {
      EXPECT_TRUE(ring.push(round));
      ring.ring();
    });
    int out = -1;
    while (!ring.pop(&out)) ring.wait(kForEver);
    EXPECT_EQ(out, round);
    producer.join();
  }
  ring.wait(1);  // nobody rings
  EXPECT_TRUE(ring.push(1));
  ring.wait(kForEver);  // there is something
}

TEST(SpscRing, AFaultyPeersIndicesLeadNowhereOutside) {
  SpscRing<int, 4> ring;
  // The head of a broken producer, far ahead: what is read still lies in the ring, and room is none.
  *reinterpret_cast<uint32_t*>(&ring) = 0x80000001;
  EXPECT_EQ(ring.room(), 0U);
  EXPECT_FALSE(ring.push(1));
  int out = 0;
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(ring.pop(&out));
}

TEST(Board, EveryCounterHasItsOwnNameAUnitAndHelp) {
  std::set<std::string> names;
  for (uint32_t i = 0; i < kCounters; ++i) {
    const CounterInfo& info = counter_table()[i];
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_STRNE(info.unit, "");
    EXPECT_STRNE(info.help, "");
  }
}

}  // namespace
}  // namespace sluice::board
