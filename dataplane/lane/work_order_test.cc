// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/work_order.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::lane {
namespace {

struct FakeFlow {
  bool has_urgent() const { return urgent > 0; }
  bool has_a() const { return a > 0; }
  bool has_b() const { return b > 0; }
  bool has_rest() const { return rest > 0; }

  int urgent = 0;
  int a = 0;
  int b = 0;
  int rest = 0;
  bool turn = false;
};

struct FakeSender {
  Sent urgent(FakeFlow& flow, uint64_t) { return one(flow.urgent, 'u'); }
  Sent a(FakeFlow& flow, uint64_t) { return one(flow.a, 'a'); }
  Sent b(FakeFlow& flow, uint64_t) { return one(flow.b, 'b'); }
  Sent rest(FakeFlow& flow, uint64_t) { return one(flow.rest, 'r'); }

  Sent one(int& left, char kind) {
    if (left == 0) return Sent::kNothing;
    if (device_is_full) return Sent::kNoRoom;
    --left;
    sent += kind;
    return Sent::kYes;
  }

  bool device_is_full = false;
  std::string sent;
};

using FakeOrder = InOrder<
    Kind<&FakeSender::urgent, &FakeFlow::has_urgent>,
    InTurns<&FakeFlow::turn, Kind<&FakeSender::a, &FakeFlow::has_a>, Kind<&FakeSender::b, &FakeFlow::has_b>>,
    Kind<&FakeSender::rest, &FakeFlow::has_rest>>;

std::string all_of(FakeFlow flow) {
  FakeSender sender;
  while (FakeOrder::send(sender, flow, 0) == Sent::kYes) {
  }
  return sender.sent;
}

TEST(WorkOrder, AsksTheFirstKindUntilItHasNothing) {
  EXPECT_EQ(all_of({.urgent = 2, .a = 1, .rest = 2}), "uuarr");
}

TEST(WorkOrder, TwoKindsTakeTurns) { EXPECT_EQ(all_of({.a = 3, .b = 3}), "ababab"); }

TEST(WorkOrder, AKindWithNothingLeavesItsTurnToTheOther) {
  EXPECT_EQ(all_of({.a = 1, .b = 3}), "abbb");
  EXPECT_EQ(all_of({.a = 3, .b = 1, .rest = 1}), "abaar");
}

TEST(WorkOrder, AMoreUrgentKindTakesNoTurn) {
  FakeSender sender;
  FakeFlow flow{.urgent = 1, .a = 2, .b = 2};
  (void)FakeOrder::send(sender, flow, 0);
  EXPECT_FALSE(flow.turn);
  (void)FakeOrder::send(sender, flow, 0);
  EXPECT_EQ(sender.sent, "ua");
}

TEST(WorkOrder, NoLaterKindIsAskedWhileTheDeviceTakesNothing) {
  FakeSender sender{.device_is_full = true, .sent = {}};
  FakeFlow flow{.a = 1, .rest = 1};
  EXPECT_EQ(FakeOrder::send(sender, flow, 0), Sent::kNoRoom);
  EXPECT_EQ(flow.rest, 1);
}

TEST(WorkOrder, WaitsWhileAnyKindHasSomething) {
  EXPECT_FALSE(FakeOrder::waits(FakeFlow{}));
  EXPECT_TRUE(FakeOrder::waits(FakeFlow{.urgent = 1}));
  EXPECT_TRUE(FakeOrder::waits(FakeFlow{.b = 1}));
  EXPECT_TRUE(FakeOrder::waits(FakeFlow{.rest = 1}));
}

}  // namespace
}  // namespace sluice::lane
