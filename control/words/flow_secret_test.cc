// SPDX-License-Identifier: Apache-2.0
#include "control/words/flow_secret.h"

#include <gtest/gtest.h>

namespace sluice::transfer {
namespace {

TEST(FlowSecret, ContextIsTheSessionTheFlowAndTheLane) {
  const auto context = flow_secret_context("000102030405060708090a0b0c0d0eff", 0x8000112233440007, LaneId(5));
  ASSERT_TRUE(context);
  const std::array<uint8_t, 28> expected = {0,  1,    2,    3, 4,    5,    6,    7,    8, 9, 10, 11, 12, 13,
                                            14, 0xff, 0x80, 0, 0x11, 0x22, 0x33, 0x44, 0, 7, 0,  0,  0,  5};
  EXPECT_EQ(*context, expected);
}

TEST(FlowSecret, AnIdThatIsNoneHasNoContext) {
  EXPECT_FALSE(flow_secret_context("", 1, LaneId(0)));
  EXPECT_FALSE(flow_secret_context("000102030405060708090a0b0c0d0e", 1, LaneId(0)));
  EXPECT_FALSE(flow_secret_context("000102030405060708090a0b0c0d0exx", 1, LaneId(0)));
}

}  // namespace
}  // namespace sluice::transfer
