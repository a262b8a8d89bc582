// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/pacer.h"

#include <gtest/gtest.h>

#include "dataplane/core/safe_rate.h"

namespace sluice {
namespace {

TEST(Pacer, HoldsTheRateOverASecondAtEveryRate) {
  for (const uint64_t rate_bps : {1'000'000ULL, 1'000'000'000ULL, 9'876'543'210ULL, 100'000'000'000ULL}) {
    Pacer pacer;
    pacer.set_rate(rate_bps);
    constexpr uint32_t kFrame = 8326;
    const uint64_t begin = 1'000'000'000;
    uint64_t now = begin;
    uint64_t bytes = 0;
    while (now < begin + 1'000'000'000) {
      if (pacer.ready(now)) {
        pacer.sent(now, kFrame);
        bytes += kFrame;
      } else {
        now = pacer.next_ns();
      }
    }
    const double achieved = static_cast<double>(bytes) * 8;
    // At most what the allowance after the start (two frames or 10 us) adds.
    EXPECT_LE(achieved, static_cast<double>(rate_bps) * (1 + 1e-5) + 4.0 * 8 * kFrame) << rate_bps;
    EXPECT_GE(achieved, static_cast<double>(rate_bps) * (1 - 1e-5) - 1.0 * 8 * kFrame) << rate_bps;
  }
}

TEST(Pacer, NeverCatchesUpMoreThanTheAllowanceAfterAStall) {
  Pacer pacer;
  pacer.set_rate(10'000'000'000);
  uint64_t now = 1'000'000'000;
  while (pacer.ready(now)) pacer.sent(now, 1250);  // 1 us each
  now += 50'000'000;                               // stalled for 50 ms
  int burst = 0;
  while (pacer.ready(now)) {
    pacer.sent(now, 1250);
    ++burst;
  }
  EXPECT_LE(burst, 12);  // 10 us of frames, and the one that is due
  EXPECT_GE(burst, 10);
}

TEST(Pacer, ZeroStopsAndAChangeTakesEffect) {
  Pacer pacer;
  EXPECT_FALSE(pacer.ready(UINT64_MAX));
  pacer.set_rate(8'000'000'000);  // 1 ns a byte
  pacer.sent(1'000'000, 1000);
  const uint64_t next = pacer.next_ns();
  pacer.set_rate(0);
  EXPECT_FALSE(pacer.ready(next + 1'000'000));
  pacer.set_rate(4'000'000'000);
  EXPECT_TRUE(pacer.ready(next));
  pacer.sent(next, 1000);
  EXPECT_EQ(pacer.next_ns(), next + 2000);
}

TEST(Pacer, ACrawlOfSecondsAFrameDoesNotWrapAround) {
  Pacer pacer;
  pacer.set_rate(1'000);
  pacer.sent(0, 8'322);
  EXPECT_EQ(pacer.next_ns(), 66'576'000'000U);
}

TEST(Pacer, ARiseShortensWhatACrawlOwes) {
  Pacer pacer;
  pacer.set_rate(1'000);
  pacer.sent(1'000'000, 8'322);
  pacer.set_rate(10'000'000);
  EXPECT_EQ(pacer.next_ns(), 1'000'000U + 6'657'600U);
  pacer.set_rate(1'000);  // a fall lengthens nothing: it was sent at the higher rate
  EXPECT_EQ(pacer.next_ns(), 1'000'000U + 6'657'600U);
}

TEST(SafeRate, OnlyEverLowers) {
  constexpr uint64_t kRate = 10'000'000'000;
  EXPECT_EQ(safe_rate_bps(kRate, 0, 0, 1000), kRate);
  EXPECT_EQ(safe_rate_bps(kRate, 199'000'000, 0, 1000), kRate);
  EXPECT_EQ(safe_rate_bps(kRate, 201'000'000, 0, 1000), kRate / 100);
  EXPECT_EQ(safe_rate_bps(kRate, 201'000'000, 0, 100'000'000), kRate);  // 4 RTT
  EXPECT_EQ(safe_rate_bps(kRate, 10'000'000'001, 0, 1000), 0U);
  EXPECT_EQ(safe_rate_bps(kRate, 0, 10'000'000'001, 1000), kRate / 100);
}

}  // namespace
}  // namespace sluice
