// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/number.h"

#include <gtest/gtest.h>

#include <unordered_map>

namespace sluice {
namespace {

template <typename A, typename B>
concept Comparable = requires(A a, B b) {
  a == b;
};

TEST(Number, KindsDoNotMixWithEachOtherOrWithIntegers) {
  static_assert(!std::is_convertible_v<uint32_t, ObjectId>);
  static_assert(!std::is_convertible_v<ObjectId, uint32_t>);
  static_assert(!std::is_convertible_v<ObjectId, LaneId>);
  static_assert(!std::is_constructible_v<ObjectId, LaneId>);
  static_assert(!Comparable<ObjectId, LaneId>);
  static_assert(!Comparable<ObjectId, uint32_t>);
  static_assert(sizeof(ObjectId) == 4 && sizeof(ExtentId) == 8);
  static_assert(std::is_trivially_copyable_v<ObjectId>);
}

TEST(Number, IsComparedCountedAndHashed) {
  ObjectId id(3);
  EXPECT_LT(id++, ObjectId(4));
  EXPECT_EQ(id, ObjectId(4));
  EXPECT_EQ(id.plus(2).value(), 6U);
  std::unordered_map<ObjectId, int> map{{id, 1}};
  EXPECT_TRUE(map.contains(ObjectId(4)));
}

TEST(Indexed, OpensToItsOwnKindOfNumber) {
  Indexed<LaneId, char> lanes;
  EXPECT_EQ(lanes.push_back('a'), LaneId(0));
  EXPECT_EQ(lanes.push_back('b'), LaneId(1));
  EXPECT_EQ(lanes[LaneId(1)], 'b');
  EXPECT_FALSE(lanes.contains(LaneId(2)));
  EXPECT_EQ(lanes.end_id(), LaneId(2));
}

TEST(IndexedDeathTest, FindsAPlaceThatIsNotThere) {
  const bool before = base::dchecks_enabled;
  base::set_dchecks(true);
  Indexed<LaneId, int> lanes(2);
  EXPECT_DEATH((void)lanes[LaneId(2)], "a number of this vector");
  base::set_dchecks(before);
}

}  // namespace
}  // namespace sluice
