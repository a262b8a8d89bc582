// SPDX-License-Identifier: Apache-2.0
#include "control/source/source_files.h"

#include <gtest/gtest.h>

#include "dataplane/board/attach.h"

namespace sluice::transfer {
namespace {

constexpr uint32_t kExtent = 65536;

// Files of one extent each. Four may be open at a time, two before their turn.
class Sources : public testing::Test {
 protected:
  void have(size_t count, bool generated = false, size_t packs = 0) {
    settings_.open_objects_max = packs == 0 ? 4 : 64;
    settings_.open_ahead = packs == 0 ? 2 : 64;
    std::vector<catalog::File> files;
    Indexed<ObjectId, recovery::Layout> layouts;
    for (size_t i = 0; i < count; ++i) {
      files.push_back({.name = "f", .path = generated ? "" : "/f", .size_bytes = kExtent});
      if (i < packs) files.back().kind = catalog::FileKind::kPack;
      layouts.push_back(
          {.size_bytes = kExtent, .extent_bytes = kExtent, .crc_kind = wire::CrcKind::kCrc64Ecma});
    }
    files_ = std::make_unique<SourceFiles>(settings_, files);
    sender_ = std::make_unique<recovery::Sender>(
        layouts, 1, recovery::Sender::Options{.partition_bytes = kExtent, .lane_rate_bps = 1'000'000});
    sender_->peer_said_all();
  }
  template <typename E>
  std::vector<E> asked() {
    std::vector<E> found;
    for (const Effect& effect : out_.drain()) {
      if (const E* each = std::get_if<E>(&effect)) found.push_back(*each);
    }
    return found;
  }
  void reopen() {
    files_->reopen(out_);
    ASSERT_EQ(asked<ReopenSources>().size(), 1U);
    files_->on(SourcesReopened{}, out_);
    EXPECT_TRUE(files_->prepared());
  }
  // Opens what is asked for until nothing is, and tells how many that were.
  size_t open_what_is_due() {
    size_t opened = 0;
    files_->open_next(kExtent, sender_.get(), out_);
    for (;;) {
      const std::vector<Effect> effects = out_.drain();
      if (effects.empty()) return opened;
      EXPECT_EQ(effects.size(), 1U) << "one after the other";
      if (const auto* open = std::get_if<OpenObject>(&effects[0])) {
        ++opened;
        EXPECT_TRUE(files_->on(ObjectOpened{.object = open->object}, sender_.get(), out_));
      } else {
        files_->on(ObjectClosed{std::get<CloseObject>(effects[0]).object}, sender_.get(), out_);
      }
    }
  }

  Settings settings_;
  Effects out_;
  std::unique_ptr<SourceFiles> files_;
  std::unique_ptr<recovery::Sender> sender_;
};

TEST(SourcesPhases, FromEachOnlyTheseFollow) {
  for (const SourcesPhase from :
       {SourcesPhase::kClosed, SourcesPhase::kReopening, SourcesPhase::kFetching, SourcesPhase::kReady}) {
    EXPECT_TRUE(allowed(from, SourcesPhase::kClosed));
    EXPECT_EQ(allowed(from, SourcesPhase::kReopening), from == SourcesPhase::kClosed);
    EXPECT_EQ(allowed(from, SourcesPhase::kFetching),
              from == SourcesPhase::kReopening || from == SourcesPhase::kFetching);
    EXPECT_EQ(allowed(from, SourcesPhase::kReady),
              from == SourcesPhase::kReopening || from == SourcesPhase::kFetching);
  }
}

TEST_F(Sources, AreOpenedAheadOfTheirTurnWithinBounds) {
  have(10);
  reopen();
  const size_t opened = open_what_is_due();
  EXPECT_GE(opened, 2U);
  EXPECT_LE(opened, 4U) << "the dataplane knows no more numbers";
  size_t all = opened;
  for (uint32_t i = 0; i < 10; ++i) {
    (void)sender_->take_actions();
    sender_->on_event({.kind = board::EventKind::kExtentSent, .object = i, .length = kExtent, .digest = 5},
                      recovery::FlowRef());
    sender_->on_event({.kind = board::EventKind::kPartitionSent, .object = i, .length = kExtent},
                      recovery::FlowRef());
    EXPECT_TRUE(sender_->file_done(ObjectId(i), sender_->digest(ObjectId(i))));
    all += open_what_is_due();
    EXPECT_LE(all, i + 5 + 1);
  }
  EXPECT_EQ(all, 10U);
  EXPECT_TRUE(sender_->all_done());
}

TEST_F(Sources, AnErrorIsToldAndNothingMoreIsOpened) {
  have(3);
  reopen();
  files_->open_next(kExtent, sender_.get(), out_);
  ASSERT_EQ(asked<OpenObject>().size(), 1U);
  EXPECT_FALSE(files_->on(ObjectOpened{.object = ObjectId(0), .status = Error{}}, sender_.get(), out_));
  EXPECT_TRUE(out_.empty());
  files_->attempt_over();
  files_->reopen(out_);
  files_->on(SourcesReopened{}, out_);
  files_->attempt_over();
  EXPECT_EQ(files_->pending(), 0U);
}

TEST_F(Sources, ThatHaltOpenNothingMore) {
  have(3);
  reopen();
  files_->open_next(kExtent, sender_.get(), out_);
  (void)out_.drain();
  files_->halt();
  EXPECT_TRUE(files_->on(ObjectOpened{.object = ObjectId(0)}, sender_.get(), out_));
  EXPECT_TRUE(out_.empty());
  EXPECT_EQ(files_->pending(), 0U);
}

TEST_F(Sources, OfAnEarlierLifeThatAreOpenAreNotOpenedAgain) {
  have(2);
  files_->adopt(out_);
  (void)out_.drain();
  files_->on(SourcesReopened{}, out_);
  for (uint32_t i = 0; i < 2; ++i) {
    EXPECT_FALSE(files_->prepared());
    ASSERT_EQ(asked<FetchObject>().size(), 1U);
    ASSERT_TRUE(files_->on(ObjectFetched{.object = ObjectId(i), .found = i == 0}, out_));
  }
  EXPECT_TRUE(files_->prepared());
  files_->open_next(kExtent, sender_.get(), out_);
  const std::vector<OpenObject> opens = asked<OpenObject>();
  ASSERT_EQ(opens.size(), 1U);
  EXPECT_EQ(opens[0].object, ObjectId(1));
}

TEST_F(Sources, GeneratedBytesHaveNoDescriptorToAskFor) {
  have(2, true);
  files_->adopt(out_);
  (void)out_.drain();
  files_->on(SourcesReopened{}, out_);
  EXPECT_TRUE(files_->prepared());
  files_->open_next(kExtent, sender_.get(), out_);
  const std::vector<OpenObject> opens = asked<OpenObject>();
  ASSERT_EQ(opens.size(), 1U);
  EXPECT_EQ(opens[0].flags, uint32_t{board::kObjectGenerate});
  EXPECT_TRUE(opens[0].may_exist);
}

TEST_F(Sources, SixteenAreOpenAtATimeWhereThereArePacks) {
  have(40, false, 1);
  reopen();
  EXPECT_EQ(open_what_is_due(), 16U);
  have(40);
  settings_.open_objects_max = settings_.open_ahead = 64;
  reopen();
  EXPECT_EQ(open_what_is_due(), 40U);
}

TEST_F(Sources, APackIsClosedAsSoonAsThePeerHasIt) {
  have(20, false, 18);
  reopen();
  ASSERT_EQ(open_what_is_due(), 16U);
  const auto send = [this](uint32_t i) {
    sender_->on_event({.kind = board::EventKind::kExtentSent, .object = i, .length = kExtent, .digest = 5},
                      recovery::FlowRef());
    sender_->on_event({.kind = board::EventKind::kPartitionSent, .object = i, .length = kExtent},
                      recovery::FlowRef());
    EXPECT_TRUE(sender_->file_done(ObjectId(i), sender_->digest(ObjectId(i))));
  };
  send(3);
  files_->done(ObjectId(3), *sender_, out_);
  files_->done(ObjectId(3), *sender_, out_);
  std::vector<CloseObject> closes = asked<CloseObject>();
  ASSERT_EQ(closes.size(), 1U);
  EXPECT_EQ(closes[0].object, ObjectId(3));
  EXPECT_EQ(open_what_is_due(), 0U) << "the sixteenth waits for the first";
  files_->on(ObjectClosed{ObjectId(3)}, sender_.get(), out_);
  send(0);
  files_->done(ObjectId(0), *sender_, out_);
  ASSERT_EQ(asked<CloseObject>().size(), 1U);
  files_->open_next(kExtent, sender_.get(), out_);
  EXPECT_TRUE(out_.empty()) << "its number is free once it is closed";
  files_->on(ObjectClosed{ObjectId(0)}, sender_.get(), out_);
  const std::vector<OpenObject> opens = asked<OpenObject>();
  ASSERT_EQ(opens.size(), 1U);
  EXPECT_EQ(opens[0].object, ObjectId(16));
  EXPECT_TRUE(files_->on(ObjectOpened{.object = ObjectId(16)}, sender_.get(), out_));
  EXPECT_EQ(files_->pending(), 0U);
}

TEST_F(Sources, AFileStaysOpenUntilItsNumberIsNeeded) {
  have(3, false, 1);
  reopen();
  ASSERT_EQ(open_what_is_due(), 3U);
  files_->done(ObjectId(1), *sender_, out_);
  EXPECT_TRUE(out_.empty()) << "it is no pack";
  files_->done(ObjectId(0), *sender_, out_);
  EXPECT_EQ(asked<CloseObject>().size(), 1U);
  files_->halt();
  files_->on(ObjectClosed{ObjectId(0)}, sender_.get(), out_);
  files_->attempt_over();
  files_->done(ObjectId(0), *sender_, out_);
  EXPECT_TRUE(out_.empty()) << "nothing is open between attempts";
}

// The dataplane's table has a place for each of 64 numbers, the window is 16. Files that are one hole are
// done before their turn: those that were opened long before keep their places until they are done, and are
// closed then.
TEST_F(Sources, ANumberIsNotUsedAgainWhileAnOldFileHasIt) {
  have(80, false, 1);
  settings_.open_ahead = 200;
  reopen();
  ASSERT_EQ(open_what_is_due(), 16U);
  const auto send = [this](uint32_t i) {
    sender_->on_event({.kind = board::EventKind::kExtentSent, .object = i, .length = kExtent, .digest = 5},
                      recovery::FlowRef());
    sender_->on_event({.kind = board::EventKind::kPartitionSent, .object = i, .length = kExtent},
                      recovery::FlowRef());
    EXPECT_TRUE(sender_->file_done(ObjectId(i), sender_->digest(ObjectId(i))));
    files_->done(ObjectId(i), *sender_, out_);
  };
  for (uint32_t i = 0; i < 67; ++i) {
    if (i != 3) send(i);
  }
  files_->open_next(kExtent, sender_.get(), out_);
  std::vector<CloseObject> closes = asked<CloseObject>();
  EXPECT_EQ(closes.size(), 15U) << "all that are done and open";
  for (const CloseObject& each : closes) files_->on(ObjectClosed{each.object}, sender_.get(), out_);
  EXPECT_TRUE(out_.empty()) << "67 has the number of 3, which is not done";
  send(3);
  files_->open_next(kExtent, sender_.get(), out_);
  closes = asked<CloseObject>();
  ASSERT_EQ(closes.size(), 1U);
  EXPECT_EQ(closes[0].object, ObjectId(3));
  files_->on(ObjectClosed{ObjectId(3)}, sender_.get(), out_);
  const std::vector<OpenObject> opens = asked<OpenObject>();
  ASSERT_EQ(opens.size(), 1U);
  EXPECT_EQ(opens[0].object, ObjectId(67));
}

}  // namespace
}  // namespace sluice::transfer
