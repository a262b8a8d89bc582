// SPDX-License-Identifier: Apache-2.0
#include "control/rate/start_pulse.h"

#include <gtest/gtest.h>

namespace sluice::rate {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr double kRateBps = 800e6;  // 100 datagrams of 1000 bytes a millisecond

class StartPulseTest : public testing::Test {
 protected:
  StartPulseTest() {
    report.datagram_bytes = 1000;
    report.delay_known = true;
    report.delay_min_ns = -7 * static_cast<int64_t>(kMs);  // clocks differ
    pulse.begin(kRateBps, 0);
  }
  // A millisecond later, and so many more were sent.
  void send(uint64_t datagrams) {
    report.sent += datagrams;
    now_ns += kMs;
    pulse.take(report, false, now_ns);
  }
  // A status: so many came, and so many more were lost.
  void arrive(uint64_t datagrams, uint64_t lost = 0, int64_t delay_change_ns = 0) {
    report.received += datagrams;
    report.received_end += datagrams + lost;
    report.delay_min_ns += delay_change_ns;
    now_ns += kMs;
    pulse.take(report, true, now_ns);
  }
  void send_all() {
    send(0);
    for (int ms = 0; ms < 5; ++ms) send(100);
  }

  PathReport report;
  StartPulse pulse;
  uint64_t now_ns = kMs;
};

TEST_F(StartPulseTest, LastsForAFewMilliseconds) {
  send(0);
  for (int ms = 0; ms < 4; ++ms) send(100);
  EXPECT_TRUE(pulse.sending());
  send(100);
  EXPECT_FALSE(pulse.sending());
  EXPECT_TRUE(pulse.running());
}

TEST_F(StartPulseTest, ComesThroughAPathThatCarriesIt) {
  send_all();
  for (int ms = 0; ms < 4; ++ms) arrive(100);
  EXPECT_FALSE(pulse.outcome());
  arrive(100);
  const auto outcome = pulse.outcome();
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->whole);
  EXPECT_NEAR(outcome->carried_bps, kRateBps, 1);
  EXPECT_FALSE(pulse.running());
}

TEST_F(StartPulseTest, AQueueThatGrewTellsWhatThePathCarries) {
  send_all();
  for (int ms = 0; ms < 10; ++ms) arrive(50, 0, ms == 0 ? 0 : kMs / 2 + kMs / 18);
  const auto outcome = pulse.outcome();
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->whole);
  EXPECT_NEAR(outcome->carried_bps, kRateBps / 2, kRateBps / 20);
}

TEST_F(StartPulseTest, SoDoesWhatAShortQueueDropped) {
  send_all();
  for (int ms = 0; ms < 5; ++ms) arrive(25, 75);
  const auto outcome = pulse.outcome();
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->whole);
  EXPECT_NEAR(outcome->carried_bps, kRateBps / 4, 1);
}

// A path that carries far less says so long before all of the pulse has come.
TEST_F(StartPulseTest, ALongQueueTellsAtOnce) {
  send_all();
  arrive(10);
  arrive(10, 0, 10 * kMs - kMs / 10);  // they left in a tenth of a millisecond
  arrive(10, 0, 10 * kMs - kMs / 10);
  EXPECT_FALSE(pulse.outcome());
  arrive(10, 0, 10 * kMs - kMs / 10);
  const auto outcome = pulse.outcome();
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->whole);
  EXPECT_NEAR(outcome->carried_bps, 8e6, 8e4);
  EXPECT_FALSE(pulse.running());
}

TEST_F(StartPulseTest, ALittleLossByChanceIsNoLimit) {
  send_all();
  for (int ms = 0; ms < 5; ++ms) arrive(90, 10);
  EXPECT_TRUE(pulse.outcome()->whole);
}

// One datagram that is late says nothing: the least delay of its status does.
TEST_F(StartPulseTest, ALateDatagramIsNoQueue) {
  send_all();
  report.delay_spread_ns = 20 * kMs;
  for (int ms = 0; ms < 5; ++ms) arrive(100);
  EXPECT_TRUE(pulse.outcome()->whole);
}

// Then no more is known to be carried than was sent.
TEST_F(StartPulseTest, OfASourceThatHasLessToSend) {
  send(0);
  for (int ms = 0; ms < 20; ++ms) send(20);
  ASSERT_FALSE(pulse.sending());
  for (int ms = 0; ms < 4; ++ms) arrive(100);
  const auto outcome = pulse.outcome();
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->whole);
  EXPECT_LT(outcome->carried_bps, 0.25 * kRateBps);
}

TEST_F(StartPulseTest, WaitsForItsFirstDatagram) {
  for (int ms = 0; ms < 100; ++ms) send(0);
  EXPECT_TRUE(pulse.sending());
  for (int ms = 0; ms < 5; ++ms) send(100);
  for (int ms = 0; ms < 5; ++ms) arrive(100);
  EXPECT_NEAR(pulse.outcome()->carried_bps, kRateBps, 1);
}

// Whatever a stranger says, or statuses that are lost.
TEST_F(StartPulseTest, TakesAnyReport) {
  send_all();
  report.delay_min_ns = INT64_MIN;
  arrive(1, 498);
  report.delay_min_ns = INT64_MAX;
  report.received = 0;
  arrive(0, 1000);
  const auto outcome = pulse.outcome();
  ASSERT_TRUE(outcome);
  EXPECT_FALSE(outcome->whole);
  EXPECT_GE(outcome->carried_bps, 0);
}

}  // namespace
}  // namespace sluice::rate
