// A sending end with the words of its destination: whatever they are, they end the attempt or are cut to what
// there is.
// SPDX-License-Identifier: Apache-2.0
#include "control/source/source_end.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "control/source/sending_fixture.h"

namespace sluice::transfer::test {
namespace {

// An end on one lane, whose peer has nothing of its three files yet.
class Sending : public SendingFixture {
 protected:
  explicit Sending(size_t files = 3, uint32_t lanes = 1)
      : SendingFixture({std::vector<uint64_t>(files, 4 * kExtent)}) {
    agreement_.lanes = lanes;
    start({.name = "f", .shown = "/from/f", .path = "/from/f"});
    EXPECT_EQ(asked<OpenObject>().size(), 1U);
    EXPECT_TRUE(end_->on(ObjectOpened{.object = ObjectId(0)}, out_));
    EXPECT_EQ(asked<OpenObject>().size(), 1U);
  }
  void say_all() { EXPECT_TRUE(hear(ObjectState{.end = true})); }
  template <typename E>
  std::vector<E> asked() {
    std::vector<E> found;
    for (const Effect& effect : out_.drain()) {
      if (const E* each = std::get_if<E>(&effect)) found.push_back(*each);
    }
    return found;
  }
};

TEST_F(Sending, NothingLeavesBeforeThePeerHasSaidWhatItHas) {
  EXPECT_TRUE(asked<CommandLane>().empty());
  say_all();
  EXPECT_GE(asked<CommandLane>().size(), 1U);
}

// Nothing is made that grows with the size that a file says it has.
TEST_F(Sending, MoreBytesThanASessionTakesAreRefusedAtOnce) {
  std::vector<catalog::File> files(3, {.name = "f", .path = "/from/f", .size_bytes = uint64_t{1} << 60});
  const Result<SourceEnd> end = SourceEnd::make(settings_, agreement_, files);
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::kResources);
}

TEST_F(Sending, WhatThePeerHasIsNotSent) {
  EXPECT_TRUE(hear(ObjectState{.object = ObjectId(0), .held = {{.offset = 0, .length = 3 * kExtent}}}));
  say_all();
  const std::vector<CommandLane> commands = asked<CommandLane>();
  ASSERT_GE(commands.size(), 1U);
  EXPECT_EQ(commands[0].command.range, (recovery::Range{.offset = 3 * kExtent, .length = kExtent}));
}

TEST_F(Sending, WordsOfObjectsAndLanesThatThereAreNotEndTheAttempt) {
  const ObjectId none(3);
  for (const Message& message :
       {Message(Need{.object = none}), Message(Need{.lane = LaneId(1)}),
        Message(PartitionDone{.object = none}), Message(ObjectState{.object = none}),
        Message(ObjectState{.object = none, .done = true}), Message(FileDone{.object = none})}) {
    const Status status = hear(message);
    ASSERT_FALSE(status) << message_name(message);
    EXPECT_EQ(status.error().code, ErrorCode::kIncompatible);
  }
}

TEST_F(Sending, TheEndBeforeEachFileIsDoneIsAnError) {
  say_all();
  for (uint32_t i = 0; i < 3; ++i) {
    const Status status = hear(SessionDone{});
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kIncompatible);
    EXPECT_FALSE(end_->peer_ended());
    EXPECT_TRUE(hear(FileDone{.object = ObjectId(i), .digest = content_.digest(ObjectId(i))}));
  }
  EXPECT_TRUE(hear(SessionDone{}));
  EXPECT_TRUE(end_->peer_ended());
}

TEST_F(Sending, WordsThatNoDestinationSaysEndTheAttempt) {
  const std::vector<Message> wrong = {Hello{},         Specification{}, SpecificationSet{}, TransferRequest{},
                                      TransferOffer{}, TransferReady{}, PartitionSent{},    FileDigest{}};
  for (const Message& message : wrong) {
    EXPECT_FALSE(hear(message)) << message_name(message);
  }
}

TEST_F(Sending, RangesBeyondWhatThereIsAreCutOrIgnored) {
  say_all();
  (void)out_.drain();
  const std::vector<recovery::Range> odd = {{.offset = UINT64_MAX, .length = 2},
                                            {.offset = 4 * kExtent, .length = 1},
                                            {.offset = 0, .length = 0},
                                            {.offset = 5, .length = UINT64_MAX}};
  for (const ObjectId object : {ObjectId(0), ObjectId(2)}) {
    EXPECT_TRUE(hear(Need{.object = object, .ranges = odd, .lane = LaneId(0)}));
    EXPECT_TRUE(hear(PartitionDone{.object = object, .ranges = odd}));
    EXPECT_TRUE(hear(ObjectState{.object = object, .held = odd}));
  }
  for (const CommandLane& command : asked<CommandLane>()) {
    EXPECT_EQ(command.command.flow, FlowRef());
    EXPECT_LE(command.command.range.end(), 4 * kExtent);
    EXPECT_NE(command.command.range.length, 0U);
  }
}

TEST_F(Sending, DoneBeforeItsBytesWereReadHereIsNotBelieved) {
  say_all();
  EXPECT_TRUE(hear(FileDone{.object = ObjectId(0), .digest = 1}));
  EXPECT_FALSE(end_->done(ObjectId(0)));
  (void)out_.drain();
  // Its bytes are read again, and are others than the peer says that it has.
  ASSERT_TRUE(end_->on(Tick{}, 2, out_));
  const std::vector<ReadExtents> reads = asked<ReadExtents>();
  ASSERT_EQ(reads.size(), 1U);
  ASSERT_EQ(reads[0].ranges.size(), 4U);
  std::vector<uint64_t> crcs;
  for (ExtentId extent; extent < ExtentId(4); ++extent) crcs.push_back(Content::crc(ObjectId(0), extent));
  ASSERT_TRUE(end_->on(ExtentsRead{.object = ObjectId(0), .first = ExtentId(0), .crcs = crcs}, out_));
  const std::vector<CheckSource> checks = asked<CheckSource>();
  ASSERT_EQ(checks.size(), 1U);
  ASSERT_TRUE(checks[0].otherwise.has_value());
  EXPECT_EQ(checks[0].otherwise->code, ErrorCode::kIntegrity);
  EXPECT_FALSE(end_->done(ObjectId(0)));
}

// The simulator's seed 7128525. A former control told its digest, so that the destination has named it.
TEST_F(Sending, AFileThatIsNamedThereAndUnreadableHereIsNotCalledGone) {
  say_all();
  EXPECT_TRUE(end_->on(
      FlowEvent{.event = {.kind = board::EventKind::kExtentFailed, .object = 0, .value = EIO}}, out_));
  const std::vector<CheckSource> checks = asked<CheckSource>();
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_TRUE(end_->on(SourceChecked{.object = ObjectId(0), .otherwise = checks[0].otherwise}, out_));
  const Status status = hear(FileDone{.object = ObjectId(0), .digest = 1});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kIntegrity);
  EXPECT_NE(status.error().message.find("stands under its name"), std::string::npos);
}

// The simulator's seed 5001598. The destination has lost its journal, and waits for a file that it gave up.
TEST_F(Sending, WhatFailedIsSaidAgainToWhoDoesNotListItAnyMore) {
  say_all();
  EXPECT_TRUE(hear(ObjectFailed{.object = ObjectId(0), .names = {{.failure = catalog::Failure::kChanged}}}));
  end_->on_new_stream(LegId(0));
  (void)out_.drain();
  say_all();
  std::vector<ObjectId> said;
  for (const Send& each : asked<Send>()) {
    if (const auto* failed = std::get_if<ObjectFailed>(&each.message)) said.push_back(failed->object);
  }
  EXPECT_EQ(said, std::vector<ObjectId>{ObjectId(0)});
}

// A control that ends before its journal has the CRCs of what it sent reads the object again, and finds
// another digest if its files have changed since.
TEST_F(Sending, TheJournalHearsOfAnObjectSoonAfterItsDigestWasSaid) {
  say_all();
  const board::FlowSlot slot{};
  const auto lanes = std::to_array({&slot});
  const auto journalled = [&](uint64_t now_ns) {
    (void)out_.drain();
    EXPECT_TRUE(end_->on(Tick{.leg = LegId(0), .lanes = lanes}, now_ns, out_));
    return asked<WriteJournal>().size();
  };
  for (uint64_t i = 0; i < 4; ++i) {
    EXPECT_EQ(journalled(2), 0U) << "it hears of them now and then";
    const board::Event event{.kind = board::EventKind::kExtentSent,
                             .object = 0,
                             .offset = i * kExtent,
                             .length = kExtent,
                             .digest = 5};
    EXPECT_TRUE(end_->on(FlowEvent{.leg = LegId(0), .lane = LaneId(0), .event = event}, out_));
  }
  ASSERT_EQ(asked<CheckSource>().size(), 1U);
  EXPECT_TRUE(end_->on(SourceChecked{.object = ObjectId(0)}, out_));
  EXPECT_EQ(journalled(3), 1U);
}

TEST_F(Sending, APeerThatNeedsMoreThanWorkersTakeIsAskedToAskAgain) {
  say_all();
  ASSERT_TRUE(end_->on(Tick{.command_backlog = 1U << 20}, 2, out_));
  (void)out_.drain();
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(hear(Need{.object = ObjectId(0), .ranges = {{.offset = 1, .length = 5}}}));
  }
  EXPECT_TRUE(asked<CommandLane>().empty());
  ASSERT_TRUE(end_->on(Tick{}, 3, out_));
  (void)out_.drain();
  EXPECT_TRUE(hear(Need{.object = ObjectId(0), .ranges = {{.offset = 1, .length = 5}}}));
  EXPECT_EQ(asked<CommandLane>().size(), 1U);
}

TEST_F(Sending, NoMoreObjectsAreOpenThanTheDataplaneKnows) {
  EXPECT_TRUE(end_->on(ObjectOpened{.object = ObjectId(1)}, out_));
  EXPECT_TRUE(asked<OpenObject>().empty()) << "until the first is done";
}

// Four lanes, none of whose long datagrams arrive: all share the little that the law leaves, and the probes
// that find out what does arrive would take longer than the peer waits.
class OverANarrowPath : public Sending {
 protected:
  static constexpr uint32_t kLanes = 4;
  OverANarrowPath() : Sending(3, kLanes) {
    for (auto& slot : slots_) slot = std::make_unique<board::FlowSlot>();
    say_all();
  }
  // The rates of the lanes after so many milliseconds, if nothing that is sent arrives.
  std::array<uint64_t, kLanes> rates_after(int milliseconds) {
    for (int i = 0; i < milliseconds; ++i) {
      now_ns_ += 1'000'000;
      std::vector<const board::FlowSlot*> lanes;
      for (auto& slot : slots_) {
        slot->state.chunks += 10;
        slot->state.statuses += 1;
        slot->state.rtt_ns = 1'000'000;
        lanes.push_back(slot.get());
      }
      EXPECT_TRUE(end_->on(Tick{.leg = LegId(0), .lanes = lanes}, now_ns_, out_));
      for (const SetRate& each : asked<SetRate>()) rates_[each.lane.value()] = each.rate_bps;
    }
    return rates_;
  }

  std::array<std::unique_ptr<board::FlowSlot>, kLanes> slots_;
  std::array<uint64_t, kLanes> rates_{};
  uint64_t now_ns_ = 1;
};

TEST_F(OverANarrowPath, TheLaneThatSearchesHasTheRateOfAllUntilItsProbesHaveLeft) {
  const auto alike = rates_after(2);
  EXPECT_EQ(alike[0], alike[3]);
  const auto searching = rates_after(1000);
  EXPECT_GT(searching[0], 0U);
  for (const uint32_t other : {1, 2, 3}) EXPECT_GT(searching[0], 50 * searching[other]);
  slots_[0]->state.padded_probes += 1000;
  const auto after = rates_after(2);
  EXPECT_EQ(after[0], after[3]);
}

}  // namespace
}  // namespace sluice::transfer::test
