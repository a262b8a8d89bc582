// Whole transfers in virtual time: a queue that holds everything loses nothing, one that does not has it sent
// again.
// SPDX-License-Identifier: Apache-2.0
#include "perf/probe/whole.h"

#include <gtest/gtest.h>

namespace sluice::probe {
namespace {

// 1 Gbit/s of 1250 bytes on the wire: a frame in 10 us. The sender could send one in 5 us.
WholeOptions options_of(uint32_t queue_frames) {
  return {.pace = {.rate_bps = 1'000'000'000, .wire_bytes = 1250, .start_ns = 1},
          .link_bps = 1'000'000'000,
          .queue_frames = queue_frames,
          .rtt_ns = 1'000'000,
          .frame_cpu_ns = 5'000,
          .frames = 20'000};
}

TEST(Whole, AnUnpacedSenderLosesWhatTheQueueDoesNotHoldAndSendsItAgain) {
  const Whole whole = transfer_whole<Unpaced>(options_of(100));
  // Twice as fast as the link: half of what follows once the queue is full.
  EXPECT_NEAR(static_cast<double>(whole.first_pass), 10'000, 400);
  EXPECT_GT(whole.sent, 20'000 + (20'000 - whole.first_pass) / 2);
  EXPECT_GE(whole.duration_ns, 20'000ULL * 10'000 - 100 * 10'000);
}

TEST(Whole, AQueueThatHoldsAllLosesNothing) {
  const Whole whole = transfer_whole<Unpaced>(options_of(20'000));
  EXPECT_EQ(whole.first_pass, 20'000U);
  EXPECT_EQ(whole.sent, 20'000U);
}

TEST(Whole, TheProductsPacerFitsAShortQueue) {
  const Whole whole = transfer_whole<Bucket>(options_of(256));
  EXPECT_EQ(whole.first_pass, 20'000U);
  EXPECT_EQ(whole.sent, 20'000U);
  EXPECT_NEAR(static_cast<double>(whole.duration_ns), 20'000.0 * 10'000, 2e6);
}

TEST(Whole, ASlotOfASecondIsABurst) {
  const Whole second = transfer_whole<SlotSecond>(options_of(256));
  const Whole millisecond = transfer_whole<SlotMillisecond>(options_of(256));
  EXPECT_LT(second.first_pass, 11'000U);
  EXPECT_EQ(millisecond.first_pass, 20'000U);
}

}  // namespace
}  // namespace sluice::probe
