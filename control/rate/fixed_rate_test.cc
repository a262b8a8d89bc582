// SPDX-License-Identifier: Apache-2.0
#include "control/rate/fixed_rate.h"

#include <gtest/gtest.h>

#include "control/rate/round_meter.h"
#include "dataplane/base/time_for_test.h"

namespace sluice::rate {
namespace {

constexpr uint64_t kLimit = 10'000'000'000;
constexpr uint64_t kStart = 1'000 * kMs;

// Steps once a millisecond; the peer is heard always, `loss` of what is sent is lost.
struct SteadyPath {
  FixedRate control{kLimit, 0, kStart};
  PathReport report;
  uint64_t now_ns = kStart;
  double owed = 0;

  void run(uint64_t ms, double loss, bool heard = true) {
    for (uint64_t i = 0; i < ms; ++i) {
      now_ns += kMs;
      const uint64_t sent = control.rate_bps() / 8 / 8192 / 1000;
      report.sent += sent;
      owed += static_cast<double>(sent) * loss;
      report.lost += static_cast<uint64_t>(owed);
      owed -= static_cast<double>(static_cast<uint64_t>(owed));
      if (heard) report.last_peer_ns = now_ns;
      control.step(report, now_ns);
    }
  }
};

TEST(FixedRate, RampsFromTenPerCentInTenStepsOfTwoMilliseconds) {
  SteadyPath path;
  EXPECT_EQ(path.control.rate_bps(), kLimit / 10);
  uint64_t previous = 0;
  for (int i = 0; i < 20; ++i) {
    path.run(1, 0);
    EXPECT_GE(path.control.rate_bps(), previous);
    EXPECT_LE(path.control.rate_bps(), previous + kLimit / 5);
    previous = path.control.rate_bps();
  }
  EXPECT_EQ(path.control.rate_bps(), kLimit);
  EXPECT_EQ(path.control.condition(), Condition::kRunning);
}

TEST(FixedRate, HoldsTheLimitUnderLossBelowTwoPerCent) {
  SteadyPath path;
  path.run(10'000, 0.015);
  EXPECT_EQ(path.control.rate_bps(), kLimit);
  EXPECT_EQ(path.control.cuts(), 0U);
}

// Flows that were adopted have counted long before.
TEST(FixedRate, WhatWasLostBeforeItBeganIsNotHeldAgainstThePath) {
  SteadyPath path;
  path.report = {.sent = 1'000'000, .lost = 500'000};
  path.run(30, 0);
  EXPECT_EQ(path.control.rate_bps(), kLimit);
}

TEST(FixedRate, AShortBurstOfLossDoesNotBreakTheCircuit) {
  SteadyPath path;
  path.run(100, 0);
  path.run(700, 0.10);
  path.run(100, 0);
  EXPECT_EQ(path.control.cuts(), 0U);
  EXPECT_EQ(path.control.rate_bps(), kLimit);
}

TEST(FixedRate, LastingLossLowersTheRateByAFifthEachSecondAndItRecoversSlowly) {
  SteadyPath path;
  path.run(200, 0);
  path.run(1'250, 0.10);
  EXPECT_EQ(path.control.cuts(), 1U);
  EXPECT_NEAR(static_cast<double>(path.control.rate_bps()), 0.8 * kLimit, 0.01 * kLimit);
  path.run(1'100, 0.10);
  EXPECT_EQ(path.control.cuts(), 2U);
  EXPECT_NEAR(static_cast<double>(path.control.rate_bps()), 0.64 * kLimit, 0.01 * kLimit);
  EXPECT_EQ(path.control.condition(), Condition::kYielding);
  path.run(1'000, 0);
  EXPECT_NEAR(static_cast<double>(path.control.rate_bps()), 0.69 * kLimit, 0.02 * kLimit);
  path.run(8'000, 0);
  EXPECT_EQ(path.control.rate_bps(), kLimit);
}

TEST(FixedRate, StopsTheRampWhereThePathOverflows) {
  SteadyPath path;
  path.run(4, 0);
  const uint64_t reached = path.control.rate_bps();
  path.run(20, 0.3);
  EXPECT_LT(path.control.rate_bps(), kLimit / 2 + reached);
  EXPECT_NE(path.control.condition(), Condition::kRamping);
}

TEST(FixedRate, CrawlsWhileThePeerIsSilentAndStopsAfterTenSeconds) {
  SteadyPath path;
  path.run(100, 0);
  path.run(199, 0, false);
  EXPECT_EQ(path.control.rate_bps(), kLimit);
  path.run(5, 0, false);
  EXPECT_EQ(path.control.condition(), Condition::kCrawling);
  EXPECT_EQ(path.control.rate_bps(), kLimit / 100);
  path.run(10'000, 0, false);
  EXPECT_EQ(path.control.condition(), Condition::kStopped);
  EXPECT_EQ(path.control.rate_bps(), 0U);
  path.run(2, 0);
  EXPECT_EQ(path.control.rate_bps(), kLimit) << "heard again";
}

TEST(FixedRate, LongRoundTripsLengthenTheSilenceThatIsTolerated) {
  SteadyPath path;
  path.report.rtt_ns = 200 * kMs;
  path.run(100, 0);
  path.run(790, 0, false);
  EXPECT_EQ(path.control.condition(), Condition::kRunning);
  path.run(20, 0, false);
  EXPECT_EQ(path.control.condition(), Condition::kCrawling);
}

TEST(FixedRate, FewSamplesGiveNoEvidenceOfLoss) {
  EXPECT_LT(loss_lower_bound(0.1, 10), FixedRate::kLossMax);
  EXPECT_GT(loss_lower_bound(0.1, 1000), FixedRate::kLossMax);
  EXPECT_EQ(loss_lower_bound(0, 0), 0);
}

}  // namespace
}  // namespace sluice::rate
