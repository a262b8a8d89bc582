// ExtentTable, ChunkMap, Fifo and SlotList against plain models; how far a flow reads ahead.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <random>
#include <set>
#include <tuple>

#include "dataplane/core/chunk_map.h"
#include "dataplane/core/extent_table.h"
#include "dataplane/core/fifo.h"
#include "dataplane/core/read_ahead.h"
#include "dataplane/core/slot_list.h"

namespace sluice {
namespace {

TEST(ReadAhead, IsWhatAFlowSendsInASecondTwiceOver) {
  ReadAhead ahead;
  EXPECT_EQ(ahead.extents(5), ReadAhead::kLeast);
  const uint64_t begin_ns = 100 * ReadAhead::kSpanNs;
  for (uint64_t i = 0; i < 10; ++i) ahead.began(begin_ns + i);
  EXPECT_EQ(ahead.extents(begin_ns + 10), ReadAhead::kLeast + 20);
  EXPECT_EQ(ahead.extents(begin_ns + ReadAhead::kSpanNs), ReadAhead::kLeast + 20) << "of the span before";
  ahead.began(begin_ns + ReadAhead::kSpanNs + 1);
  EXPECT_EQ(ahead.extents(begin_ns + 2 * ReadAhead::kSpanNs), ReadAhead::kLeast + 2);
  EXPECT_EQ(ahead.extents(begin_ns + 9 * ReadAhead::kSpanNs), ReadAhead::kLeast) << "it stands still";
}

TEST(ExtentTable, BehavesAsAMap) {
  constexpr uint32_t kCapacity = 24;
  ExtentTable table(kCapacity);
  std::map<std::tuple<uint32_t, uint32_t, uint64_t>, uint32_t> model;
  std::mt19937 random(11);
  for (int i = 0; i < 100'000; ++i) {
    const ExtentKey key{static_cast<uint32_t>(random() % 2), static_cast<uint32_t>(random() % 3),
                        random() % 16};
    const auto model_key = std::make_tuple(key.session, key.object, key.number);
    const auto known = model.find(model_key);
    ASSERT_EQ(table.find(key), known == model.end() ? ExtentTable::kNone : known->second);
    if (known != model.end()) {
      if (random() % 2 == 0) {
        table.erase(key);
        model.erase(known);
      }
    } else if (model.size() < kCapacity) {
      table.insert(key, static_cast<uint32_t>(i));
      model[model_key] = static_cast<uint32_t>(i);
    }
    ASSERT_EQ(table.size(), model.size());
  }
}

TEST(ChunkMap, FindsRunsOfMissingChunks) {
  ChunkMap map;
  map.reset(130);
  for (uint32_t i = 0; i < 130; ++i) {
    if (i != 5 && i != 6 && i != 64 && i != 129) map.set(i);
  }
  EXPECT_FALSE(map.complete());
  uint32_t end = 0;
  EXPECT_EQ(map.next_missing(0, &end), 5U);
  EXPECT_EQ(end, 7U);
  EXPECT_EQ(map.next_missing(7, &end), 64U);
  EXPECT_EQ(map.next_missing(65, &end), 129U);
  EXPECT_EQ(end, 130U);
  for (const uint32_t i : {5U, 6U, 64U, 129U}) map.set(i);
  EXPECT_TRUE(map.complete());
  EXPECT_EQ(map.next_missing(0, &end), 130U);
}

TEST(ChunkMap, LastChunkOfAnExtentMayBeShort) {
  EXPECT_EQ(chunk_count(1U << 20, 8192), 128U);
  EXPECT_EQ(chunk_count(8193, 8192), 2U);
  EXPECT_EQ(chunk_length(8193, 8192, 0), 8192U);
  EXPECT_EQ(chunk_length(8193, 8192, 1), 1U);
  EXPECT_EQ(chunk_length(1U << 20, 1384, 757), (1U << 20) - 757 * 1384);
}

TEST(Fifo, KeepsOrderAndBound) {
  Fifo<int> fifo(4);
  std::deque<int> model;
  std::mt19937 random(5);
  for (int i = 0; i < 10'000; ++i) {
    if (random() % 2 == 0) {
      const bool pushed = fifo.push(i);
      ASSERT_EQ(pushed, model.size() < 4);
      if (pushed) model.push_back(i);
    } else if (!model.empty()) {
      ASSERT_EQ(fifo.front(), model.front());
      fifo.pop();
      model.pop_front();
    }
    ASSERT_EQ(fifo.size(), model.size());
    for (uint32_t n = 0; n < model.size(); ++n) ASSERT_EQ(fifo.at(n), model[n]);
  }
}

// What their owners promise is held, in every build or where DCHECK looks.
class Promises : public testing::Test {
 protected:
  Promises() { base::set_dchecks(true); }
  ~Promises() override { base::set_dchecks(before_); }

 private:
  const bool before_ = base::dchecks_enabled;
};

TEST_F(Promises, ATableHasRoomAndEachKeyOnce) {
  ExtentTable table(1);
  EXPECT_DEATH(table.erase({0, 0, 7}), "what leaves the table is in it");
  table.insert({0, 0, 7}, 1);
  EXPECT_DEATH(table.insert({0, 0, 8}, 2), "room for every extent");
  ExtentTable larger(2);
  larger.insert({0, 0, 7}, 1);
  EXPECT_DEATH(larger.insert({0, 0, 7}, 2), "in the table once");
}

TEST_F(Promises, AChunkIsOneOfItsExtentsAndReceivedOnce) {
  ChunkMap map;
  EXPECT_DEATH(map.reset(wire::kChunksPerExtentMax + 1), "a bit for every chunk");
  map.reset(10);
  EXPECT_DEATH(map.set(10), "one of its extent's");
  map.set(9);
  EXPECT_DEATH(map.set(9), "received once");
  EXPECT_DEATH(chunk_length(8192, 8192, 1), "begins within its extent");
}

TEST_F(Promises, AQueueIsPushedWhereItHasRoomAndTakenFromWhereItIsNotEmpty) {
  Fifo<int> fifo(2);
  EXPECT_DEATH(fifo.pop(), "only what is in the queue");
  EXPECT_DEATH(fifo.at(0), "only what is in the queue");
  fifo.must_push(1);
  fifo.must_push(2);
  EXPECT_DEATH(fifo.must_push(3), "there was room");
}

TEST(SlotList, HasWhatWasPutIntoItAndNotTakenOut) {
  std::mt19937 random(5);
  SlotList list(64);
  std::set<uint32_t> plain;
  for (int round = 0; round < 2000; ++round) {
    const uint32_t slot = random() % 64;
    if (plain.erase(slot) != 0) {
      list.erase(slot);
    } else {
      plain.insert(slot);
      list.insert(slot);
    }
    std::set<uint32_t> all;
    for (uint32_t i = 0; i < list.size(); ++i) all.insert(list.at(i));
    ASSERT_EQ(all, plain);
    ASSERT_EQ(list.size(), plain.size()) << "each once";
    ASSERT_EQ(list.empty(), plain.empty());
  }
}

}  // namespace
}  // namespace sluice
