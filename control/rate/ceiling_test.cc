// What a path carries, where loss alone tells.
// SPDX-License-Identifier: Apache-2.0
#include "control/rate/ceiling.h"

#include <gtest/gtest.h>

#include "dataplane/base/time_for_test.h"

namespace sluice::rate {
namespace {

TEST(Ceiling, IsStayedWellBelowAtFirstThenALittleAndThenForgotten) {
  Ceiling ceiling;
  EXPECT_GT(ceiling.limit_bits(5 * kSecond), 1e30) << "none is known";
  ceiling.touch(1e6, 5 * kSecond);
  EXPECT_DOUBLE_EQ(ceiling.limit_bits(6 * kSecond), 0.85e6);
  EXPECT_DOUBLE_EQ(ceiling.limit_bits(9 * kSecond), 0.95e6);
  EXPECT_GT(ceiling.limit_bits(19 * kSecond), 1e30);
  ceiling.touch(2e6, 20 * kSecond);
  EXPECT_DOUBLE_EQ(ceiling.limit_bits(21 * kSecond), 1.7e6);
  ceiling.forget();
  EXPECT_GT(ceiling.limit_bits(21 * kSecond), 1e30);
}

}  // namespace
}  // namespace sluice::rate
