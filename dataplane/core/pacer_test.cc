// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/pacer.h"

#include <gtest/gtest.h>

#include <algorithm>

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
    // At most what is remembered from before the start adds.
    const double remembered = std::min(static_cast<double>(rate_bps) / 1000, 128.0 * 8 * kFrame);
    EXPECT_LE(achieved, static_cast<double>(rate_bps) * (1 + 1e-5) + remembered + 2.0 * 8 * kFrame)
        << rate_bps;
    EXPECT_GE(achieved, static_cast<double>(rate_bps) * (1 - 1e-5) - 1.0 * 8 * kFrame) << rate_bps;
  }
}

// After a stall: frames that leave before the rate allows them, at most `most` at any moment, and how long
// until all that is remembered has been made up for.
struct CatchUp {
  uint64_t at_once = 0;
  uint64_t caught_up_bytes = 0;
};
CatchUp after_stall(uint64_t rate_bps, uint32_t frame_bytes, uint64_t stall_ns, uint64_t queue = 0) {
  Pacer pacer;
  pacer.set_queue(queue);
  pacer.set_rate(rate_bps);
  uint64_t now = 1'000'000'000;
  pacer.sent(now, frame_bytes);
  now += stall_ns;
  const uint64_t begin = now;
  CatchUp result;
  uint64_t bytes = 0;
  while (now < begin + 100'000'000) {
    uint64_t at_once = 0;
    for (; pacer.ready(now); ++at_once) {
      pacer.sent(now, frame_bytes);
      bytes += frame_bytes;
    }
    result.at_once = std::max(result.at_once, at_once);
    now = pacer.next_ns();
  }
  result.caught_up_bytes = bytes - (now - begin) / 1000 * (rate_bps / 8000) / 1000;
  return result;
}

TEST(Pacer, AStallIsMadeUpForByAndByNotInABurst) {
  for (const uint64_t rate_bps : {1'000'000'000ULL, 10'000'000'000ULL, 25'000'000'000ULL}) {
    const CatchUp c = after_stall(rate_bps, 8326, 50'000'000);
    EXPECT_EQ(c.at_once, 1U) << rate_bps;
    const uint64_t remembered = std::min<uint64_t>(rate_bps / 8000, Pacer::kDebtFrames * 8326);
    EXPECT_GE(c.caught_up_bytes, remembered - 2 * 8326) << rate_bps;
    EXPECT_LE(c.caught_up_bytes, remembered + 2 * 8326) << rate_bps;
  }
}

TEST(Pacer, OfAStallIsMadeUpForWhatThePeersQueueTakes) {
  constexpr uint64_t kRate = 40'000'000'000;
  for (const uint64_t queue : {8U, 64U, 256U, 512U}) {
    const CatchUp c = after_stall(kRate, 8326, 50'000'000, queue);
    const uint64_t frames = queue == 8 ? Pacer::kDebtFramesMin : queue * 7 / 8;
    EXPECT_NEAR(static_cast<double>(c.caught_up_bytes), static_cast<double>(frames * 8326), 8 * 8326)
        << queue;
  }
  const CatchUp long_queue = after_stall(kRate, 8326, 50'000'000, 60'000);
  EXPECT_NEAR(static_cast<double>(long_queue.caught_up_bytes), kRate / 8000, 8 * 8326) << "1 ms at the most";
}

TEST(Pacer, FramesThatTakeLessThanTwoMicrosecondsMayLeaveTogether) {
  EXPECT_NEAR(static_cast<double>(after_stall(100'000'000'000, 8326, 50'000'000).at_once), 16.5,
              2);  // 10 us of them
  EXPECT_NEAR(static_cast<double>(after_stall(25'000'000'000, 2526, 50'000'000).at_once), 13.5, 2);
  EXPECT_EQ(after_stall(25'000'000'000, 8326, 50'000'000).at_once, 1U);
}

TEST(Pacer, PeakIsAnEighthAboveTheRate) {
  Pacer pacer;
  pacer.set_rate(10'000'000'000);
  pacer.sent(1'000'000'000, 5000);  // 4 us each
  uint64_t now = 1'050'000'000;
  uint64_t frames = 0;
  for (const uint64_t end = now + 120'000; now < end; now = pacer.next_ns(), ++frames) pacer.sent(now, 5000);
  EXPECT_NEAR(static_cast<double>(frames), 34.3, 1);
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
