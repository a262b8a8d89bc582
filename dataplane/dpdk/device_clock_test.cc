// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/device_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace sluice::dpdk {
namespace {

constexpr uint64_t kStart = 77'000'000'000'000;

// A device whose clock counts `ticks_per_ns`, read up to `late_ns` after our time was.
class ClockedDevice {
 public:
  ClockedDevice(double ticks_per_ns, uint64_t late_ns) : ticks_per_ns_(ticks_per_ns), late_(0, late_ns) {}
  uint64_t ticks(uint64_t ns) const {
    return 1'000'000'007 +
           static_cast<uint64_t>(std::llround(ticks_per_ns_ * static_cast<double>(ns - kStart)));
  }
  // Observes until `end_ns`; then the largest error, in nanoseconds, of the last second.
  double run(DeviceClock& clock, uint64_t begin_ns, uint64_t end_ns) {
    double worst = 0;
    for (uint64_t ns = begin_ns; ns < end_ns; ns += 100'000) {
      if (clock.known() && end_ns - ns < 1'000'000'000) worst = std::max(worst, error_ns(clock, ns));
      if (clock.due(ns)) clock.observe(ns, ticks(ns + late_(random_)));
    }
    return worst;
  }
  double error_ns(const DeviceClock& clock, uint64_t ns) const {
    return std::abs(static_cast<double>(static_cast<int64_t>(clock.ticks_at(ns) - ticks(ns)))) /
           ticks_per_ns_;
  }

 private:
  double ticks_per_ns_;
  std::mt19937 random_{1};
  std::uniform_int_distribution<uint64_t> late_;
};

TEST(DeviceClock, IsKnownFromTwoPairs) {
  DeviceClock clock;
  EXPECT_TRUE(clock.due(kStart));
  clock.observe(kStart, 5);
  EXPECT_FALSE(clock.known());
  EXPECT_FALSE(clock.due(kStart + DeviceClock::kObserveNs - 1));
  clock.observe(kStart + DeviceClock::kObserveNs, 5 + DeviceClock::kObserveNs / 4);
  ASSERT_TRUE(clock.known());
  EXPECT_EQ(clock.ticks_at(kStart + 2 * DeviceClock::kObserveNs), 5 + DeviceClock::kObserveNs / 2);
  EXPECT_EQ(clock.ticks_at(kStart + 400), 105U) << "of the past, too";
}

TEST(DeviceClock, FollowsAnyClock) {
  for (const double rate : {1.0, 1.000'05, 0.999'95, 0.078'125, 0.156'25, 3.2}) {
    ClockedDevice device(rate, 0);
    DeviceClock clock;
    EXPECT_LT(device.run(clock, kStart, kStart + 5'000'000'000), 1 + 1 / rate) << rate;
  }
}

TEST(DeviceClock, ReadingsThatComeLateMoveItLittle) {
  ClockedDevice device(1.000'03, 1000);
  DeviceClock clock;
  EXPECT_LT(device.run(clock, kStart, kStart + 5'000'000'000), 800);
}

TEST(DeviceClock, NeighboursKeepTheirDistance) {
  ClockedDevice device(1.000'03, 1000);
  DeviceClock clock;
  device.run(clock, kStart, kStart + 3'000'000'000);
  const uint64_t ns = kStart + 3'000'050'000;
  for (uint64_t i = 0; i < 32; ++i) {  // frames of a burst at 100 Gbit/s
    EXPECT_NEAR(static_cast<double>(clock.ticks_at(ns + 720 * (i + 1)) - clock.ticks_at(ns + 720 * i)), 720,
                1.1);
  }
}

TEST(DeviceClock, BeginsAnewWhenTheDeviceDoes) {
  ClockedDevice device(1, 0);
  DeviceClock clock;
  device.run(clock, kStart, kStart + 2'000'000'000);
  clock.observe(kStart + 2'010'000'000, 17);
  EXPECT_FALSE(clock.known());
  clock.observe(kStart + 2'020'000'000, 17 + 10'000'000);
  ASSERT_TRUE(clock.known());
  EXPECT_EQ(clock.ticks_at(kStart + 2'030'000'000), 17 + 20'000'000U);
}

TEST(DeviceClock, OneThatStandsIsNeverKnown) {
  DeviceClock clock;
  for (uint64_t i = 0; i < 10; ++i) {
    clock.observe(kStart + i * DeviceClock::kObserveNs, 42);
    EXPECT_FALSE(clock.known());
  }
}

}  // namespace
}  // namespace sluice::dpdk
