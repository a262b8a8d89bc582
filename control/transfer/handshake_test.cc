// How an attempt comes to open flows: each phase, each wait, and what may not change the next time.
// SPDX-License-Identifier: Apache-2.0
#include "control/leg/handshake.h"

#include <gtest/gtest.h>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

// ---- the tables ------------------------------------------------------------------------------------------

TEST(HandshakePhases, FromEachOnlyTheseFollow) {
  using P = HandshakePhase;
  const std::map<P, std::set<P>> next = {
      {P::kIdle, {P::kFlows, P::kSpecification, P::kSources, P::kSettled}},
      {P::kFlows, {P::kCredit, P::kCalling, P::kRequest}},
      {P::kCredit, {P::kCalling, P::kOffer}},
      {P::kCalling, {P::kHello}},
      {P::kHello, {P::kAnswer, P::kSources, P::kSettled}},
      {P::kSpecification, {P::kFlows}},
      {P::kAnswer, {P::kSources, P::kOffer}},
      {P::kRequest, {P::kSources}},
      {P::kSources, {P::kReadBuffers, P::kSettled}},
      {P::kReadBuffers, {P::kReady}},
      {P::kReady, {P::kJournal}},
      {P::kOffer, {P::kFiles}},
      {P::kFiles, {P::kJournal}},
      {P::kJournal, {P::kOpening}},
      {P::kOpening, {P::kDone}},
      {P::kDone, {}},
      {P::kSettled, {}},
  };
  for (const auto& [from, expected] : next) {
    for (const auto& [to, unused] : next) {
      EXPECT_EQ(allowed(from, to), to == P::kIdle || expected.contains(to))
          << "from " << static_cast<int>(from) << " to " << static_cast<int>(to);
    }
  }
}

TEST(HandshakePhases, EachHasItsOwnRowOfWaits) {
  for (int phase = 0; phase <= static_cast<int>(HandshakePhase::kSettled); ++phase) {
    EXPECT_EQ(handshake_wait(static_cast<HandshakePhase>(phase)).phase, static_cast<HandshakePhase>(phase));
  }
}

// ---- the way ---------------------------------------------------------------------------------------------

// Where each answer is held back in turn, the phases stand one after the other.
std::vector<HandshakePhase> way_of(const Scene& scene) {
  std::vector<HandshakePhase> way;
  World whole(scene);
  whole.start();
  for (size_t n = 0; n < whole.answers; ++n) {
    World world(scene);
    world.hold_answer(n);
    world.start();
    const HandshakePhase phase = world.handshake_phase();
    if (!way.empty() && (way.back() == phase || phase == HandshakePhase::kIdle)) continue;
    way.push_back(phase);
  }
  return way;
}

TEST(Handshake, EachRoleTakesFlowsThenCreditThenReadBuffersAndTellsTheJournalBeforeItWaitsForFlows) {
  using P = HandshakePhase;
  EXPECT_EQ(way_of(source()), (std::vector<P>{P::kIdle, P::kFlows, P::kCalling, P::kSources, P::kReadBuffers,
                                              P::kJournal, P::kOpening, P::kDone}));
  EXPECT_EQ(way_of(called(source())), (std::vector<P>{P::kIdle, P::kFlows, P::kSources, P::kReadBuffers,
                                                      P::kJournal, P::kOpening, P::kDone}));
  EXPECT_EQ(way_of(destination()), (std::vector<P>{P::kIdle, P::kFlows, P::kCredit, P::kCalling, P::kFiles,
                                                   P::kJournal, P::kOpening, P::kDone}));
  EXPECT_EQ(way_of(called(destination())),
            (std::vector<P>{P::kIdle, P::kFlows, P::kCredit, P::kFiles, P::kJournal, P::kOpening, P::kDone}));
}

TEST(Handshake, FilesThatTheCallerHasOpenedAreNotOpenedAgain) {
  Scene scene = source();
  scene.opened = true;
  World world(scene);
  world.start();
  EXPECT_EQ(world.count<OpenSources>(), 0U);
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
}

TEST(Handshake, SeveralLanesAreShrunkToWhatThePeerTakes) {
  Scene scene = source();
  scene.lanes = 4;
  World world(scene);
  world.twist = [](Message& word) {
    if (auto* const set = std::get_if<SpecificationSet>(&word)) {
      set->lanes = 2;
      set->udp_ports.resize(2);
    }
    if (auto* const ready = std::get_if<TransferReady>(&word)) {
      ready->flow_ids.resize(2);
      ready->credit_extents.resize(2);
    }
  };
  world.start();
  EXPECT_EQ(world.count<ShrinkLanes>(), 1U);
  EXPECT_EQ(world.count<OpenFlow>(), 2U);
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
}

// Its first status comes when it has found its address, or was lost before the flow was open.
TEST(Handshake, ASourceMayOpenWhatItsPeerGrantsBeforeAnyStatus) {
  World world(source());
  world.twist = [](Message& word) {
    if (auto* const ready = std::get_if<TransferReady>(&word)) ready->credit_extents = {7};
  };
  std::vector<uint32_t> credit_extents;
  world.on_effect = [&](const Effect& effect) {
    if (const auto* open = std::get_if<OpenFlow>(&effect))
      credit_extents.push_back(open->config.credit_extents);
  };
  world.start();
  EXPECT_EQ(credit_extents, (std::vector<uint32_t>{7}));
}

std::vector<std::vector<std::string>> words_of_calls(const World& world) {
  std::vector<std::vector<std::string>> calls;
  for (const Effect& effect : world.effects)
    if (const auto* const call = std::get_if<Call>(&effect)) {
      calls.emplace_back();
      for (const Message& word : call->words) calls.back().emplace_back(message_name(word));
    }
  return calls;
}

// Each word that the peer answers by itself saves a round trip. What a session that has begun is cut by
// follows from whether the peer still knows it.
TEST(Handshake, ACallCarriesAllThatCanBeSaidAtOnce) {
  for (const Scene& scene : {source(), destination()}) {
    SCOPED_TRACE(name_of(scene));
    World world(scene);
    world.data = false;
    world.start();
    std::vector<std::string> words{"Hello", "Specification"};
    if (scene.role == Role::kDestination) words.emplace_back("TransferRequest");
    EXPECT_EQ(words_of_calls(world).back(), words);
    EXPECT_EQ(world.said<Specification>().size(), 1U);
    EXPECT_EQ(world.said<TransferRequest>().size(), scene.role == Role::kDestination ? 1U : 0U);
    world.restart(false);
    world.start();
    EXPECT_EQ(words_of_calls(world).back(), std::vector<std::string>{"Hello"});
    EXPECT_EQ(world.said<Specification>().size(), 2U);
  }
}

// ---- an offer that the call brings -----------------------------------------------------------------------

Scene plain(Scene scene) {
  scene.sizes = {5U << 20, kExtent + 100};
  scene.opened = true;
  return scene;
}

TEST(Handshake, ACallBringsAnOfferThatNothingAgreedUponCouldChange) {
  World world(plain(source()));
  world.start();
  EXPECT_EQ(world.said<TransferOffer>().size(), 1U);
  EXPECT_EQ(words_of_calls(world).front(),
            (std::vector<std::string>{"Hello", "Specification", "TransferOffer"}));
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
}

TEST(Handshake, OfWhatIsFoundLaterACallBringsWhatWasSeen) {
  World opened(plain(source()));
  const std::vector<catalog::File> files = *opened.transfer().job().sources;
  for (const bool changed : {false, true}) {
    Scene scene = plain(source());
    scene.opened = false;
    World world(scene);
    std::vector<catalog::File> seen = files;
    if (changed) ++seen.front().mtime_ns;
    world.transfer().begin_foreseen(seen);
    world.start();
    world.pass(kLongNs);
    EXPECT_EQ(world.state(), ViewState::kSucceeded);
    EXPECT_EQ(words_of_calls(world).front().back(), "TransferOffer");
    EXPECT_EQ(words_of_calls(world).size(), changed ? 2U : 1U);
    EXPECT_EQ(words_of_calls(world).back().back(), changed ? "Specification" : "TransferOffer");
    EXPECT_EQ(world.said<TransferOffer>().size(), changed ? 2U : 1U);
  }
}

// The peer has files, flows and credit, and would call it a stall if nothing came.
TEST(Handshake, APeerThatWaitsForDataBecauseOfItsOfferIsCalledAgainWithoutIt) {
  World world(plain(source()));
  world.hold<ReserveBuffers>();
  world.start();
  EXPECT_EQ(world.handshake_phase(), HandshakePhase::kReadBuffers);
  world.hear(Failure{.code = static_cast<uint32_t>(ErrorCode::kStalled), .message = "no progress"});
  world.release();
  world.pass(kLongNs);
  EXPECT_EQ(words_of_calls(world).back(), (std::vector<std::string>{"Hello", "Specification"}));
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
}

// Before the Hellos a peer takes no long message.
TEST(Handshake, ALongListOfWishesIsNoPartOfTheCall) {
  Scene many = destination();
  many.sizes.assign(2000, 0);
  World world(many);
  world.looks = false;  // the time of a look grows with the files
  world.start();
  size_t carried = 0;
  for (const Effect& effect : world.effects)
    if (const auto* const call = std::get_if<Call>(&effect)) carried = call->words.size();
  EXPECT_EQ(carried, 2U);
  EXPECT_EQ(world.said<TransferRequest>().size(), 1U);
}

// ---- waits -----------------------------------------------------------------------------------------------

TEST(Handshake, APeerThatDoesNotAnswerIsWaitedForNoLongerThanTheStallTimeout) {
  struct Case {
    Scene scene;
    std::string muted;
    HandshakePhase phase;
  };
  for (const Case& each : {Case{source(), "Hello", HandshakePhase::kHello},
                           Case{called(source()), "Specification", HandshakePhase::kSpecification},
                           Case{called(source()), "TransferRequest", HandshakePhase::kRequest}}) {
    World world(each.scene);
    world.mute = silent(each.muted);
    world.scene.settings.stall_timeout_ns = 5 * kSecondNs;
    world.start();
    EXPECT_EQ(world.handshake_phase(), each.phase);
    world.pass(4 * kSecondNs);
    EXPECT_FALSE(world.over);
    world.pass(2 * kSecondNs);
    EXPECT_EQ(world.error(), ErrorCode::kStalled) << each.muted;
  }
}

TEST(Handshake, APeerThatWaitsForItsBuffersIsWaitedForAsLongAsItBeats) {
  World world(source());
  world.mute = {"SpecificationSet"};
  world.start();
  for (int i = 0; i < 100; ++i) {
    world.pass(kSecondNs);
    world.hear(Heartbeat{});
  }
  EXPECT_EQ(world.handshake_phase(), HandshakePhase::kAnswer);
  world.pass(ControlStream::kSilenceNs + 2 * kSecondNs);
  EXPECT_TRUE(world.phases.contains(TransferPhase::kResting));
}

TEST(Handshake, ADataplaneThatDoesNotOpenFlowsIsTriedAgain) {
  World world(source());
  world.hold<OpenFlow>();
  world.start();
  world.pass(Handshake::kOpenTimeoutNs + kMillisecondNs);
  EXPECT_TRUE(world.phases.contains(TransferPhase::kResting)) << "it may be slow, and files are agreed upon";
  EXPECT_FALSE(world.error());
}

TEST(Handshake, WhoWaitsForThisNodesSlotsIsQueued) {
  World world(destination());
  world.hold<ReserveBuffers>();
  world.start();
  EXPECT_EQ(world.state(), ViewState::kQueued);
  EXPECT_EQ(world.transfer().view(world.now_ns).waiting_for, "extent buffers");
  world.pass(1000 * kSecondNs);
  EXPECT_FALSE(world.over) << "however long that takes";
}

// ---- again -----------------------------------------------------------------------------------------------

TEST(Handshake, TheSecondOfferMustBeThatOfTheFirst) {
  const std::vector<std::function<void(OfferedFile&)>> changes = {
      [](OfferedFile& f) { f.name = "other"; },
      [](OfferedFile& f) { ++f.size_bytes; },
      [](OfferedFile& f) { ++f.mtime_ns; },
  };
  for (const auto& change : changes) {
    World world(called(destination()));
    world.data = false;
    world.start();
    world.hear(transfer::Pause{});
    world.twist = [&](Message& word) {
      if (auto* const offer = std::get_if<TransferOffer>(&word)) change(offer->files.front());
    };
    world.peer_calls();
    EXPECT_EQ(world.error(), ErrorCode::kIntegrity);
    EXPECT_TRUE(world.over);
  }
}

TEST(Handshake, WhatThereIsStaysCutAndCheckedAsItWas) {
  World world(called(destination()));
  world.data = false;
  world.start();
  world.hear(transfer::Pause{});
  world.twist = [&](Message& word) {
    if (auto* const wishes = std::get_if<Specification>(&word)) wishes->crc_kinds = {1};
  };
  world.peer_calls();
  EXPECT_EQ(world.error(), ErrorCode::kIncompatible);
}

TEST(Handshake, APeerThatChangesSidesIsRefused) {
  World world(called(destination()));
  world.data = false;
  world.start();
  world.hear(transfer::Pause{});
  world.twist = [&](Message& word) {
    if (auto* const wishes = std::get_if<Specification>(&word)) wishes->role = OfferedRole::kDestination;
  };
  world.peer_calls();
  EXPECT_EQ(world.error(), ErrorCode::kIncompatible);
}

// A node that does not know grants would take the session for one of whoever calls, with that node's rights.
TEST(Handshake, WhoDoesNotGoByTheGrantIsNotSentTo) {
  for (const bool knows : {false, true}) {
    World world(source());
    world.transfer().begin_granted(
        {.grant = {.grant = "g", .signature = "s", .certificate = "c"}, .issuer = "home"});
    world.twist = [&](Message& word) {
      if (auto* const answer = std::get_if<Hello>(&word)) answer->granted = knows;
    };
    world.start();
    ASSERT_FALSE(world.said<Hello>().empty());
    ASSERT_TRUE(world.said<Hello>()[0].grant);
    EXPECT_EQ(world.said<Hello>()[0].grant->grant, "g");
    EXPECT_EQ(world.error(), knows ? std::nullopt : std::optional(ErrorCode::kIncompatible));
    EXPECT_EQ(world.said<TransferOffer>().size(), knows ? 1U : 0U);
  }
}

TEST(Handshake, WhoIsCalledSaysThatItGoesByTheGrant) {
  for (const bool granted : {false, true}) {
    World world(called(destination()));
    if (granted) world.transfer().begin_granted({.issuer = "home", .path = "in/"});
    world.start();
    ASSERT_FALSE(world.said<Hello>().empty());
    EXPECT_EQ(world.said<Hello>()[0].granted, granted);
    EXPECT_FALSE(world.said<Hello>()[0].grant);
  }
}

// A node that does not know leases would let somebody else write as well.
TEST(Handshake, WhoDoesNotKeepToTheLeaseIsNotSentTo) {
  for (const bool knows : {false, true}) {
    World world(source());
    world.transfer().begin_leased(Lease{.name = "0123456789abcdef", .epoch = 3});
    world.twist = [&](Message& word) {
      if (auto* const answer = std::get_if<Hello>(&word)) answer->leased = knows;
    };
    world.start();
    ASSERT_FALSE(world.said<Hello>().empty());
    EXPECT_EQ(world.said<Hello>()[0].lease, world.transfer().job().lease);
    EXPECT_EQ(world.error(), knows ? std::nullopt : std::optional(ErrorCode::kIncompatible));
    EXPECT_EQ(world.said<TransferOffer>().size(), knows ? 1U : 0U);
  }
}

TEST(Handshake, ALeaseOutlivesARestart) {
  World world(called(destination()));
  world.transfer().begin_leased(Lease{.name = "0123456789abcdef", .epoch = 3});
  world.data = false;
  world.start();
  ASSERT_FALSE(world.said<Hello>().empty());
  EXPECT_TRUE(world.said<Hello>()[0].leased);
  world.restart(false);
  ASSERT_TRUE(world.transfer().job().lease);
  EXPECT_EQ(world.transfer().job().lease->epoch, 3U);
}

TEST(Handshake, AGrantOutlivesARestart) {
  World world(source());
  const Granted granted{
      .grant = {.grant = "g", .signature = "s", .certificate = "c"}, .issuer = "home", .path = "in/"};
  world.transfer().begin_granted(granted);
  world.twist = [&](Message& word) {
    if (auto* const answer = std::get_if<Hello>(&word)) answer->granted = true;
  };
  world.data = false;
  world.start();
  world.restart(false);
  ASSERT_TRUE(world.transfer().job().granted);
  EXPECT_EQ(*world.transfer().job().granted, granted);
}

}  // namespace
}  // namespace sluice::transfer::test
