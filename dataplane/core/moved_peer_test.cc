// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/moved_peer.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kThere = 777 * kSecond;  // their clock, when ours is 0

// Of 100 statuses it had heard 90 when it was heard last, 2 s ago; of 50 extents it knew 40.
KnownSender known_sender() {
  return {.send_time_ns = kThere + 8 * kSecond,
          .arrival_ns = 8 * kSecond,
          .statuses_heard = 90,
          .statuses_sent = 100,
          .done_known = 40,
          .done_end = 50};
}
SaidOfSender now_said() {
  return {.send_time_ns = kThere + 10 * kSecond, .statuses_heard = 95, .done_seen = 45};
}
bool sender(const SaidOfSender& said) { return is_same_sender(known_sender(), said, 10 * kSecond); }

TEST(MovedSender, IsKnownByItsClockAndByWhatItHasHeard) {
  EXPECT_TRUE(sender(now_said()));
  SaidOfSender least = now_said();
  least.statuses_heard = 90;
  least.done_seen = 40;
  EXPECT_TRUE(sender(least));
  SaidOfSender most = now_said();
  most.statuses_heard = 100;
  most.done_seen = 50;
  EXPECT_TRUE(sender(most));
}

TEST(MovedSender, IsAnybodyWhileNothingHasCome) {
  EXPECT_TRUE(is_same_sender({}, {.send_time_ns = 1, .statuses_heard = 99, .done_seen = 99}, kSecond));
}

TEST(MovedSender, CopiesAreTooOld) {
  SaidOfSender said = now_said();
  said.send_time_ns = known_sender().send_time_ns;
  EXPECT_FALSE(sender(said)) << "of what came last";
  said.send_time_ns += kMovedSilenceNs - kMovedSlackNs;
  EXPECT_FALSE(sender(said)) << "of what was lost when the silence began";
}

TEST(MovedSender, GuessesAreWrong) {
  for (const int64_t seconds : {-5, -1, 1, 5, 1 << 20}) {
    SaidOfSender said = now_said();
    said.send_time_ns += static_cast<uint64_t>(seconds) * kSecond;
    EXPECT_FALSE(sender(said)) << seconds;
  }
  for (const uint32_t heard : {0U, 89U, 101U, UINT32_MAX}) {
    SaidOfSender said = now_said();
    said.statuses_heard = heard;
    EXPECT_FALSE(sender(said)) << heard;
  }
  for (const uint32_t seen : {0U, 39U, 51U, UINT32_MAX}) {
    SaidOfSender said = now_said();
    said.done_seen = seen;
    EXPECT_FALSE(sender(said)) << seen;
  }
}

TEST(MovedSender, CountsGoOnBeyondThirtyTwoBits) {
  KnownSender known = known_sender();
  known.statuses_heard = UINT32_MAX - 4;
  known.statuses_sent = (uint64_t{1} << 32) + 10;
  known.done_known = (uint64_t{1} << 32) - 5;
  known.done_end = (uint64_t{1} << 32) + 5;
  SaidOfSender said = now_said();
  said.statuses_heard = 10;
  said.done_seen = 5;
  EXPECT_TRUE(is_same_sender(known, said, 10 * kSecond));
  said.statuses_heard = 11;
  EXPECT_FALSE(is_same_sender(known, said, 10 * kSecond));
}

// The newest echo was of what left at 8 s; since then something has left until 9.9 s; 20 ms of round trip.
bool receiver(const SaidOfReceiver& said) {
  return is_same_receiver({.echo_ns = 8 * kSecond, .sent_ns = 10 * kSecond - 1, .rtt_ns = 20'000'000}, said,
                          10 * kSecond);
}

TEST(MovedReceiver, IsKnownByWhatItEchoes) {
  EXPECT_TRUE(receiver({.echo_ns = 8 * kSecond, .hold_ns = 2 * kSecond - 10'000'000}));
  EXPECT_TRUE(receiver({.echo_ns = 8 * kSecond + 5, .hold_ns = 2 * kSecond - 10'000'000}))
      << "more had come before the NAT forgot it";
}

TEST(MovedReceiver, IsAnybodyWhileNothingWasEchoed) {
  EXPECT_TRUE(is_same_receiver({.sent_ns = 5}, {}, kSecond));
}

TEST(MovedReceiver, CopiesAreTooOld) {
  EXPECT_FALSE(receiver({.echo_ns = 8 * kSecond, .hold_ns = kSecond})) << "said a second ago";
  EXPECT_FALSE(receiver({.echo_ns = 8 * kSecond - 1, .hold_ns = 2 * kSecond})) << "of before the newest";
}

TEST(MovedReceiver, GuessesAreWrong) {
  EXPECT_FALSE(receiver({}));
  EXPECT_FALSE(receiver({.echo_ns = 10 * kSecond, .hold_ns = 0})) << "nothing left then";
  EXPECT_FALSE(receiver({.echo_ns = UINT64_MAX, .hold_ns = 0}));
  EXPECT_FALSE(receiver({.echo_ns = 8 * kSecond, .hold_ns = UINT64_MAX}));
}

}  // namespace
}  // namespace sluice
