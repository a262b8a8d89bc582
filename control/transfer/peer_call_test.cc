// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/peer_call.h"

#include <gtest/gtest.h>

#include "control/leg/negotiation.h"

namespace sluice::transfer {
namespace {

const std::string kId(32, 'c');

Record record_with(RecordState state, Role role = Role::kDestination) {
  return {.id = kId, .role = role, .state = state, .legs = {{.peer = "there"}}};
}

Hello inquiry() {
  Hello hello = make_hello(kId);
  hello.inquires = true;
  return hello;
}

Hello hello(bool ended = false) {
  Hello hello = make_hello(kId);
  hello.ended = ended;
  return hello;
}

CallKind of(const UnderId& known, bool ended = false, const std::string& peer = "there") {
  const Decision decision = receive_call(peer, hello(ended), known);
  EXPECT_EQ(decision.error.has_value(), decision.kind == CallKind::kRefused);
  EXPECT_TRUE(!decision.error || decision.error->code == ErrorCode::kIncompatible);
  return decision.kind;
}

TEST(CallKind, AHelloThatNobodyUnderstandsIsRefused) {
  Hello old = hello();
  old.version_max = old.version_min = kProtocolVersion + 1;
  EXPECT_EQ(receive_call("there", old, {}).kind, CallKind::kRefused);
  EXPECT_EQ(receive_call("there", make_hello("short"), {}).kind, CallKind::kRefused);
}

TEST(CallKind, AnUnknownSessionIsNewUnlessItHasEnded) {
  EXPECT_EQ(of({}), CallKind::kNew);
  EXPECT_EQ(of({}, true), CallKind::kNothing);
}

// It holds the locks of its files: what began now would find them in use.
TEST(CallKind, WhatIsEndingIsCalledForLater) {
  EXPECT_EQ(of({.ending = true}), CallKind::kLater);
  EXPECT_EQ(of({.ending = true}, true), CallKind::kNothing);
  EXPECT_EQ(of({.ending = true, .peers = {"there"}}), CallKind::kLater);
  EXPECT_EQ(of({.ending = true, .peers = {"there"}}, false, "elsewhere"), CallKind::kRefused);
  const Record running = record_with(RecordState::kActive);
  EXPECT_EQ(of({.record = &running, .ending = true}), CallKind::kLater);
  const Record done = record_with(RecordState::kSucceeded);
  EXPECT_EQ(of({.record = &done, .ending = true}), CallKind::kEnded);
}

TEST(CallKind, ALegThatASessionDoesNotHaveHereIsRefused) {
  Hello second = hello();
  second.leg = 1;
  EXPECT_EQ(receive_call("there", second, {}).kind, CallKind::kRefused);
  EXPECT_EQ(receive_call("there", second, {.active = true, .peers = {"there"}}).kind, CallKind::kRefused);
  EXPECT_EQ(receive_call("there", second, {.active = true, .peers = {"there", "there"}}).kind,
            CallKind::kKnown);
}

TEST(CallKind, AnActiveOneTakesTheCallOfItsPeerOnly) {
  const UnderId active{.active = true, .peers = {"there"}};
  EXPECT_EQ(of(active), CallKind::kKnown);
  EXPECT_EQ(of(active, true), CallKind::kKnown);
  EXPECT_EQ(of(active, false, "elsewhere"), CallKind::kRefused);
  EXPECT_EQ(of({.active = true, .initiator = true, .peers = {"there"}}), CallKind::kRefused)
      << "whoever began it calls";
}

TEST(CallKind, OneInTheJournalOnlyIsThatOfItsPeerToo) {
  for (const RecordState state : {RecordState::kActive, RecordState::kPaused, RecordState::kSucceeded,
                                  RecordState::kFailed, RecordState::kCancelled}) {
    Record record = record_with(state);
    EXPECT_EQ(of({.record = &record}), has_ended(state) ? CallKind::kEnded : CallKind::kNew);
    EXPECT_EQ(of({.record = &record}, true), has_ended(state) ? CallKind::kEnded : CallKind::kNothing);
    EXPECT_EQ(of({.record = &record}, false, "elsewhere"), CallKind::kRefused);
    EXPECT_EQ(of({.record = &record}, true, "elsewhere"), CallKind::kNothing)
        << "as for one that is not there";
    record.initiator = true;
    EXPECT_EQ(of({.record = &record}), CallKind::kRefused);
  }
}

TEST(CallKind, WhoeverWasCalledMayAskForItAndOpensNothing) {
  const auto ask = [](const UnderId& known, const std::string& peer = "there") {
    return receive_call(peer, inquiry(), known).kind;
  };
  EXPECT_EQ(ask({}), CallKind::kUnknown);
  EXPECT_EQ(ask({.active = true, .initiator = true, .peers = {"there"}}), CallKind::kKnows);
  EXPECT_EQ(ask({.active = true, .initiator = true, .peers = {"there"}}, "elsewhere"), CallKind::kUnknown);
  EXPECT_EQ(ask({.active = true, .peers = {"there"}}), CallKind::kRefused)
      << "it is this node that was called";
  for (const RecordState state : {RecordState::kActive, RecordState::kPaused, RecordState::kSucceeded,
                                  RecordState::kFailed, RecordState::kCancelled}) {
    Record record = record_with(state);
    EXPECT_EQ(ask({.record = &record}), CallKind::kRefused);
    record.initiator = true;
    EXPECT_EQ(ask({.record = &record}), has_ended(state) ? CallKind::kEnded : CallKind::kKnows);
    EXPECT_EQ(ask({.record = &record}, "elsewhere"), CallKind::kUnknown) << "as for one that is not there";
  }
}

// Whichever of them it is, in the journal and in memory. The others are as good as nobody.
TEST(CallKind, EachOfSeveralPeersIsAnsweredForItsOwnLeg) {
  const std::vector<std::string> peers = {"first", "there", "third"};
  Record record{.id = kId, .initiator = true, .role = Role::kDestination};
  for (const std::string& peer : peers) record.legs.push_back({.peer = peer});
  for (const std::string& peer : peers) {
    SCOPED_TRACE(peer);
    record.state = RecordState::kActive;
    EXPECT_EQ(receive_call(peer, inquiry(), {.record = &record}).kind, CallKind::kKnows);
    EXPECT_EQ(
        receive_call(peer, inquiry(), {.record = &record, .active = true, .initiator = true, .peers = peers})
            .kind,
        CallKind::kKnows);
    record.state = RecordState::kSucceeded;
    EXPECT_EQ(receive_call(peer, inquiry(), {.record = &record}).kind, CallKind::kEnded);
    EXPECT_EQ(receive_call(peer, inquiry(), {.record = &record, .initiator = true, .peers = peers}).kind,
              CallKind::kEnded);
  }
  EXPECT_EQ(receive_call("elsewhere", inquiry(), {.record = &record, .initiator = true, .peers = peers}).kind,
            CallKind::kUnknown);
  Hello second = inquiry();
  second.leg = 1;
  EXPECT_EQ(receive_call("there", second, {.active = true, .initiator = true, .peers = peers}).kind,
            CallKind::kRefused)
      << "it has one leg to each";
}

// One that is paused calls nobody, and would wait for ever.
TEST(CallKind, WhoeverWasCalledTellsHowItHasEndedThere) {
  const auto tell = [](const UnderId& known, const std::string& peer = "there") {
    Hello word = inquiry();
    word.ended = true;
    return receive_call(peer, word, known).kind;
  };
  EXPECT_EQ(tell({}), CallKind::kNothing);
  EXPECT_EQ(tell({.active = true, .initiator = true, .peers = {"there"}}), CallKind::kKnown);
  EXPECT_EQ(tell({.active = true, .initiator = true, .peers = {"there"}}, "elsewhere"), CallKind::kNothing);
  EXPECT_EQ(tell({.active = true, .peers = {"there"}}), CallKind::kNothing)
      << "it is this node that was called";
  for (const RecordState state : {RecordState::kActive, RecordState::kPaused, RecordState::kSucceeded,
                                  RecordState::kFailed, RecordState::kCancelled}) {
    Record record = record_with(state);
    EXPECT_EQ(tell({.record = &record}), CallKind::kNothing);
    record.initiator = true;
    EXPECT_EQ(tell({.record = &record}), has_ended(state) ? CallKind::kEnded : CallKind::kKnows);
  }
}

TEST(CallKind, TheAnswerToAnInquirySaysWhetherItIsKnown) {
  const std::vector<Message> knows = knows_answer(inquiry(), false);
  ASSERT_EQ(knows.size(), 1U);
  EXPECT_FALSE(std::get<Hello>(knows[0]).paused);
  EXPECT_TRUE(std::get<Hello>(knows_answer(inquiry(), true)[0]).paused);
  EXPECT_TRUE(std::get<Hello>(knows[0]).known);
  EXPECT_FALSE(std::get<Hello>(knows[0]).ended);
  const std::vector<Message> unknown = unknown_answer(inquiry());
  ASSERT_EQ(unknown.size(), 2U);
  EXPECT_TRUE(std::get<Hello>(unknown[0]).ended);
  EXPECT_EQ(std::get<Failure>(unknown[1]).code, static_cast<uint32_t>(ErrorCode::kPeerUnreachable));
}

TEST(CallKind, OneThatIsOnlyRememberedIsThatOfItsPeerToo) {
  EXPECT_EQ(of({.peers = {"there"}}), CallKind::kNew) << "it begins anew";
  EXPECT_EQ(of({.peers = {"there"}}, false, "elsewhere"), CallKind::kRefused);
  EXPECT_EQ(of({.initiator = true, .peers = {"there"}}), CallKind::kRefused);
}

TEST(CallKind, APeerDoesNotLearnWhatBecameOfTheSessionOfAnother) {
  const Record running = record_with(RecordState::kActive);
  const Record ended = record_with(RecordState::kFailed);
  const UnderId all[] = {{.active = true, .peers = {"there"}},
                         {.peers = {"there"}},
                         {.record = &running},
                         {.record = &ended},
                         {.record = &running, .active = true, .peers = {"there"}}};
  for (const UnderId& known : all) {
    const Decision decision = receive_call("elsewhere", hello(), known);
    ASSERT_EQ(decision.kind, CallKind::kRefused);
    EXPECT_EQ(decision.error->message, "the id of this session cannot be used here: begin another session");
    EXPECT_NE(decision.reason.find(kId), std::string::npos) << "the log says it";
    EXPECT_EQ(receive_call("elsewhere", hello(true), known).kind,
              receive_call("elsewhere", hello(true), {}).kind);
  }
}

TEST(EndedAnswer, OfADestinationThatSucceededTellsOfEachFileThenOfTheEnd) {
  Saved saved{.record = record_with(RecordState::kSucceeded)};
  saved.files = {{.name = "a", .digest = 11}, {.name = "b", .digest = 22}};
  const std::vector<Message> answer = ended_answer(saved);
  ASSERT_EQ(answer.size(), 5U);
  EXPECT_TRUE(std::get<Hello>(answer[0]).ended);
  EXPECT_EQ(std::get<Hello>(answer[0]).session_id, kId);
  EXPECT_EQ(std::get<ObjectState>(answer[1]).digest, 11U);
  EXPECT_TRUE(std::get<ObjectState>(answer[2]).done);
  EXPECT_EQ(std::get<ObjectState>(answer[2]).object, ObjectId(1));
  EXPECT_TRUE(std::get<ObjectState>(answer[3]).end);
  EXPECT_EQ(std::get<SessionDone>(answer[4]).files, 2U);
}

TEST(EndedAnswer, SaysWhatOfAPackDidNotArrive) {
  Saved saved{.record = record_with(RecordState::kSucceeded)};
  saved.record.role = Role::kDestination;
  saved.files = {{.digest = 11, .kind = catalog::FileKind::kPack}, {.digest = 22}};
  saved.files[0].missing.note("t/a", catalog::Failure::kExists);
  const std::vector<Message> answer = ended_answer(saved);
  ASSERT_EQ(answer.size(), 6U);
  EXPECT_TRUE(std::get<ObjectState>(answer[1]).done);
  const FileDone& done = std::get<FileDone>(answer[2]);
  EXPECT_EQ(done.object, ObjectId(0));
  EXPECT_EQ(done.digest, 11U);
  EXPECT_EQ(done.missing.failed, 1U);
  EXPECT_EQ(done.missing.names.at(0).path, "t/a");
}

TEST(EndedAnswer, OfASourceThatSucceededIsItsLastWord) {
  const std::vector<Message> answer =
      ended_answer({.record = record_with(RecordState::kSucceeded, Role::kSource)});
  ASSERT_EQ(answer.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<SessionDone>(answer[1]));
}

TEST(EndedAnswer, OfAFailureSaysWhy) {
  for (const RecordState state : {RecordState::kFailed, RecordState::kCancelled}) {
    Saved saved{.record = record_with(state)};
    EXPECT_TRUE(std::holds_alternative<Failure>(ended_answer(saved)[1])) << "also where the journal lost it";
    saved.record.error = Error{ErrorCode::kIntegrity, "other bytes"};
    const std::vector<Message> answer = ended_answer(saved);
    ASSERT_EQ(answer.size(), 2U);
    EXPECT_EQ(std::get<Failure>(answer[1]).code, static_cast<uint32_t>(ErrorCode::kIntegrity));
    EXPECT_EQ(std::get<Failure>(answer[1]).message, "other bytes");
  }
}

TEST(NothingAnswer, SaysThatItHasEndedHereToo) {
  const std::vector<Message> answer = nothing_answer(hello(true));
  ASSERT_EQ(answer.size(), 1U);
  EXPECT_TRUE(std::get<Hello>(answer[0]).ended);
  EXPECT_EQ(std::get<Hello>(answer[0]).session_id, kId);
}

TEST(Failures, OfAPeerAreOfAKnownKind) {
  EXPECT_EQ(error_of("there", {.code = 9999}).code, ErrorCode::kInternal);
  EXPECT_EQ(error_of("there", {.code = 0}).code, ErrorCode::kInternal);
  EXPECT_EQ(error_of("there", failure_of({ErrorCode::kStalled, "x"})).code, ErrorCode::kStalled);
}

// WIRE 2.15. Whoever asks for it is not told that it has ended: its unfinished files would go.
TEST(CallKind, ASessionThatHasGoneElsewhereIsKnownAndPaused) {
  Record record = record_with(RecordState::kFailed);
  record.initiator = true;
  record.error = Error{ErrorCode::kMoved, "it goes on at gamma"};
  EXPECT_FALSE(moved_away(record));
  EXPECT_EQ(receive_call("there", inquiry(), {.record = &record}).kind, CallKind::kEnded);
  record.moved = Moved{.move = {}, .from = "", .to = "gamma", .epoch = 1};
  EXPECT_TRUE(moved_away(record));
  EXPECT_EQ(receive_call("there", inquiry(), {.record = &record}).kind, CallKind::kKnows);
  Hello tells = inquiry();
  tells.ended = true;
  EXPECT_EQ(receive_call("there", tells, {.record = &record}).kind, CallKind::kEnded);
  record.moved->from = "alpha";  // it came here, and went on: that it ended here is true
  EXPECT_FALSE(moved_away(record));
}

TEST(CallKind, WhoeverHadASessionBeforeHearsThatItHasGone) {
  Record record = record_with(RecordState::kActive);
  record.moved = Moved{.move = {}, .from = "alpha", .to = "there", .epoch = 1};
  const UnderId known{.record = &record, .active = true, .peers = {"there"}};
  EXPECT_EQ(receive_call("there", hello(), known).kind, CallKind::kKnown);
  const Decision former = receive_call("alpha", hello(), known);
  ASSERT_EQ(former.kind, CallKind::kRefused);
  EXPECT_EQ(former.error->code, ErrorCode::kMoved);
  const Decision other = receive_call("other", hello(), known);
  ASSERT_EQ(other.kind, CallKind::kRefused);
  EXPECT_EQ(other.error->code, ErrorCode::kIncompatible);
  EXPECT_EQ(receive_call("alpha", hello(true), known).kind, CallKind::kNothing) << "it may not end it";
}

}  // namespace
}  // namespace sluice::transfer
