// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/tick_clock.h"

#include <gtest/gtest.h>

#include <vector>

#include "dataplane/base/time_for_test.h"

namespace sluice {
namespace {

constexpr uint64_t kUsNs = 1'000;

// A machine whose two clocks the test sets: time passes with each reading of the system's clock, by what that
// takes, and when the test says so.
class Machine {
 public:
  // Time passes; the counter runs, unless it stands.
  void pass(uint64_t ns) {
    ns_ += ns;
    ticks_ += static_cast<double>(ns) * ghz;
  }
  uint64_t read_ns() {
    pass(20 + late_ns_);
    late_ns_ = 0;
    return ns_;
  }
  uint64_t ticks() const { return static_cast<uint64_t>(ticks_); }
  // As lane::Clock.
  uint64_t now_ns() {
    if (const auto ns = clock.at(ticks())) return check(*ns);
    ++asked;
    return check(
        clock.learn(closest_pair([this] { return read_ns(); }, [this] { return ticks(); }, &least_gap_ns_)));
  }
  // The next reading of the system's clock ends so late.
  void disturb(uint64_t ns) { late_ns_ = ns; }
  // A loop whose turns take a microsecond. Returns the largest error.
  uint64_t run(uint64_t for_ns, uint64_t turn_ns = kUsNs) {
    uint64_t most_ns = 0;
    for (const uint64_t end_ns = ns_ + for_ns; ns_ < end_ns; pass(turn_ns)) {
      const uint64_t now = now_ns();
      most_ns = std::max(most_ns, now > ns_ ? now - ns_ : ns_ - now);
    }
    return most_ns;
  }
  uint64_t ns() const { return ns_; }
  void jump(int64_t ticks) { ticks_ += static_cast<double>(ticks); }

  TickClock clock;
  double ghz = 2.5;
  uint64_t asked = 0;

 private:
  uint64_t check(uint64_t now) {
    EXPECT_GE(now, last_ns_) << "time runs backwards";
    last_ns_ = now;
    return now;
  }

  uint64_t ns_ = 7 * kSecond;
  double ticks_ = 1e12;
  uint64_t late_ns_ = 0;
  uint64_t least_gap_ns_ = UINT64_MAX / 4;
  uint64_t last_ns_ = 0;
};

TEST(TickClock, CountsOnceTwoEstimatesAgreeAndIsRarelyCompared) {
  Machine machine;
  EXPECT_LT(machine.run(100 * kMs), kUsNs);
  ASSERT_TRUE(machine.clock.counts());
  machine.asked = 0;
  EXPECT_LT(machine.run(kSecond), kUsNs);
  EXPECT_LE(machine.asked, 1100U);
  EXPECT_EQ(machine.clock.partings(), 0U);
}

// The fault that was: 6 ms at the end of the only window, and each time was told 30 % too fast for ever.
TEST(TickClock, IsNotMisledByAStartThatIsDisturbed) {
  for (uint64_t after_ns = 0; after_ns < 60 * kMs; after_ns += kMs / 2) {
    Machine machine;
    machine.run(after_ns);
    machine.disturb(6 * kMs);
    machine.run(100 * kMs);
    EXPECT_TRUE(machine.clock.counts()) << after_ns;
    EXPECT_LT(machine.run(kSecond), 2 * kUsNs) << after_ns;
    EXPECT_EQ(machine.clock.partings(), 0U);
  }
}

TEST(TickClock, EveryReadingOfTheSystemsClockMayBeDisturbed) {
  Machine machine;
  for (int i = 0; i < 2000; ++i) {
    machine.disturb(300 * kUsNs);
    machine.run(kMs / 2);
  }
  EXPECT_TRUE(machine.clock.counts());
  EXPECT_LT(machine.run(kSecond), 2 * kUsNs);
  EXPECT_EQ(machine.clock.partings(), 0U);
}

TEST(TickClock, FollowsASystemClockThatIsBeingSet) {
  Machine machine;
  machine.run(100 * kMs);
  machine.ghz = 2.5 * 1.0005;  // as by adjtime: 500 ppm, the most
  EXPECT_LT(machine.run(3 * kSecond), 10 * kUsNs);
  EXPECT_LT(machine.run(kSecond), kUsNs);
  machine.ghz = 2.5 * 0.9995;
  EXPECT_LT(machine.run(3 * kSecond), 10 * kUsNs);
  EXPECT_LT(machine.run(kSecond), kUsNs);
  EXPECT_EQ(machine.clock.partings(), 0U);
}

TEST(TickClock, SleepsAndPausesAreNoPartings) {
  Machine machine;
  machine.run(100 * kMs);
  for (const uint64_t pause_ns : {10 * kMs, 500 * kMs, 60 * kSecond}) {
    machine.pass(pause_ns);
    EXPECT_LT(machine.run(100 * kMs), 100 * kUsNs) << pause_ns;
  }
  EXPECT_EQ(machine.clock.partings(), 0U);
}

// A guest that goes on at another host: another rate, another count.
TEST(TickClock, NoTimeIsToldFromACounterThatJumps) {
  for (const int64_t ticks : {-900'000'000'000L, -3'000'000L, 3'000'000L, 900'000'000'000L}) {
    Machine machine;
    machine.run(100 * kMs);
    machine.jump(ticks);
    EXPECT_LE(machine.run(100 * kMs), 1300 * kUsNs) << ticks;
    EXPECT_EQ(machine.clock.partings(), 1U) << ticks;
    EXPECT_FALSE(machine.clock.counts()) << "it follows the system's clock";
    EXPECT_LT(machine.run(100 * kMs), kUsNs) << ticks;
  }
}

TEST(TickClock, ACounterOfAnotherRateIsNoticedAndLearnedAnew) {
  for (const double ghz : {0.1, 1.2, 5.0, 100.0}) {
    Machine machine;
    machine.run(100 * kMs);
    machine.ghz = ghz;
    EXPECT_LE(machine.run(100 * kMs), 2 * kMs) << ghz;
    EXPECT_EQ(machine.clock.partings(), 1U) << ghz;
    machine.run(2 * kSecond);
    EXPECT_TRUE(machine.clock.counts()) << "they agree again";
    EXPECT_LT(machine.run(kSecond), kUsNs);
  }
}

TEST(TickClock, ACounterThatStandsIsNoticed) {
  Machine machine;
  machine.run(100 * kMs);
  machine.ghz = 0;
  EXPECT_LE(machine.run(100 * kMs), 2 * kMs);
  EXPECT_EQ(machine.clock.partings(), 1U);
  machine.run(5 * kSecond);
  EXPECT_FALSE(machine.clock.counts());
}

TEST(TickClock, EachPartingIsDoubtedTwiceAsLong) {
  Machine machine;
  machine.run(100 * kMs);
  std::vector<uint64_t> doubted_ms;
  for (int i = 0; i < 4; ++i) {
    machine.jump(1'000'000'000);
    machine.run(2 * kMs);
    EXPECT_FALSE(machine.clock.counts());
    const uint64_t began_ns = machine.ns();
    while (!machine.clock.counts()) machine.run(kMs);
    doubted_ms.push_back((machine.ns() - began_ns) / kMs);
  }
  for (size_t i = 1; i < doubted_ms.size(); ++i) EXPECT_GT(doubted_ms[i], doubted_ms[i - 1] * 19 / 10);
}

TEST(TickClock, WithoutAGoodReadingItNeverCounts) {
  TickClock clock;
  for (uint64_t ns = kSecond; ns < 2 * kSecond; ns += kMs)
    EXPECT_EQ(clock.learn({.ns = ns, .ticks = 3 * ns, .gap_ns = 50 * kUsNs}), ns);
  EXPECT_FALSE(clock.counts());
}

TEST(ClosestPair, IsTheReadingThatWasLeastDisturbed) {
  const std::vector<uint64_t> times{1000, 901'000, 902'000, 902'500, 903'000, 903'040, 904'000, 905'000};
  size_t next = 0;
  uint64_t least_gap_ns = 1;
  const auto pair = closest_pair([&] { return times[next++]; }, [&] { return next; }, &least_gap_ns);
  EXPECT_EQ(pair.gap_ns, 40U);
  EXPECT_EQ(pair.ns, 903'020U);
  EXPECT_EQ(pair.ticks, 5U);
}

}  // namespace
}  // namespace sluice
