// SPDX-License-Identifier: Apache-2.0
#include "dataplane/core/idle_sleep.h"

#include <gtest/gtest.h>

#include "dataplane/base/time_for_test.h"

namespace sluice {
namespace {

using For = IdleSleep::For;

constexpr uint32_t kQueue = 256;
constexpr uint64_t kDatagramNs = 720;  // of 9000 bytes, at 100 Gbit/s

// A worker that at each waking finds what has come at this pace, and sleeps again.
class Sleeper {
 public:
  explicit Sleeper(IdleSleep sleep, For what = For::kDisk) : sleep_(sleep), for_(what) {}
  uint64_t after(uint64_t datagrams_per_s, int times) {
    uint64_t first_ns = 0;
    for (int i = 0; i < times; ++i) {
      sleep_.worked();
      first_ns = sleep_.next_ns(now_ns_, moved_, for_);
      sleep_.slept();
      moved_ += datagrams_per_s * first_ns / kSecond;
      now_ns_ += first_ns;
    }
    return first_ns;
  }
  IdleSleep& sleep() { return sleep_; }

 private:
  IdleSleep sleep_;
  For for_;
  uint64_t now_ns_ = 5 * kSecond;
  uint64_t moved_ = 0;
};

TEST(IdleSleep, GrowsUntilHalfOfTheQueueIsFull) {
  Sleeper sleeper(IdleSleep(kQueue, false, kDatagramNs));
  EXPECT_LE(sleeper.after(200'000, 1), 25'000U);
  EXPECT_NEAR(static_cast<double>(sleeper.after(200'000, 50)), 640'000, 32'000);  // 128 datagrams
  EXPECT_EQ(sleeper.after(100'000, 50), IdleSleep::kNsMaxOfDisk);
}

TEST(IdleSleep, FollowsAPaceThatRisesWithTheNextSleep) {
  Sleeper sleeper(IdleSleep(kQueue, false, kDatagramNs));
  sleeper.after(100'000, 50);
  sleeper.after(2'000'000, 1);  // what came during a long sleep is seen at its end
  EXPECT_NEAR(static_cast<double>(sleeper.after(2'000'000, 1)), 64'000, 4'000);
}

TEST(IdleSleep, IsShortWhereAQueueLosesWhatItHasNoRoomFor) {
  Sleeper sleeper(IdleSleep(kQueue, true, kDatagramNs));
  EXPECT_EQ(sleeper.after(10'000, 100), IdleSleep::kNsMax);
}

TEST(IdleSleep, IsLongerWhereTheQueueThatLosesIsLong) {
  EXPECT_EQ(Sleeper(IdleSleep(1024, true, kDatagramNs)).after(10'000, 100), 512 * kDatagramNs);
  EXPECT_EQ(Sleeper(IdleSleep(1U << 16, true, kDatagramNs)).after(10'000, 200), IdleSleep::kNsMaxOfDisk);
  // On a wire of 10 Gbit/s, or of short datagrams, as many take another time.
  EXPECT_EQ(Sleeper(IdleSleep(kQueue, true, 3000)).after(10'000, 200), kQueue / 2 * 3000);
  EXPECT_EQ(Sleeper(IdleSleep(kQueue, true, 120)).after(10'000, 200), IdleSleep::kNsMax);
  IdleSleep woken(0, true, kDatagramNs);  // an arrival ends a sleep
  woken.worked();
  uint64_t now_ns = kSecond;
  while (now_ns < kSecond + 2 * IdleSleep::kNsPatience) {
    now_ns += woken.next_ns(now_ns, 1, For::kPeer);
    woken.slept();
  }
  EXPECT_EQ(woken.next_ns(now_ns, 1, For::kPeer), IdleSleep::kNsMaxOfDisk);
}

TEST(IdleSleep, WhoWaitsForNoDiskSleepsShortly) {
  Sleeper sleeper(IdleSleep(kQueue, false, kDatagramNs), For::kPeer);
  EXPECT_EQ(sleeper.after(1'000'000, 50), IdleSleep::kNsFirst);
}

TEST(IdleSleep, BeginsAtOnceWhereNothingComesSoon) {
  Sleeper sleeper(IdleSleep(kQueue, false, kDatagramNs));
  EXPECT_EQ(sleeper.sleep().turns_before(), IdleSleep::kTurnsBefore);
  sleeper.after(100'000, 50);
  EXPECT_EQ(sleeper.sleep().turns_before(), IdleSleep::kTurnsBeforeLong);
}

TEST(IdleSleep, IsNeverShorterThanABurstTakesToGather) {
  Sleeper sleeper(IdleSleep(kQueue, false, kDatagramNs));
  EXPECT_EQ(sleeper.after(50'000'000, 50), IdleSleep::kNsFirst);
}

TEST(IdleSleep, DoublesWhileNothingIsDone) {
  IdleSleep sleep(kQueue, true, kDatagramNs);
  uint64_t longest_ns = 0;
  for (uint64_t expected_ns : {20'000, 40'000, 80'000, 100'000, 100'000}) {
    EXPECT_EQ(longest_ns = sleep.next_ns(0, 0, For::kPeer), expected_ns);
    sleep.slept();
  }
  EXPECT_GT(sleep.next_ns(0, 0, For::kWork), longest_ns);
  for (int i = 0; i < 10; ++i) sleep.slept();
  EXPECT_EQ(sleep.next_ns(0, 0, For::kWork), IdleSleep::kNsMaxWithoutFlows);
  IdleSleep of_several(kQueue, true, kDatagramNs, false);
  for (int i = 0; i < 10; ++i) of_several.slept();
  EXPECT_EQ(of_several.next_ns(0, 0, For::kWork), IdleSleep::kNsMaxWithoutFlowsOfSeveral);
}

TEST(IdleSleep, IsLongOnceAPeerIsQuietAndShortAgainWithItsNextDatagram) {
  for (const bool loses : {false, true}) {
    IdleSleep sleep(kQueue, loses, kDatagramNs);
    sleep.worked();
    uint64_t now_ns = kSecond;
    const auto sleeps_ns = [&] {
      const uint64_t slept_ns = sleep.next_ns(now_ns, 1, For::kPeer);
      sleep.slept();
      now_ns += slept_ns;
      return slept_ns;
    };
    while (now_ns < kSecond + IdleSleep::kNsPatience) EXPECT_LE(sleeps_ns(), IdleSleep::kNsMax);
    EXPECT_EQ(sleeps_ns(), loses ? IdleSleep::kNsMax : IdleSleep::kNsMaxOfDisk);
    sleep.worked();
    EXPECT_EQ(sleeps_ns(), IdleSleep::kNsFirst);
  }
}

// The sleep that a worker takes after so many looks in vain, while datagrams come at this pace.
TEST(IdleSleep, IsLongWhileFewDatagramsCome) {
  for (const bool loses : {false, true}) {
    IdleSleep sleep(kQueue, loses, kDatagramNs);
    uint64_t now_ns = kSecond;
    uint64_t moved = 0;
    const auto longest_ns = [&](uint64_t datagrams, uint64_t each_ns) {
      uint64_t longest_ns = 0;
      for (uint64_t n = 0; n < datagrams; ++n) {
        now_ns += each_ns;
        ++moved;
        sleep.worked();
        for (int i = 0; i < 10; ++i) {
          longest_ns = sleep.next_ns(now_ns, moved, For::kPeer);  // no time passes: nobody is quiet yet
          sleep.slept();
        }
      }
      return longest_ns;
    };
    const uint64_t long_ns = loses ? IdleSleep::kNsMax : IdleSleep::kNsMaxOfDisk;
    const uint64_t slow_ns = IdleSleep::kNsOfPace / IdleSleep::kFew * 2;
    EXPECT_EQ(longest_ns(100, IdleSleep::kNsFirst), IdleSleep::kNsMax);
    EXPECT_EQ(longest_ns(100, slow_ns), long_ns);
    EXPECT_EQ(longest_ns(IdleSleep::kFew, IdleSleep::kNsFirst), IdleSleep::kNsMax) << "a pace that rises";
    EXPECT_EQ(longest_ns(100, slow_ns), long_ns);
    sleep.begin();
    EXPECT_EQ(longest_ns(1, slow_ns), IdleSleep::kNsMax) << "a flow that begins";
  }
}

TEST(IdleSleep, AskingAgainIsNoSleep) {
  IdleSleep sleep(kQueue, true, kDatagramNs);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(sleep.next_ns(0, 0, For::kPeer), IdleSleep::kNsFirst);
}

TEST(IdleSleep, BeginsShortForEachFlow) {
  Sleeper sleeper(IdleSleep(kQueue, false, kDatagramNs));
  sleeper.after(100'000, 50);
  sleeper.sleep().begin();
  EXPECT_LT(sleeper.after(100'000, 1), 2 * IdleSleep::kNsFirst);
}

TEST(IdleSleep, LearnsNothingOfAQueueThatWakesIt) {
  Sleeper sleeper(IdleSleep(0, true, kDatagramNs));
  EXPECT_EQ(sleeper.after(10'000, 100), IdleSleep::kNsFirst);
}

// The first work after a long quiet says nothing of a pace.
TEST(IdleSleep, ALongQuietIsNoOverflow) {
  IdleSleep sleep(kQueue, false, kDatagramNs);
  sleep.worked();
  EXPECT_LE(sleep.next_ns(UINT64_MAX / 2, 3, For::kDisk), IdleSleep::kNsMaxOfDisk);
}

}  // namespace
}  // namespace sluice
