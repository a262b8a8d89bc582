// A sending end that a destination asks for parts of its files. docs/WIRE.md 2.1.6.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "control/source/sending_fixture.h"

namespace sluice::transfer::test {
namespace {

constexpr uint64_t kMsNs = 1'000'000;

// An end on one lane, with three files of 100 extents, of which the peer has nothing. Two may be open at a
// time.
class InParts : public SendingFixture {
 protected:
  InParts() : SendingFixture({std::vector<uint64_t>(3, 100 * kExtent)}) {}

  void begin(bool suspect = false, bool parts = true) {
    agreement_.abilities.set(Ability::kParts, parts);
    start({.name = "f", .shown = "/from/f", .path = "/from/f", .ctime_ns = 1, .suspect = suspect});
    EXPECT_EQ(asked<OpenObject>().size(), parts ? 0U : 1U);
    EXPECT_TRUE(hear(ObjectState{.end = true}));
    (void)out_.drain();
    seen_.clear();
  }
  void TearDown() override { end_->check_invariants(); }

  // Of what is wanted so far, what is of this kind: told once.
  template <typename E>
  std::vector<E> asked() {
    for (Effect& effect : out_.drain()) seen_.push_back(std::move(effect));
    std::vector<E> found;
    for (const Effect& effect : seen_) {
      if (const E* each = std::get_if<E>(&effect)) found.push_back(*each);
    }
    std::erase_if(seen_, [](const Effect& effect) { return std::holds_alternative<E>(effect); });
    return found;
  }
  template <typename M>
  std::vector<M> said() {
    std::vector<M> found;
    for (const Send& each : asked<Send>()) {
      if (const M* message = std::get_if<M>(&each.message)) found.push_back(*message);
    }
    return found;
  }
  Status want(uint32_t object, uint64_t first, uint64_t count = 1) {
    return hear(Want{.object = ObjectId(object), .ranges = {extents(first, count)}});
  }
  Status want_digest(uint32_t object, uint64_t extent) {
    return hear(DigestsWanted{.object = ObjectId(object), .ranges = {extents(extent)}});
  }
  void opened(uint32_t object) { EXPECT_TRUE(end_->on(ObjectOpened{.object = ObjectId(object)}, out_)); }
  void sent(uint64_t extent, uint32_t object = 0) {
    const board::Event event{.kind = board::EventKind::kExtentSent,
                             .object = object,
                             .offset = extent * kExtent,
                             .length = kExtent,
                             .digest = crc(extent, object)};
    EXPECT_TRUE(end_->on(FlowEvent{.leg = LegId(0), .lane = LaneId(0), .event = event}, out_));
  }
  Status tick(uint64_t ms) {
    now_ns_ += ms * kMsNs;
    const auto lanes = std::to_array<const board::FlowSlot*>({&slot_});
    return end_->on(Tick{.leg = LegId(0), .lanes = lanes}, now_ns_, out_);
  }
  Status looked(int64_t ctime_ns = 1, uint32_t object = 0) {
    return end_->on(SourceChecked{.object = ObjectId(object), .ctime_ns = ctime_ns}, out_);
  }
  // Answers what is to be read next, and tells which extents that were.
  std::vector<uint64_t> read_next(uint64_t wrong = 0) {
    std::vector<uint64_t> extents_read;
    const std::vector<ReadExtents> reads = asked<ReadExtents>();
    if (reads.empty()) return {};
    EXPECT_EQ(reads.size(), 1U) << "one after the other";
    std::vector<uint64_t> crcs;
    for (const recovery::Range& range : reads[0].ranges) {
      uint64_t sum = 0;
      for (uint64_t at = range.offset; at < range.end(); at += kExtent) {
        extents_read.push_back(at / kExtent);
        sum =
            crc::shift(agreement_.crc_kind, sum, kExtent) ^ crc(extents_read.back(), reads[0].object.value());
      }
      crcs.push_back(sum ^ wrong);
    }
    read_ = end_->on(ExtentsRead{.object = reads[0].object, .first = reads[0].first, .crcs = crcs}, out_);
    return extents_read;
  }
  // As often as something is to be read.
  std::vector<uint64_t> read_all(uint64_t wrong = 0) {
    std::vector<uint64_t> all;
    for (auto some = read_next(wrong); !some.empty(); some = read_next(wrong))
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }
  // The extents whose digests were said, and rightly.
  std::vector<uint64_t> digests_said(uint32_t object = 0) {
    std::vector<uint64_t> told;
    for (const ExtentDigests& each : said<ExtentDigests>()) {
      EXPECT_EQ(each.object, ObjectId(object));
      for (size_t i = 0; i < each.digests.size(); ++i) {
        told.push_back(each.offset / kExtent + i);
        EXPECT_EQ(each.digests[i], crc(told.back(), object));
      }
    }
    return told;
  }
  std::vector<recovery::Range> given() {
    std::vector<recovery::Range> ranges;
    for (const CommandLane& each : asked<CommandLane>())
      if (each.command.kind == board::CommandKind::kPartition) ranges.push_back(each.command.range);
    return ranges;
  }
  static recovery::Range extents(uint64_t first, uint64_t count = 1) {
    return {.offset = first * kExtent, .length = count * kExtent};
  }
  static uint64_t crc(uint64_t extent, uint32_t object) {
    return Content::crc(ObjectId(object), ExtentId(extent));
  }

  board::FlowSlot slot_{};
  std::vector<Effect> seen_;
  Status read_;
  uint64_t now_ns_ = 1;
};

using Extents = std::vector<uint64_t>;

TEST_F(InParts, WordsThatWereNotAgreedUponEndTheAttempt) {
  begin(false, false);
  EXPECT_EQ(want(0, 0).error().code, ErrorCode::kIncompatible);
  EXPECT_EQ(want_digest(0, 0).error().code, ErrorCode::kIncompatible);
}

TEST_F(InParts, WordsOfNoSuchObjectAndTooManyDigestsEndTheAttempt) {
  begin();
  EXPECT_EQ(want(3, 0).error().code, ErrorCode::kIncompatible);
  EXPECT_EQ(want_digest(3, 0).error().code, ErrorCode::kIncompatible);
  EXPECT_EQ(hear(ExtentDigests{.object = ObjectId(0)}).error().code, ErrorCode::kIncompatible);
  EXPECT_TRUE(hear(DigestsWanted{.object = ObjectId(0), .ranges = {extents(0, 64)}}));
  EXPECT_EQ(want_digest(0, 64).error().code, ErrorCode::kIncompatible);
}

TEST_F(InParts, AsManyDigestsMayBeWantedAsWereAgreedUpon) {
  agreement_.digests_unanswered = 200;
  begin();
  for (const uint32_t object : {0U, 1U})
    EXPECT_TRUE(hear(DigestsWanted{.object = ObjectId(object), .ranges = {extents(0, 100)}}));
  EXPECT_TRUE(want_digest(1, 99)) << "it is wanted already";
  EXPECT_EQ(want_digest(2, 0).error().code, ErrorCode::kIncompatible);
}

TEST_F(InParts, AFileIsOpenedWhenSomethingOfItIsWantedAndClosedWhenItIsDone) {
  begin();
  EXPECT_TRUE(tick(1));
  EXPECT_TRUE(asked<OpenObject>().empty());
  EXPECT_TRUE(want(1, 7));
  const std::vector<OpenObject> opens = asked<OpenObject>();
  ASSERT_EQ(opens.size(), 1U);
  EXPECT_EQ(opens[0].object, ObjectId(1));
  opened(1);
  EXPECT_EQ(given(), (std::vector<recovery::Range>{extents(7)}));
  EXPECT_TRUE(want(2, 0));
  EXPECT_TRUE(asked<OpenObject>().empty()) << "no more are open than the dataplane knows";
  EXPECT_TRUE(hear(FileDone{.object = ObjectId(0), .digest = 5}));
  EXPECT_TRUE(end_->done(ObjectId(0))) << "from other sources";
  EXPECT_EQ(asked<OpenObject>().size(), 1U);
  opened(2);
  EXPECT_TRUE(hear(FileDone{.object = ObjectId(1), .digest = 5}));
  EXPECT_EQ(asked<CloseObject>().size(), 1U);
  EXPECT_TRUE(end_->on(ObjectClosed{.object = ObjectId(1)}, out_));
}

TEST_F(InParts, DigestsAreSaidAfterALookThatBeganWhenTheExtentsHadBeenRead) {
  begin();
  EXPECT_TRUE(want(0, 0, 100));
  opened(0);
  sent(0);
  sent(1);
  EXPECT_TRUE(tick(1));
  EXPECT_EQ(asked<CheckSource>().size(), 1U);
  EXPECT_TRUE(digests_said().empty());
  sent(2);
  EXPECT_TRUE(tick(60));
  EXPECT_TRUE(asked<CheckSource>().empty()) << "one at a time";
  EXPECT_TRUE(looked());
  EXPECT_EQ(digests_said(), (Extents{0, 1})) << "the third was read later";
  EXPECT_TRUE(tick(1));
  EXPECT_EQ(asked<CheckSource>().size(), 1U);
  EXPECT_TRUE(looked());
  EXPECT_EQ(digests_said(), Extents{2});
  sent(3);
  EXPECT_TRUE(tick(1));
  EXPECT_TRUE(asked<CheckSource>().empty()) << "it waits for others";
  EXPECT_TRUE(tick(50));
  EXPECT_EQ(asked<CheckSource>().size(), 1U);
  EXPECT_TRUE(looked());
  EXPECT_EQ(digests_said(), Extents{3});
  for (uint64_t extent = 4; extent < 68; ++extent) sent(extent);
  EXPECT_TRUE(tick(1));
  EXPECT_EQ(asked<CheckSource>().size(), 1U) << "many do not wait";
  EXPECT_TRUE(looked());
  EXPECT_EQ(digests_said().size(), 64U);
  EXPECT_TRUE(said<FileDigest>().empty());
}

TEST_F(InParts, OfASourceThatIsFoundChangedNoDigestIsSaid) {
  begin();
  EXPECT_TRUE(want(0, 0));
  opened(0);
  sent(0);
  EXPECT_TRUE(tick(1));
  // One of several files fails alone.
  const Error error{ErrorCode::kIntegrity, "/from/f: changed while it was sent"};
  EXPECT_TRUE(end_->on(SourceChecked{.object = ObjectId(0), .status = error}, out_));
  EXPECT_EQ(said<ObjectFailed>().size(), 1U);
  EXPECT_TRUE(digests_said().empty());
}

TEST_F(InParts, ADigestThatIsDemandedIsReadAndNothingIsSent) {
  begin();
  EXPECT_TRUE(want_digest(0, 99));
  EXPECT_EQ(asked<OpenObject>().size(), 1U);
  EXPECT_TRUE(asked<ReadExtents>().empty());
  opened(0);
  EXPECT_TRUE(tick(1));
  EXPECT_EQ(read_all(), Extents{99});
  EXPECT_TRUE(tick(50));
  EXPECT_EQ(asked<CheckSource>().size(), 1U);
  EXPECT_TRUE(looked());
  EXPECT_EQ(digests_said(), Extents{99});
  EXPECT_TRUE(given().empty());
}

// A ctime tells that something happened, and not to what.
TEST_F(InParts, AfterAnythingHappenedToAFileAllThatWasReadOfItIsReadAgain) {
  begin();
  EXPECT_TRUE(want(0, 0, 100));
  opened(0);
  for (const uint64_t extent : {0, 1, 2, 70}) sent(extent);
  EXPECT_TRUE(tick(1));
  EXPECT_TRUE(looked(2));
  EXPECT_TRUE(digests_said().empty());
  EXPECT_EQ(read_all(), (Extents{0, 1, 2, 70}));
  EXPECT_EQ(digests_said(), (Extents{0, 1, 2, 70}));
  sent(3);
  EXPECT_TRUE(tick(50));
  EXPECT_TRUE(looked(2));
  EXPECT_TRUE(read_all().empty()) << "nothing has happened since";
  EXPECT_EQ(digests_said(), Extents{3});
}

TEST_F(InParts, WhatIsOtherwiseWhenItIsReadAgainHasChanged) {
  begin();
  EXPECT_TRUE(want(0, 0, 100));
  opened(0);
  sent(0);
  EXPECT_TRUE(tick(1));
  EXPECT_TRUE(looked(2));
  EXPECT_EQ(read_all(1), Extents{0});
  EXPECT_EQ(said<ObjectFailed>().size(), 1U);
  EXPECT_TRUE(digests_said().empty());
}

TEST_F(InParts, WhatSomebodyMayWriteIsReadAgainWhereThePeerDemandsADigest) {
  begin(true);
  EXPECT_TRUE(want(0, 0, 100));
  opened(0);
  for (const uint64_t extent : {0, 1}) sent(extent);
  EXPECT_TRUE(tick(1));
  EXPECT_TRUE(looked());
  EXPECT_EQ(digests_said(), (Extents{0, 1}));
  for (int i = 0; i < 2; ++i) {  // and as often as it does
    EXPECT_TRUE(want_digest(0, 1));
    EXPECT_EQ(read_all(), Extents{1});
    EXPECT_TRUE(tick(50));
    EXPECT_TRUE(looked());
    EXPECT_EQ(read_all(), (Extents{0, 1}));
    EXPECT_EQ(digests_said(), Extents{1});
  }
}

// Each look at such a file reads all of it again.
TEST_F(InParts, OneLookAtWhatSomebodyMayWriteIsForAllThatIsDemanded) {
  agreement_.digests_unanswered = 200;
  begin(true);
  EXPECT_TRUE(want(0, 0, 2));
  opened(0);
  sent(0);
  EXPECT_TRUE(hear(DigestsWanted{.object = ObjectId(0), .ranges = {extents(20, 40)}}));
  EXPECT_EQ(read_next().size(), 16U) << "a step that is not long";
  EXPECT_TRUE(tick(50));
  EXPECT_TRUE(looked());
  EXPECT_EQ(digests_said(), Extents{0}) << "what is sent does not wait for it";
  EXPECT_EQ(read_all().size(), 24U);
  sent(1);
  EXPECT_TRUE(tick(50));
  EXPECT_TRUE(looked());
  EXPECT_EQ(read_all().size(), 42U);
  EXPECT_EQ(digests_said().size(), 41U);
}

TEST_F(InParts, ALookAtWhatSomebodyMayWriteDoesNotWaitForLong) {
  agreement_.digests_unanswered = 200;
  begin(true);
  EXPECT_TRUE(hear(DigestsWanted{.object = ObjectId(0), .ranges = {extents(0, 100)}}));
  opened(0);
  EXPECT_TRUE(tick(1));
  EXPECT_EQ(read_next().size(), 16U);
  EXPECT_TRUE(tick(4'900));
  EXPECT_TRUE(asked<CheckSource>().empty());
  EXPECT_TRUE(tick(200));
  EXPECT_EQ(asked<CheckSource>().size(), 1U);
  EXPECT_TRUE(looked());
  // What was demanded since, and what is read again, take turns.
  EXPECT_EQ(read_next().front(), 16U);
  EXPECT_EQ(read_next().front(), 0U);
  EXPECT_EQ(digests_said().size(), 16U);
}

TEST_F(InParts, OnANewStreamTheWantsOfTheFormerOneAreForgotten) {
  begin();
  EXPECT_TRUE(want(0, 0));
  EXPECT_TRUE(want(1, 0));
  opened(0);
  (void)given();
  end_->on_new_stream(LegId(0));
  EXPECT_TRUE(hear(ObjectState{.end = true}));
  opened(1);
  EXPECT_TRUE(given().empty());
  EXPECT_TRUE(want(1, 0));
  EXPECT_EQ(given(), (std::vector<recovery::Range>{extents(0)}));
}

// A digest that the source happens to know is compared, as ever.
TEST_F(InParts, TheDigestOfTheWholeIsThePeersBusiness) {
  begin();
  EXPECT_TRUE(hear(FileDone{.object = ObjectId(1), .digest = 5}));
  EXPECT_TRUE(end_->done(ObjectId(1)));
  EXPECT_TRUE(want(0, 0, 100));
  opened(0);
  for (uint64_t extent = 0; extent < 100; ++extent) sent(extent);
  EXPECT_TRUE(hear(FileDone{.object = ObjectId(0), .digest = 5}));
  EXPECT_FALSE(end_->done(ObjectId(0)));
  const std::vector<CheckSource> checks = asked<CheckSource>();
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks[0].otherwise->code, ErrorCode::kIntegrity);
}

TEST_F(InParts, NoSecondLegJoins) {
  begin();
  EXPECT_FALSE(end_->may_join());
}

}  // namespace
}  // namespace sluice::transfer::test
