// Every message of a peer at every point of a handshake, and while data moves: which is due there, which
// waits for its turn, and which ends the session (docs/WIRE.md 2.1). The table is written down here once
// more, as the document has it.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

using Names = std::set<std::string_view>;

// One of each kind; Heartbeat, Failure and Pause are taken anywhere.
std::vector<Message> words() {
  return {make_hello(kId),
          Specification{},
          SpecificationSet{},
          TransferRequest{.source_paths = {"x"}},
          TransferOffer{.files = {{.name = "x"}}, .destination = "in/"},
          TransferReady{},
          ObjectState{.end = true},
          PartitionSent{.range = {.offset = 0, .length = kExtent}},
          PartitionDone{.ranges = {{.offset = 0, .length = kExtent}}},
          Need{.ranges = {{.offset = 0, .length = kExtent}}},
          FileDigest{.size_bytes = Scene{}.sizes[0]},
          FileDone{},
          Want{},  // these three only where parts were agreed upon
          ExtentDigests{},
          DigestsWanted{},
          SessionDone{}};
}

// Where the handshake stands still: before this message of the peer, or before this answer.
struct Halt {
  HandshakePhase phase;
  std::function<void(World&)> hold;
  Names due;    // handled now
  Names later;  // waits, and is right when its turn comes
};

Halt before(HandshakePhase phase, const char* message) {
  const auto hold = [message](World& world) {
    world.mute = silent(message);
    world.mute.insert("ObjectState");
  };
  return {phase, hold, {message}, {}};
}
template <typename E>
Halt answering(HandshakePhase phase, Names later = {}) {
  return {phase, [](World& world) { world.hold<E>(); }, {}, std::move(later)};
}
Halt journalling(Names later) {
  return {HandshakePhase::kJournal, [](World& world) { world.hold(Entry::kAgreed); }, {}, std::move(later)};
}

const Names kOfDestination = {"ObjectState", "PartitionDone", "Need", "FileDone"};
const Names kOfSource = {"PartitionSent", "FileDigest"};

std::vector<Halt> halts_of(const Scene& scene) {
  const bool source = scene.role == Role::kSource;
  std::vector<Halt> halts;
  if (scene.initiator) {
    halts.push_back(before(HandshakePhase::kHello, "Hello"));
    halts.push_back(before(HandshakePhase::kAnswer, "SpecificationSet"));
  } else {
    halts.push_back(before(HandshakePhase::kSpecification, "Specification"));
    halts.push_back(answering<ReserveFlows>(HandshakePhase::kFlows));
  }
  if (source) {
    if (!scene.initiator) halts.push_back(before(HandshakePhase::kRequest, "TransferRequest"));
    halts.push_back(answering<OpenSources>(HandshakePhase::kSources));
    halts.push_back(answering<ReserveBuffers>(HandshakePhase::kReadBuffers));
    halts.push_back(before(HandshakePhase::kReady, "TransferReady"));
    halts.push_back(journalling(kOfDestination));
    halts.push_back(answering<OpenFlow>(HandshakePhase::kOpening, kOfDestination));
  } else {
    if (!scene.initiator) halts.push_back(answering<ReserveBuffers>(HandshakePhase::kCredit));
    halts.push_back(before(HandshakePhase::kOffer, "TransferOffer"));
    halts.push_back(answering<CreateFiles>(HandshakePhase::kFiles, kOfSource));
    halts.push_back(journalling(kOfSource));
    halts.push_back(answering<OpenFlow>(HandshakePhase::kOpening, kOfSource));
  }
  return halts;
}

bool refused(const World& world) {
  const std::vector<Failure> said = world.said<Failure>();
  return !said.empty() && said.back().code == static_cast<uint32_t>(ErrorCode::kIncompatible);
}

class WordsInTurn : public testing::TestWithParam<size_t> {
 protected:
  Scene scene_ = every_scene()[GetParam()];
};

TEST_P(WordsInTurn, WhatIsNotDueEndsTheSessionAtOnceOrWhenItsTurnComes) {
  for (const Halt& halt : halts_of(scene_)) {
    for (const Message& word : words()) {
      SCOPED_TRACE(testing::Message() << name_of(scene_) << ", phase " << static_cast<int>(halt.phase) << ", "
                                      << message_name(word));
      if (halt.due.contains(message_name(word))) continue;
      World world(scene_);
      world.data = false;
      halt.hold(world);
      world.start();
      ASSERT_EQ(world.handshake_phase(), halt.phase);
      world.hear(word);
      if (halt.due.empty()) {
        EXPECT_FALSE(refused(world)) << "it waits";
        EXPECT_EQ(world.handshake_phase(), halt.phase);
        world.release();
      }
      EXPECT_EQ(refused(world), !halt.later.contains(message_name(word)));
      if (!refused(world)) continue;
      EXPECT_EQ(world.state(), ViewState::kFailed);
      EXPECT_EQ(world.error(), ErrorCode::kIncompatible);
    }
  }
}

TEST_P(WordsInTurn, WhileDataMovesOnlyTheOtherEndsWordsAreTaken) {
  const Names& taken = scene_.role == Role::kSource ? kOfDestination : kOfSource;
  for (const Message& word : words()) {
    SCOPED_TRACE(testing::Message() << name_of(scene_) << ", " << message_name(word));
    const auto world = moving(scene_);
    world->hear(word);
    EXPECT_EQ(refused(*world), !taken.contains(message_name(word)));
  }
}

TEST_P(WordsInTurn, WhatSpeaksOfNothingThatThereIsEndsTheSession) {
  const ObjectId none(static_cast<uint32_t>(scene_.sizes.size()));
  const recovery::Range some{.offset = 0, .length = 1};
  const recovery::Range beyond{.offset = 0, .length = scene_.sizes[0] + 1};
  const std::vector<Message> to_source = {
      ObjectState{.object = none, .held = {some}},          ObjectState{.object = none, .done = true},
      PartitionDone{.object = none, .ranges = {some}},      Need{.object = none, .ranges = {some}},
      Need{.ranges = {some}, .lane = LaneId(scene_.lanes)}, FileDone{.object = none}};
  const std::vector<Message> to_destination = {PartitionSent{.object = none, .range = some},
                                               PartitionSent{.range = some, .lane = LaneId(scene_.lanes)},
                                               PartitionSent{.range = beyond},
                                               PartitionSent{},
                                               FileDigest{.object = none},
                                               FileDigest{.size_bytes = scene_.sizes[0] + 1}};
  for (const Message& word : scene_.role == Role::kSource ? to_source : to_destination) {
    SCOPED_TRACE(testing::Message() << name_of(scene_) << ", " << message_name(word));
    const auto world = moving(scene_);
    world->hear(word);
    EXPECT_TRUE(refused(*world));
    EXPECT_EQ(world->error(), ErrorCode::kIncompatible);
  }
}

TEST_P(WordsInTurn, RangesThatRunOverTheLargestNumberEndTheSession) {
  const recovery::Range over{.offset = UINT64_MAX - 1, .length = 2};
  const std::vector<Message> all = {ObjectState{.held = {over}}, PartitionSent{.range = over},
                                    PartitionDone{.ranges = {over}}, Need{.ranges = {over}}};
  for (const Message& word : all) {
    SCOPED_TRACE(testing::Message() << name_of(scene_) << ", " << message_name(word));
    const auto world = moving(scene_);
    world->hear(word);
    EXPECT_TRUE(refused(*world));
  }
}

INSTANTIATE_TEST_SUITE_P(EveryScene, WordsInTurn, testing::Range<size_t>(0, 4));

}  // namespace
}  // namespace sluice::transfer::test
