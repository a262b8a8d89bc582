// SPDX-License-Identifier: Apache-2.0
#include "control/parts/leg_state.h"

#include <gtest/gtest.h>

namespace sluice::parts {
namespace {

constexpr uint64_t kMillisNs = 1'000'000;

// A leg that brings so many bytes each 10 ms.
class LegStateTest : public testing::Test {
 protected:
  LegStateTest() {
    state_.facts = {.rtt_ns = 80 * kMillisNs, .expected_rate_bps = 80'000'000};
    state_.goodput.begin(now_ns_, 0);
  }
  void bring(uint64_t bytes, uint64_t ms) {
    for (uint64_t at = 0; at < ms; at += 10) {
      state_.goodput.add(bytes);
      state_.goodput.tick(now_ns_ += 10 * kMillisNs, state_.facts.rtt_ns);
    }
  }
  double mbps() const { return state_.rate(0) * 8e-6; }

  LegState state_;
  uint64_t now_ns_ = 1000 * kMillisNs;
};

// The mean of a second says so much later.
TEST_F(LegStateTest, ThatItSlowsDownIsSeenWithinTwoRoundTrips) {
  bring(100'000, 2000);
  EXPECT_NEAR(mbps(), 80, 1);
  bring(10'000, 160);
  EXPECT_GT(state_.goodput.rate() * 8e-6, 60);
  EXPECT_LT(mbps(), 25);
}

TEST_F(LegStateTest, ARoundTripThatBroughtSomewhatLessSaysNothing) {
  bring(100'000, 2000);
  bring(60'000, 80);
  EXPECT_GT(mbps(), 70);
}

}  // namespace
}  // namespace sluice::parts
