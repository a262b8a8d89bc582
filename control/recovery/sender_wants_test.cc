// A sender that obeys wants. docs/WIRE.md 2.1.6.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/recovery/numbers_for_test.h"
#include "control/recovery/sender.h"

namespace sluice::recovery {
namespace {

using board::CommandKind;
using board::EventKind;

constexpr Sender::Options kObeys{.partition_bytes = 4 * kExtent,
                                 .short_bytes = 2 * kExtent,
                                 .lane_rate_bps = 1'000'000,
                                 .obeys_wants = true};

// Two files on one lane, both open.
class Obeying : public testing::Test {
 protected:
  Obeying() { begin(); }
  void begin() {
    for (const ObjectId id : {kFirst, kOther}) sender_.object_opened(id);
    sender_.peer_said_all();
  }
  std::vector<Range> of_kind(CommandKind kind, ObjectId object = kFirst) {
    std::vector<Range> ranges;
    for (const LaneCommand& command : sender_.take_actions().commands)
      if (command.kind == kind && command.object == object) ranges.push_back(command.range);
    return ranges;
  }
  std::vector<Range> given(ObjectId object = kFirst) { return of_kind(CommandKind::kPartition, object); }
  // The worker sends an extent, and with it a part ends.
  void sent(uint64_t extent, uint64_t digest = 7) {
    const uint64_t at = extent * kExtent;
    sender_.on_event({.kind = EventKind::kExtentSent, .offset = at, .length = kExtent, .digest = digest},
                     on_lane(0));
    sender_.on_event({.kind = EventKind::kPartitionSent, .offset = at, .length = kExtent}, on_lane(0));
  }
  // The extents whose digests wait to be said.
  std::vector<uint64_t> to_say(ObjectId object = kFirst) {
    std::vector<uint64_t> extents;
    for (const DigestDesk::Run& run : sender_.digest_desk().take(object).runs)
      for (size_t i = 0; i < run.digests.size(); ++i) extents.push_back(run.first.plus(i).value());
    return extents;
  }

  static constexpr ObjectId kOther{1};
  Sender sender_{{layout_of(8 * kExtent), layout_of(8 * kExtent)}, 1, kObeys};
};

TEST_F(Obeying, NothingIsGivenThatIsNotWanted) {
  sender_.tick(1);
  EXPECT_TRUE(given().empty());
  sender_.want(kFirst, {extents(ExtentId(5)), extents(ExtentId(2))});
  EXPECT_EQ(given(), (std::vector<Range>{extents(ExtentId(2)), extents(ExtentId(5))}));
  sender_.want(kFirst, {extents(ExtentId(5))});
  sent(2);
  sent(5);
  EXPECT_TRUE(given().empty()) << "once";
  EXPECT_FALSE(sender_.has_wants());
}

TEST_F(Obeying, OnlyWholeExtentsOfTheObjectCount) {
  sender_.want(kFirst, {{.offset = 1, .length = kExtent}, {.offset = 7 * kExtent, .length = UINT64_MAX / 2}});
  EXPECT_EQ(given(), (std::vector<Range>{extents(ExtentId(7))}));
  sender_.want(ObjectId(9), {extents(ExtentId(0))});
  EXPECT_TRUE(given().empty());
}

TEST_F(Obeying, WhatNoLaneHasCanBeTakenBack) {
  sender_.want(kFirst, {extents(ExtentId(0), 8)});
  EXPECT_EQ(given().size(), 2U) << "a lane has parts for a few milliseconds";
  sender_.want_no_more(kFirst, {extents(ExtentId(0), 3), extents(ExtentId(4), 4)});
  sent(0);
  sent(1);
  EXPECT_EQ(given(), (std::vector<Range>{extents(ExtentId(3))}));
  sent(3);
  EXPECT_TRUE(given().empty());
  EXPECT_EQ(to_say(), (std::vector<uint64_t>{0, 1, 3}));
}

TEST_F(Obeying, TheDigestOfEachExtentIsSaidAndThatOfTheObjectIsNot) {
  sender_.want(kFirst, {extents(ExtentId(0), 8)});
  for (uint64_t extent = 0; extent < 8; ++extent) sent(extent, extent + 1);
  EXPECT_TRUE(sender_.digest_known(kFirst));
  EXPECT_TRUE(sender_.take_actions().digests.empty());
  const DigestDesk::Batch batch = sender_.digest_desk().take(kFirst);
  ASSERT_EQ(batch.runs.size(), 1U);
  EXPECT_EQ(batch.runs[0].first, ExtentId(0));
  EXPECT_EQ(batch.runs[0].digests, (std::vector<uint64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_FALSE(batch.demanded);
  EXPECT_TRUE(to_say().empty());
}

TEST_F(Obeying, WhatThePeerHasFromOthersIsNeitherSentNorRead) {
  sender_.want(kFirst, {extents(ExtentId(0), 8)});
  (void)given();
  sender_.peer_has(kFirst, {extents(ExtentId(2), 6)});
  sent(0);
  sent(1);
  EXPECT_TRUE(given().empty());
  EXPECT_FALSE(sender_.take_unknown());
  EXPECT_TRUE(sender_.file_done(kFirst, 99));
  EXPECT_TRUE(sender_.done(kFirst)) << "its digest is the peer's business";
  EXPECT_FALSE(sender_.take_unknown());
}

TEST_F(Obeying, ADigestThatIsKnownHereIsCompared) {
  sender_.want(kFirst, {extents(ExtentId(0), 8)});
  for (uint64_t extent = 0; extent < 8; ++extent) sent(extent);
  (void)sender_.take_actions();
  sender_.file_done(kFirst, sender_.digest(kFirst) + 1);
  EXPECT_EQ(sender_.take_actions().differ, std::vector<ObjectId>{kFirst});
  EXPECT_FALSE(sender_.done(kFirst));
}

// The digests of the former stream may have been lost, and what is read is read again.
TEST_F(Obeying, OnANewStreamNothingIsSentTwiceButItsDigestIsSaidAgain) {
  sender_.want(kFirst, {extents(ExtentId(0), 4)});
  (void)given();
  sent(0);
  EXPECT_EQ(to_say(), std::vector<uint64_t>{0});
  sender_.forget_wants();
  sender_.report_again();
  sender_.peer_said_all();
  (void)sender_.take_actions();
  sent(1);
  EXPECT_TRUE(given().empty()) << "of the former stream only what the lane has is sent";
  sender_.want(kFirst, {extents(ExtentId(0), 4)});
  EXPECT_EQ(given(), (std::vector<Range>{extents(ExtentId(3))}));
  const auto read = sender_.take_unknown();
  ASSERT_TRUE(read);
  EXPECT_EQ(read->first, ExtentId(0));
  EXPECT_EQ(read->end, ExtentId(1)) << "the other one was not said yet";
  sender_.reread(kFirst, ExtentId(0), {7});
  EXPECT_EQ(to_say(), (std::vector<uint64_t>{0, 1}));
}

TEST_F(Obeying, NewFlowsBeginWithNothing) {
  sender_.want(kFirst, {extents(ExtentId(0), 4)});
  sent(0);
  sender_.start_attempt(LegId(), 1, kObeys, 1);
  begin();
  EXPECT_TRUE(given().empty());
  sender_.want(kFirst, {extents(ExtentId(0))});
  EXPECT_EQ(given(), std::vector<Range>{extents(ExtentId(0))});
}

// Another source gave it, and that one lied.
TEST_F(Obeying, WhatThePeerHadAndWantsAgainIsSent) {
  sender_.peer_has(kFirst, {extents(ExtentId(0), 8)});
  EXPECT_EQ(sender_.bytes_held(), 8 * kExtent);
  sender_.want(kFirst, {extents(ExtentId(3))});
  EXPECT_EQ(sender_.bytes_held(), 7 * kExtent);
  EXPECT_EQ(given(), std::vector<Range>{extents(ExtentId(3))});
}

TEST_F(Obeying, WhatALaneStillHoldsAndThePeerLostGoesThereAgain) {
  sender_.want(kFirst, {extents(ExtentId(0), 2)});
  sender_.on_event({.kind = EventKind::kExtentSent, .offset = 0, .length = kExtent, .digest = 7}, on_lane(0));
  sender_.adopt({.kind = EventKind::kHeld, .offset = 4 * kExtent, .length = 2 * kExtent}, on_lane(0));
  sender_.peer_has(kFirst, {extents(ExtentId(4))});
  (void)sender_.take_actions();
  sender_.want(kFirst, {extents(ExtentId(4))});
  EXPECT_EQ(of_kind(CommandKind::kRepair), std::vector<Range>{extents(ExtentId(4))});
}

TEST_F(Obeying, ANeedForWhatWasNeverWantedAsksForNothing) {
  sender_.want(kFirst, {extents(ExtentId(0))});
  sent(0);
  (void)sender_.take_actions();
  sender_.peer_needs(kFirst, on_lane(0), {extents(ExtentId(0), 8), {.offset = 3 * kExtent + 8, .length = 8}});
  EXPECT_EQ(of_kind(CommandKind::kRepair), std::vector<Range>{extents(ExtentId(0))});
}

TEST_F(Obeying, DigestsThatAreDemandedAreReadAndNothingIsSent) {
  EXPECT_TRUE(sender_.want_digests(kFirst, {extents(ExtentId(7)), extents(ExtentId(0))}));
  EXPECT_TRUE(given().empty());
  for (const uint64_t extent : {0, 7}) {
    const auto read = sender_.take_unknown();
    ASSERT_TRUE(read);
    EXPECT_EQ(read->first, ExtentId(extent));
    sender_.reread(kFirst, read->first, {extent});
  }
  const DigestDesk::Batch batch = sender_.digest_desk().take(kFirst);
  EXPECT_EQ(batch.runs.size(), 2U);
  EXPECT_TRUE(batch.demanded);
  EXPECT_TRUE(sender_.want_digests(kFirst, {extents(ExtentId(0))}));
  EXPECT_TRUE(sender_.take_unknown()) << "though it is known";
}

TEST_F(Obeying, TheLastDigestsWaitUntilAllThatIsWantedWasRead) {
  sender_.want(kFirst, {extents(ExtentId(0), 2)});
  (void)given();
  EXPECT_TRUE(sender_.want_digests(kFirst, {extents(ExtentId(1))}, true));
  sent(0);
  sender_.release_last_digests();
  EXPECT_FALSE(sender_.digest_desk().last_due(kFirst));
  EXPECT_FALSE(sender_.digest_desk().take(kFirst).last);
  sent(1);
  sender_.release_last_digests();
  EXPECT_TRUE(sender_.digest_desk().last_due(kFirst));
  EXPECT_FALSE(sender_.take_unknown()) << "it was just read";
  const DigestDesk::Batch batch = sender_.digest_desk().take(kFirst);
  EXPECT_TRUE(batch.last);
  EXPECT_TRUE(batch.demanded);
  ASSERT_EQ(batch.runs.size(), 1U);
  EXPECT_EQ(batch.runs[0].first, ExtentId(1));
  EXPECT_EQ(sender_.digest_desk().demanded(), 0U);
}

TEST_F(Obeying, LastDigestsOfWhatWasSaidAreReadAgain) {
  sender_.want(kFirst, {extents(ExtentId(0))});
  (void)given();
  sent(0);
  (void)sender_.digest_desk().take(kFirst);
  EXPECT_TRUE(sender_.want_digests(kFirst, {extents(ExtentId(0))}, true));
  EXPECT_FALSE(sender_.take_unknown());
  sender_.release_last_digests();
  const auto read = sender_.take_unknown();
  ASSERT_TRUE(read);
  sender_.reread(kFirst, read->first, {0});
  EXPECT_TRUE(sender_.digest_desk().take(kFirst).last);
}

TEST_F(Obeying, NoMoreThanSomeDigestsAreDemandedAtATime) {
  Sender many({layout_of(1000 * kExtent)}, 1, kObeys);
  EXPECT_TRUE(many.want_digests(kFirst, {extents(ExtentId(0), 64)}));
  EXPECT_TRUE(many.want_digests(kFirst, {extents(ExtentId(0), 64)})) << "they are the same";
  EXPECT_FALSE(many.want_digests(kFirst, {extents(ExtentId(64))}));
  EXPECT_FALSE(many.want_digests(kFirst, {extents(ExtentId(100), 900)}));
}

TEST_F(Obeying, AnObjectIsOpenedWhenSomethingOfItIsAskedFor) {
  sender_.start_attempt(LegId(), 1, kObeys, 1);
  sender_.peer_said_all();
  EXPECT_TRUE(sender_.to_open().empty());
  sender_.want(kFirst, {extents(ExtentId(0))});
  sender_.want(kOther, {extents(ExtentId(0))});
  EXPECT_EQ(sender_.to_open().size(), 2U);
  sender_.object_opened(kOther);
  EXPECT_EQ(given(kOther), std::vector<Range>{extents(ExtentId(0))}) << "it waits for no other";
  EXPECT_TRUE(sender_.want_digests(kFirst, {extents(ExtentId(1))}));
  EXPECT_FALSE(sender_.take_unknown()) << "read once it is open";
  sender_.object_opened(kFirst);
  EXPECT_TRUE(sender_.take_unknown());
  EXPECT_TRUE(sender_.to_open().empty());
}

TEST_F(Obeying, AFewExtentsThatAreToBeReadDoNotWaitForMany) {
  EXPECT_TRUE(sender_.want_digests(kFirst, {extents(ExtentId(0), 8)}));
  EXPECT_TRUE(sender_.want_digests(kOther, {extents(ExtentId(3)), extents(ExtentId(7))}));
  for (const uint64_t extent : {3, 7}) {
    const auto read = sender_.take_unknown();
    ASSERT_TRUE(read);
    EXPECT_EQ(read->object, kOther);
    EXPECT_EQ(read->first, ExtentId(extent));
  }
  EXPECT_EQ(sender_.take_unknown()->object, kFirst);
}

TEST_F(Obeying, WhatIsWantedTwiceCountsOnce) {
  Sender::Options few = kObeys;
  few.digests_unanswered = 4;
  sender_.start_attempt(LegId(), 1, few, 1);
  begin();
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(sender_.want_digests(kFirst, {extents(ExtentId(0), 3)}));
  EXPECT_TRUE(sender_.want_digests(kOther, {extents(ExtentId(0))}));
  EXPECT_FALSE(sender_.want_digests(kOther, {extents(ExtentId(1))}));
  EXPECT_FALSE(sender_.want_digests(kFirst, std::vector<Range>(5, extents(ExtentId(0)))))
      << "nor is more looked at";
}

TEST_F(Obeying, WhatWasReadAndNotSaidAnswersAQuestion) {
  sender_.want(kFirst, {extents(ExtentId(0), 2)});
  (void)given();
  sent(0);
  EXPECT_TRUE(sender_.want_digests(kFirst, {extents(ExtentId(0), 2)}));
  sent(1);  // after the question
  EXPECT_FALSE(sender_.take_unknown());
  EXPECT_TRUE(sender_.digest_desk().all_read(kFirst));
  EXPECT_TRUE(sender_.digest_desk().take(kFirst, false).runs.empty()) << "it is demanded";
  EXPECT_TRUE(sender_.digest_desk().take(kFirst).demanded);
  EXPECT_EQ(sender_.digest_desk().demanded(), 0U);
}

TEST_F(Obeying, NothingOfAnObjectThatFailedIsSentOrSaid) {
  sender_.want(kFirst, {extents(ExtentId(0), 8)});
  (void)given();
  sent(0);
  EXPECT_TRUE(sender_.want_digests(kFirst, {extents(ExtentId(5))}));
  (void)given();
  sender_.withdraw(kFirst);
  EXPECT_TRUE(given().empty());
  sent(1);
  sender_.want(kFirst, {extents(ExtentId(3))});
  EXPECT_TRUE(given().empty());
  EXPECT_TRUE(to_say().empty());
  EXPECT_FALSE(sender_.take_unknown());
}

TEST_F(Obeying, ASourceWhoseBytesDifferWhenReadAgainHasChanged) {
  sender_.want(kFirst, {extents(ExtentId(0))});
  sent(0, 7);
  (void)sender_.take_actions();
  EXPECT_EQ(to_say(), std::vector<uint64_t>{0});
  EXPECT_TRUE(sender_.want_digests(kFirst, {extents(ExtentId(0))}));
  ASSERT_TRUE(sender_.take_unknown());
  sender_.reread(kFirst, ExtentId(0), {8});
  EXPECT_EQ(sender_.take_actions().changed, std::vector<ObjectId>{kFirst});
}

}  // namespace
}  // namespace sluice::recovery
