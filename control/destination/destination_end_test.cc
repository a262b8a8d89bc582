// A receiving end with the words of its source: whatever they are, they end the attempt or are cut to what
// there is.
// SPDX-License-Identifier: Apache-2.0
#include "control/destination/destination_end.h"

#include <gtest/gtest.h>

#include "control/leg/control_stream.h"
#include "control/transfer/peer_fixture.h"

namespace sluice::transfer::test {
namespace {

// An end that waits for the bytes of three files, and what it asks for.
class Receiving : public testing::Test {
 protected:
  Receiving() {
    settings_.open_objects_max = 2;
    std::vector<catalog::File> files;
    for (size_t i = 0; i < content_.sizes.size(); ++i) {
      files.push_back({.name = "f" + std::to_string(i), .shown = "in/f", .size_bytes = content_.sizes[i]});
    }
    end_ = std::make_unique<DestinationEnd>(settings_, agreement_);
    EXPECT_TRUE(*end_->files().take_offer(offer(), nullptr));
    end_->prepare(out_);
    EXPECT_TRUE(end_->on(FilesCreated{files}, out_));
    while (!end_->files().prepared()) {
      const auto effects = out_.drain();
      const auto* const open = std::get_if<OpenObject>(&effects.back());
      if (open == nullptr) break;
      EXPECT_TRUE(end_->files().on(ObjectOpened{.object = open->object}, out_));
    }
    stream_.call(out_);
    stream_.call_ended(true, 1);
    stream_.greeted();
    start_attempt(1);
    (void)out_.drain();
  }
  TransferOffer offer() const { return HonestPeer(Role::kSource, true, content_).offer(); }
  Status hear(const Message& message) { return end_->on_message(LegId(0), message, out_); }
  void start_attempt(uint64_t now_ns) {
    end_->start_attempt({.peer_name = peer_, .stream = stream_, .agreement = agreement_, .lanes = 1}, now_ns,
                        out_);
  }
  // The workers write nothing of what they are to give up.
  template <typename E>
  std::vector<E> asked() {
    std::vector<E> found;
    for (auto effects = out_.drain(); !effects.empty(); effects = out_.drain()) {
      for (const Effect& effect : effects) {
        if (const E* each = std::get_if<E>(&effect)) found.push_back(*each);
        const auto* const told = std::get_if<CommandLane>(&effect);
        if (told == nullptr || told->command.kind != board::CommandKind::kGiveUp) continue;
        EXPECT_TRUE(end_->on(FlowEvent{.event = {.kind = board::EventKind::kGivenUp,
                                                 .object = told->command.object.value(),
                                                 .tag = told->command.tag}},
                             out_));
      }
    }
    return found;
  }
  template <typename M>
  std::vector<M> said() {
    std::vector<M> found;
    for (const Send& send : asked<Send>()) {
      if (const M* each = std::get_if<M>(&send.message)) found.push_back(*each);
    }
    return found;
  }
  void arrive(uint32_t object, ExtentId extent) {
    const recovery::Range range = recovery::ExtentMap(content_.layout(ObjectId(object))).range_of(extent);
    EXPECT_TRUE(end_->on(FlowEvent{.event = {.kind = board::EventKind::kExtentWritten,
                                             .object = object,
                                             .offset = range.offset,
                                             .length = range.length,
                                             .digest = Content::crc(ObjectId(object), extent)}},
                         out_));
  }

  Settings settings_;
  Agreement agreement_{.lanes = 1, .extent_bytes = kExtent, .partition_bytes = 1U << 20};
  Content content_{{2 * kExtent, 10, 10}};
  const std::string peer_ = "alpha";
  ControlStream stream_{LegId(0)};
  Effects out_;
  std::unique_ptr<DestinationEnd> end_;
};

TEST_F(Receiving, WordsThatMakeNoSenseEndTheAttempt) {
  const std::vector<Message> wrong = {
      PartitionSent{.object = ObjectId(9), .range = {.offset = 0, .length = 1}},
      PartitionSent{.object = ObjectId(0), .range = {.offset = 0, .length = 1}, .lane = LaneId(1)},
      PartitionSent{.object = ObjectId(0), .range = {.offset = 2 * kExtent, .length = 1}},
      PartitionSent{.object = ObjectId(0), .range = {.offset = 1, .length = UINT64_MAX}},
      FileDigest{.object = ObjectId(9)},
      FileDigest{.object = ObjectId(1), .size_bytes = 11},
      SessionDone{},
      Need{},
      PartitionDone{},
      ObjectState{},
      FileDone{},
      Hello{},
      Specification{},
      TransferOffer{},
      TransferReady{},
      TransferRequest{},
      SpecificationSet{},
  };
  for (const Message& message : wrong) {
    const Status status = hear(message);
    ASSERT_FALSE(status) << message_name(message);
    EXPECT_EQ(status.error().code, ErrorCode::kIncompatible);
  }
  EXPECT_EQ(end_->bytes_done(), 0U);
}

TEST_F(Receiving, EventsOfNoObjectAndNoExtentAreIgnored) {
  for (const board::Event& event : {board::Event{.kind = board::EventKind::kExtentWritten, .object = 7},
                                    board::Event{.kind = board::EventKind::kExtentWritten, .length = 5},
                                    board::Event{.kind = board::EventKind::kExtentFailed, .object = 7},
                                    board::Event{.kind = board::EventKind::kMissingEnd, .object = 0}}) {
    EXPECT_TRUE(end_->on(FlowEvent{.event = event}, out_));
  }
  EXPECT_EQ(end_->bytes_done(), 0U);
}

TEST_F(Receiving, BytesThatDifferFromTheDigestAreNotStored) {
  arrive(1, ExtentId(0));
  (void)out_.drain();
  ASSERT_TRUE(hear(FileDigest{.object = ObjectId(1), .size_bytes = 10, .digest = 1})) << "all else goes on";
  ASSERT_TRUE(end_->on(Tick{}, 2, out_));
  size_t dropped = 0;
  for (const Effect& effect : out_.drain()) {
    EXPECT_FALSE(std::holds_alternative<FinishObject>(effect));
    dropped += std::holds_alternative<DropFile>(effect) ? 1 : 0;
  }
  EXPECT_EQ(dropped, 1U);
  ASSERT_TRUE(end_->on(FileDropped{.object = ObjectId(1)}, out_));
  const std::vector<WriteJournal> noted = asked<WriteJournal>();
  ASSERT_EQ(noted.size(), 1U);
  EXPECT_EQ(noted.front().durability, Durability::kPower) << "a restart must not make it anew";
  EXPECT_EQ(end_->catalog().files_of(ObjectId(1)).front().missing.names.front().failure,
            catalog::Failure::kDamaged);
}

TEST_F(Receiving, ADigestBeforeTheBytesWaitsForThem) {
  EXPECT_TRUE(
      hear(FileDigest{.object = ObjectId(1), .size_bytes = 10, .digest = content_.digest(ObjectId(1))}));
  EXPECT_TRUE(asked<FinishObject>().empty());
  arrive(1, ExtentId(0));
  EXPECT_EQ(asked<FinishObject>().size(), 1U);
}

TEST_F(Receiving, AFileIsToldDoneAfterItsNameIsNotedAndMakesRoom) {
  arrive(0, ExtentId(1));
  arrive(0, ExtentId(0));
  EXPECT_TRUE(hear(
      FileDigest{.object = ObjectId(0), .size_bytes = 2 * kExtent, .digest = content_.digest(ObjectId(0))}));
  EXPECT_EQ(asked<FinishObject>().size(), 1U);
  EXPECT_TRUE(end_->on(ObjectFinished{.object = ObjectId(0)}, out_));
  const std::vector<WriteJournal> record = asked<WriteJournal>();
  ASSERT_EQ(record.size(), 1U);
  EXPECT_EQ(record[0].durability, Durability::kPower);
  EXPECT_EQ(record[0].batch.files.front().record.state, catalog::FileState::kFinishing);
  EXPECT_EQ(record[0].batch.files.front().record.digest, content_.digest(ObjectId(0)));
  EXPECT_TRUE(end_->on(JournalWritten{.entry = Entry::kFinishing, .object = ObjectId(0)}, out_));
  EXPECT_EQ(asked<NameObject>().size(), 1U);
  EXPECT_TRUE(end_->on(ObjectNamed{.object = ObjectId(0)}, out_));
  EXPECT_EQ(said<FileDone>().size(), 0U);
  EXPECT_TRUE(end_->on(JournalWritten{.entry = Entry::kNamed, .object = ObjectId(0)}, out_));
  const std::vector<Effect> effects = out_.drain();
  ASSERT_EQ(effects.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<CloseObject>(effects[0]))
      << "its number is free before the source hears";
  EXPECT_TRUE(std::holds_alternative<Send>(effects[1]));
  EXPECT_TRUE(end_->done(ObjectId(0)));
  EXPECT_FALSE(end_->complete());
}

// It stands there, and a loss of power may take it back: it would be wrong to call it failed, or done.
TEST_F(Receiving, ANameThatWasGivenAndIsNotCertainIsNoFailure) {
  arrive(1, ExtentId(0));
  EXPECT_TRUE(
      hear(FileDigest{.object = ObjectId(1), .size_bytes = 10, .digest = content_.digest(ObjectId(1))}));
  EXPECT_EQ(asked<FinishObject>().size(), 1U);
  EXPECT_TRUE(end_->on(ObjectFinished{.object = ObjectId(1)}, out_));
  EXPECT_TRUE(end_->on(JournalWritten{.entry = Entry::kFinishing, .object = ObjectId(1)}, out_));
  EXPECT_EQ(asked<NameObject>().size(), 1U);
  const Error bad{ErrorCode::kStorage, "its directory could not be synced"};
  EXPECT_EQ(end_->on(ObjectNamed{.object = ObjectId(1), .status = bad, .given = true}, out_).error().code,
            ErrorCode::kStorage)
      << "the attempt ends, and the next one tries again";
  end_->attempt_over();
  start_attempt(2);
  (void)out_.drain();
  EXPECT_EQ(hear(ObjectFailed{.object = ObjectId(1)}).error().code, ErrorCode::kIntegrity);
  EXPECT_TRUE(asked<DropFile>().empty());
}

TEST_F(Receiving, WhatItHasIsSaidInPartsAndThenThatItWasAll) {
  arrive(0, ExtentId(1));
  end_->send_states(LegId(0), out_);
  const std::vector<ObjectState> states = said<ObjectState>();
  ASSERT_EQ(states.size(), 2U);
  EXPECT_EQ(states[0].held, (std::vector<recovery::Range>{{.offset = kExtent, .length = kExtent}}));
  EXPECT_TRUE(states[1].end);
}

TEST_F(Receiving, WhatItIsToldManyTimesCostsItNothingMore) {
  for (int i = 0; i < 10'000; ++i) {
    EXPECT_TRUE(hear(PartitionSent{.object = ObjectId(0), .range = content_.all(ObjectId(0))}));
    EXPECT_TRUE(hear(FileDigest{.object = ObjectId(0), .size_bytes = 2 * kExtent, .digest = 1}));
    arrive(1, ExtentId(0));
  }
  EXPECT_TRUE(out_.empty());
  EXPECT_EQ(end_->pending(), 0U);
  EXPECT_EQ(end_->bytes_done(), 10U);
}

}  // namespace
}  // namespace sluice::transfer::test
