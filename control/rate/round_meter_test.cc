// Rounds of reports, and when their delays are no queue's.
// SPDX-License-Identifier: Apache-2.0
#include "control/rate/round_meter.h"

#include <gtest/gtest.h>

#include <limits>

#include "dataplane/base/time_for_test.h"

namespace sluice::rate {
namespace {

class RoundMeterTest : public testing::Test {
 protected:
  // A status every millisecond, ten datagrams in each.
  std::optional<Round> status(int64_t delay_min_ns, uint64_t delay_spread_ns) {
    now_ns_ += kMs;
    report_.sent += 10;
    report_.received += 10;
    report_.received_end += 10;
    ++report_.statuses;
    report_.delay_known = true;
    report_.delay_min_ns = delay_min_ns;
    report_.delay_spread_ns = delay_spread_ns;
    return meter_.take(report_, 10 * kMs, now_ns_);
  }
  // The next round, of statuses that the function makes of their number.
  template <typename Delays>
  Round round(Delays delays) {
    for (int i = 0;; ++i) {
      const auto [delay_min_ns, delay_spread_ns] = delays(i);
      if (const auto done = status(delay_min_ns, delay_spread_ns)) return *done;
    }
  }

 private:
  RoundMeter meter_;
  PathReport report_{.datagram_bytes = 1000};
  uint64_t now_ns_ = 1'000 * kMs;
};

using Delays = std::pair<int64_t, uint64_t>;

TEST_F(RoundMeterTest, NamesTheLeastAndTheLongestDelay) {
  status(0, 0);
  const Round seen = round([](int i) { return Delays(i == 4 ? 3000 : 5000, i == 7 ? 9000 : 100); });
  EXPECT_EQ(seen.delay_min_ns, 3000);
  EXPECT_EQ(seen.delay_max_ns, 14'000);
  EXPECT_EQ(seen.statuses, 10U);
  EXPECT_DOUBLE_EQ(seen.delivered_bps, 10 * 8e3 / 1e-3);
}

TEST_F(RoundMeterTest, AQueueThatGrowsAsFastAsItCanIsNoDisorder) {
  status(0, 0);
  EXPECT_FALSE(round([](int i) { return Delays(i * kMs, kMs); }).disordered);
}

TEST_F(RoundMeterTest, DelaysThatDifferWithinAStatusAreDisorder) {
  status(0, 0);
  EXPECT_TRUE(round([](int) { return Delays(0, 100 * kMs); }).disordered);
}

TEST_F(RoundMeterTest, DelaysThatJumpFromStatusToStatusAreDisorder) {
  status(0, 0);
  EXPECT_TRUE(round([](int i) { return Delays(i % 2 * 20 * kMs, 0); }).disordered);
}

TEST_F(RoundMeterTest, BearsAnyNumber) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  status(0, 0);
  const Round seen = round([](int i) { return Delays(i % 2 == 0 ? -kMost : kMost, ~uint64_t{0}); });
  EXPECT_EQ(seen.delay_min_ns, -kMost);
  EXPECT_EQ(seen.delay_max_ns, kMost);
}

}  // namespace
}  // namespace sluice::rate
