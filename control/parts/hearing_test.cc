// SPDX-License-Identifier: Apache-2.0
#include "control/parts/hearing.h"

#include <gtest/gtest.h>

namespace sluice::parts {
namespace {

constexpr uint64_t kMillisecondNs = 1'000'000;
constexpr uint64_t kRttNs = 80 * kMillisecondNs;

class HearingTest : public testing::Test {
 protected:
  // Looks each 10 ms for so long.
  void pass(uint64_t ns, bool up = true) {
    for (const uint64_t until_ns = now_ns_ + ns; now_ns_ < until_ns;) {
      now_ns_ += 10 * kMillisecondNs;
      hearing_.look(mark_, up, now_ns_);
    }
  }

  Hearing hearing_;
  uint64_t mark_ = 1;
  uint64_t now_ns_ = 1'000'000 * kMillisecondNs;
};

TEST_F(HearingTest, WhoSaysAHeartbeatEachSecondIsThere) {
  for (int second = 0; second < 20; ++second) {
    ++mark_;
    pass(1000 * kMillisecondNs);
    EXPECT_FALSE(hearing_.lost(kRttNs, false));
  }
}

TEST_F(HearingTest, WhoIsSilentForTwoHeartbeatsAndThreeRoundTripsIsNot) {
  pass(10 * kMillisecondNs);
  pass(Hearing::kQuietNs + 3 * kRttNs - 10 * kMillisecondNs);
  EXPECT_FALSE(hearing_.lost(kRttNs, false));
  pass(10 * kMillisecondNs);
  EXPECT_TRUE(hearing_.lost(kRttNs, false));
  ++mark_;
  pass(10 * kMillisecondNs);
  EXPECT_FALSE(hearing_.lost(kRttNs, false)) << "it speaks again";
}

TEST_F(HearingTest, WhoBringsNothingOfWhatItWasAskedForMayMissOneHeartbeatOnly) {
  pass(10 * kMillisecondNs);
  pass(Hearing::kQuietNs / 2 + 3 * kRttNs - 10 * kMillisecondNs);
  EXPECT_FALSE(hearing_.lost(kRttNs, true));
  pass(10 * kMillisecondNs);
  EXPECT_TRUE(hearing_.lost(kRttNs, true));
  EXPECT_FALSE(hearing_.lost(kRttNs, false));
}

TEST_F(HearingTest, AStreamThatIsDownIsWaitedForASecond) {
  pass(10 * kMillisecondNs);
  for (int look = 0; look < 99; ++look) {
    ++mark_;  // bytes still come
    pass(10 * kMillisecondNs, false);
  }
  EXPECT_FALSE(hearing_.lost(kRttNs, false));
  pass(10 * kMillisecondNs, false);
  EXPECT_TRUE(hearing_.lost(kRttNs, false));
  pass(10 * kMillisecondNs);
  EXPECT_FALSE(hearing_.lost(kRttNs, false));
}

// A process that stood still for a minute heard nothing because it did not look.
TEST_F(HearingTest, TimeInWhichNobodyLookedDoesNotCount) {
  pass(10 * kMillisecondNs);
  now_ns_ += 60'000 * kMillisecondNs;
  pass(10 * kMillisecondNs);
  EXPECT_FALSE(hearing_.lost(kRttNs, false));
  pass(10 * kMillisecondNs, false);
  now_ns_ += 60'000 * kMillisecondNs;
  pass(10 * kMillisecondNs, false);
  EXPECT_FALSE(hearing_.lost(kRttNs, false));
}

}  // namespace
}  // namespace sluice::parts
