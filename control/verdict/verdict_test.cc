// SPDX-License-Identifier: Apache-2.0
#include "control/verdict/verdict.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace sluice::verdict {
namespace {

using rate::Condition;

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kInterval = 500 * kMs;
constexpr uint64_t kGbps = 1'000'000'000;

// A path of which nothing holds anything up: 10 Gbit/s, in part used.
Sight free_sight() {
  return {.interval_ns = kInterval,
          .lanes = 1,
          .sent = 100'000,
          .window = {.granted = 200, .used = 40, .wanted = 100},
          .rate = {.now_bps = 5 * kGbps, .cap_bps = 10 * kGbps},
          .rtt_ns = 2 * kMs,
          .rtt_min_ns = kMs,
          .here = {.busy = 0.4}};
}
Sight paced_sight(Condition condition) {
  Sight sight = free_sight();
  sight.blocked.pacing_ns = 400 * kMs;
  sight.rate.condition = condition;
  return sight;
}
Sight held_sight() {
  Sight sight = free_sight();
  sight.blocked.credit_ns = 450 * kMs;
  return sight;
}
bool tells(const Verdict& verdict, std::string_view text) {
  return std::any_of(verdict.evidence.begin(), verdict.evidence.end(),
                     [text](const std::string& line) { return line.find(text) != std::string::npos; });
}

TEST(Verdict, ASenderThatWaitsForNothingIsHeldByItsOwnWorkOrByThoseWhoHaveItsCore) {
  Sight sight = free_sight();
  sight.here.busy = 0.6;
  EXPECT_EQ(judge(sight).cause, Cause::kSenderCpu);
  sight.here.busy = 0.4;
  EXPECT_EQ(judge(sight).cause, Cause::kNone) << "it had time, and nothing says what for it did not use it";
}

TEST(Verdict, NetworkWhereTheDestinationIsNotHeardBeItThatNothingWasSent) {
  Sight sight = free_sight();
  sight.rate.condition = rate::Condition::kCrawling;
  EXPECT_EQ(judge(sight).cause, Cause::kNetwork);
  EXPECT_TRUE(tells(judge(sight), "the destination has not been heard for a while"));
  EXPECT_FALSE(tells(judge(sight), "paced at")) << "a crawl says nothing of the path";
}

TEST(Verdict, OfWhatNothingHoldsThereIsNone) {
  const Verdict verdict = judge(free_sight());
  EXPECT_EQ(verdict.cause, Cause::kNone);
  EXPECT_TRUE(verdict.evidence.empty());
  EXPECT_EQ(judge(Sight{}).cause, Cause::kNone) << "no time has passed";
}

TEST(Verdict, SourceDisk) {
  Sight sight = free_sight();
  sight.blocked.source_ns = 400 * kMs;
  sight.blocked.pacing_ns = 50 * kMs;
  sight.here.reading = 1;
  sight.here.read_ns = 41 * kMs;
  const Verdict verdict = judge(sight);
  EXPECT_EQ(verdict.cause, Cause::kSourceDisk);
  EXPECT_DOUBLE_EQ(verdict.share, 0.8);
  EXPECT_TRUE(tells(verdict, "80 %"));
  EXPECT_TRUE(tells(verdict, "41.0 ms"));
}

TEST(Verdict, SourceDiskThatReadsAllTheTimeThoughOtherThingsTakeTimeAsWell) {
  Sight sight = paced_sight(Condition::kRunning);
  sight.blocked.source_ns = 75 * kMs;
  EXPECT_EQ(judge(sight).cause, Cause::kNetwork);
  sight.here.reading = 0.95;
  EXPECT_EQ(judge(sight).cause, Cause::kSourceDisk);
}

TEST(Verdict, TimesAreOfAllLanesTogether) {
  Sight sight = free_sight();
  sight.lanes = 4;
  sight.blocked.source_ns = 400 * kMs;
  EXPECT_EQ(judge(sight).cause, Cause::kNone) << "a fifth of the time of four lanes";
  sight.blocked.source_ns = 4 * 400 * kMs;
  EXPECT_EQ(judge(sight).cause, Cause::kSourceDisk);
}

TEST(Verdict, SenderCpu) {
  Sight sight = free_sight();
  sight.here.busy = 0.97;
  const Verdict verdict = judge(sight);
  EXPECT_EQ(verdict.cause, Cause::kSenderCpu);
  EXPECT_TRUE(tells(verdict, "97 %"));
  sight.blocked.credit_ns = 490 * kMs;
  EXPECT_NE(judge(sight).cause, Cause::kSenderCpu) << "it waits all the time, and is busy with statuses";
}

TEST(Verdict, LimitNamesWhoSetIt) {
  Sight sight = paced_sight(Condition::kRunning);
  sight.rate.now_bps = sight.rate.cap_bps = kGbps / 10;
  Verdict verdict = judge(sight);
  EXPECT_EQ(verdict.cause, Cause::kLimit);
  EXPECT_DOUBLE_EQ(verdict.share, 0.8);
  EXPECT_TRUE(tells(verdict, "100.0 Mbit/s"));
  EXPECT_TRUE(tells(verdict, "--rate"));
  sight.rate.cap_of = LimitOf::kOperator;
  EXPECT_TRUE(tells(judge(sight), "session limit"));
  sight.rate.cap_of = LimitOf::kPeer;
  EXPECT_TRUE(tells(judge(sight), "of the destination"));
}

TEST(Verdict, TheLawThatStillFeelsItsWayIsALimit) {
  const Verdict verdict = judge(paced_sight(Condition::kRamping));
  EXPECT_EQ(verdict.cause, Cause::kLimit);
  EXPECT_TRUE(tells(verdict, "ramping up"));
}

TEST(Verdict, NetworkByLoss) {
  Sight sight = paced_sight(Condition::kYielding);
  sight.lost = 2'000;
  const Verdict verdict = judge(sight);
  EXPECT_EQ(verdict.cause, Cause::kNetwork);
  EXPECT_TRUE(tells(verdict, "2.00 % of the chunks"));
}

TEST(Verdict, NetworkByDelay) {
  Sight sight = paced_sight(Condition::kYieldingToOthers);
  sight.rtt_ns = 40 * kMs;
  const Verdict verdict = judge(sight);
  EXPECT_EQ(verdict.cause, Cause::kNetwork);
  EXPECT_TRUE(tells(verdict, "40.0 ms"));
  EXPECT_TRUE(tells(verdict, "1.0 ms"));
  EXPECT_EQ(judge(paced_sight(Condition::kRunning)).cause, Cause::kNetwork) << "it carries no more";
  EXPECT_EQ(judge(paced_sight(Condition::kStopped)).cause, Cause::kNetwork) << "it is silent";
}

TEST(Verdict, NetworkWhereTheDeviceTakesNoMore) {
  Sight sight = free_sight();
  sight.refused = 7;
  EXPECT_EQ(judge(sight).cause, Cause::kNetwork);
  EXPECT_TRUE(tells(judge(sight), "took no more 7 times"));
}

TEST(Verdict, NetworkWhereLossHoldsTheCredit) {
  Sight sight = held_sight();
  sight.lost = 5'000;
  EXPECT_EQ(judge(sight).cause, Cause::kNetwork);
}

TEST(Verdict, ReceiverRing) {
  Sight sight = paced_sight(Condition::kYielding);
  sight.lost = 2'000;
  sight.there = board::Load{.busy = 0.5, .missed = 1'900};
  const Verdict verdict = judge(sight);
  EXPECT_EQ(verdict.cause, Cause::kReceiverRing);
  EXPECT_TRUE(tells(verdict, "1900 datagrams"));
  sight.there->missed = 100;
  EXPECT_EQ(judge(sight).cause, Cause::kNetwork) << "most of the loss was elsewhere";
}

TEST(Verdict, ReceiverCpu) {
  Sight sight = paced_sight(Condition::kYielding);
  sight.lost = 2'000;
  sight.there = board::Load{.busy = 0.95, .missed = 1'900};
  const Verdict verdict = judge(sight);
  EXPECT_EQ(verdict.cause, Cause::kReceiverCpu);
  EXPECT_TRUE(tells(verdict, "95 %"));
  EXPECT_TRUE(tells(verdict, "no room for 1900"));
  Sight slow = paced_sight(Condition::kYieldingToOthers);
  slow.there = board::Load{.busy = 0.95};
  EXPECT_EQ(judge(slow).cause, Cause::kReceiverCpu) << "the queue is before its worker";
}

TEST(Verdict, DestinationDiskByItsAdvice) {
  Sight sight = paced_sight(Condition::kRunning);
  sight.rate.advice_bps = sight.rate.now_bps;
  sight.there = board::Load{.busy = 0.2, .writing = 1, .write_ns = 12 * kMs};
  const Verdict verdict = judge(sight);
  EXPECT_EQ(verdict.cause, Cause::kDestinationDisk);
  EXPECT_TRUE(tells(verdict, "keeps up with 5.00 Gbit/s"));
  EXPECT_TRUE(tells(verdict, "12.0 ms"));
}

TEST(Verdict, DestinationDiskThatIsWrittenAllTheTimeWithoutAdvice) {
  Sight sight = paced_sight(Condition::kRunning);
  sight.there = board::Load{.writing = 0.9};
  EXPECT_EQ(judge(sight).cause, Cause::kDestinationDisk);
  sight.lost = 2'000;
  EXPECT_EQ(judge(sight).cause, Cause::kNetwork) << "loss says more";
}

TEST(Verdict, DestinationDiskThatWritesAllTheTimeWhileTheSenderHasNothingToWaitFor) {
  Sight sight = free_sight();
  sight.there = board::Load{.writing = 0.5};
  EXPECT_EQ(judge(sight).cause, Cause::kNone);
  sight.there->writing = 0.95;
  EXPECT_EQ(judge(sight).cause, Cause::kDestinationDisk);
}

TEST(Verdict, DestinationDiskThatAdvisesThoughTheSenderHasLittleTime) {
  Sight sight = free_sight();
  sight.blocked.pacing_ns = 50 * kMs;
  sight.here.busy = 0.9;
  sight.there = board::Load{.writing = 0.75};
  EXPECT_EQ(judge(sight).cause, Cause::kSenderCpu);
  sight.rate.advice_bps = kGbps / 10;
  EXPECT_EQ(judge(sight).cause, Cause::kDestinationDisk);
}

TEST(Verdict, DestinationDiskByChunksThatFoundNoRoom) {
  Sight sight = paced_sight(Condition::kRunning);
  sight.no_room = 50;
  const Verdict verdict = judge(sight);
  EXPECT_EQ(verdict.cause, Cause::kDestinationDisk);
  EXPECT_TRUE(tells(verdict, "no buffer for 50 chunks"));
}

TEST(Verdict, DestinationDiskThatHoldsTheCredit) {
  Sight sight = held_sight();
  EXPECT_EQ(judge(sight).cause, Cause::kDestinationDisk) << "the window is large enough for the path";
  sight.window = {.granted = 10, .used = 10, .wanted = 100};
  sight.there = board::Load{.writing = 0.9};
  EXPECT_EQ(judge(sight).cause, Cause::kDestinationDisk) << "a small window, and a disk that is slower still";
}

TEST(Verdict, DestinationDiskThatMakesItDurable) {
  Sight sight = free_sight();
  sight.all_sent = true;
  EXPECT_EQ(judge(sight).cause, Cause::kDestinationDisk);
}

TEST(Verdict, CreditOfADestinationWithTooLittleMemory) {
  Sight sight = held_sight();
  sight.window = {.granted = 16, .used = 16, .wanted = 476};
  const Verdict verdict = judge(sight);
  EXPECT_EQ(verdict.cause, Cause::kCredit);
  EXPECT_DOUBLE_EQ(verdict.share, 0.9);
  EXPECT_TRUE(tells(verdict, "16 of 476"));
}

TEST(Verdict, SenderMemory) {
  Sight sight = free_sight();
  sight.blocked.memory_ns = 450 * kMs;
  sight.window = {.granted = 400, .used = 30, .wanted = 476};
  const Verdict verdict = judge(sight);
  EXPECT_EQ(verdict.cause, Cause::kSenderMemory);
  EXPECT_TRUE(tells(verdict, "30 of 476"));
}

TEST(Verdict, SenderMemoryThatOtherSessionsHold) {
  Sight sight = free_sight();
  sight.blocked.memory_ns = 450 * kMs;
  sight.window = {.granted = 3, .used = 0, .wanted = 1};
  const Verdict verdict = judge(sight);
  EXPECT_EQ(verdict.cause, Cause::kSenderMemory);
  EXPECT_TRUE(tells(verdict, "other sessions"));
}

TEST(Verdict, NoSharesBeyondAllOfTheTimeAndFewLines) {
  Sight sight = paced_sight(Condition::kYielding);
  sight.blocked.pacing_ns = ~0ULL / 2;
  sight.lost = ~0ULL;
  sight.no_room = ~0ULL;
  sight.rate.advice_bps = 1;
  sight.there = board::Load{.busy = 1, .writing = 1, .missed = ~0ULL};
  const Verdict verdict = judge(sight);
  EXPECT_LE(verdict.share, 1);
  EXPECT_LE(verdict.evidence.size(), kEvidenceMax);
}

TEST(ReceiverVerdict, TellsWhatADestinationCanSee) {
  EXPECT_EQ(judge(ReceiverSight{.came = 10}).cause, Cause::kNone);
  EXPECT_EQ(judge(ReceiverSight{.came = 10, .here = {.writing = 0.9}}).cause, Cause::kDestinationDisk);
  EXPECT_EQ(judge(ReceiverSight{.came = 10, .here = {.writing = 0.6}}).cause, Cause::kNone);
  EXPECT_EQ(judge(ReceiverSight{.came = 10, .no_room = 1, .here = {.writing = 0.6}}).cause,
            Cause::kDestinationDisk);
  EXPECT_EQ(judge(ReceiverSight{.came = 10, .here = {.busy = 0.9}}).cause, Cause::kReceiverCpu);
  EXPECT_EQ(judge(ReceiverSight{.came = 10, .lost = 5, .here = {.missed = 4}}).cause, Cause::kReceiverRing);
  EXPECT_EQ(judge(ReceiverSight{.came = 10, .lost = 50, .here = {.missed = 4}}).cause, Cause::kNone);
}

TEST(Cause, HasANameForEachNumberAndNoneForOthers) {
  for (size_t i = 0; i < kCauseNames.size(); ++i) {
    EXPECT_EQ(cause_of(i), static_cast<Cause>(i));
    EXPECT_FALSE(cause_name(cause_of(i)).empty());
  }
  EXPECT_EQ(cause_of(kCauseNames.size()), Cause::kNone);
  EXPECT_EQ(cause_of(~0ULL), Cause::kNone);
}

}  // namespace
}  // namespace sluice::verdict
