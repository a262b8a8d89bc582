// A destination that calls several peers which have the same data: their handshakes, side by side.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "control/transfer/peer_fixture.h"
#include "control/transfer/transfer.h"

namespace sluice::transfer::test {
namespace {

constexpr LegId kAlpha(0);
constexpr LegId kBeta(1);
constexpr LegId kGamma(2);

// What is local is answered at once, but for files, which are made when the test says so. What peers do the
// test says.
class SeveralPeers : public testing::Test {
 protected:
  SeveralPeers() : SeveralPeers(std::map<std::string, double>()) {}
  // What this node knows of the paths to these peers, bit/s.
  explicit SeveralPeers(const std::map<std::string, double>& known_bps) {
    for (const auto& [peer, rate_bps] : known_bps)
      settings_.outlook->brief({.peer = peer, .outgoing = false}, rate_bps, now_ns_);
    Request request{.source_paths = {"f0"}, .destination = "in/"};
    request.options.rate_bps = 1'000'000'000;
    request.options.lanes = lanes_;
    transfer_ = std::make_unique<Transfer>(settings_, kId, "alpha", Role::kDestination, request, std::nullopt,
                                           1, now_ns_);
    transfer_->add_leg("beta");
    transfer_->add_leg("gamma");
    post(Begin{});
    post(BoardAttached{dataplane_at(1)});
  }

  void post(const Event& event) {
    std::vector<Event> next{event};
    while (!next.empty()) {
      const Event each = next.front();
      next.erase(next.begin());
      for (const Effect& effect : transfer_->step(each, ++now_ns_)) answer(effect, next);
    }
  }
  void answer(const Effect& effect, std::vector<Event>& next) {
    if (const auto* write = std::get_if<WriteJournal>(&effect)) {
      if (write->batch.record) recorded_ = *write->batch.record;
      next.push_back(JournalWritten{.entry = write->entry, .status = {}, .of_leg = write->of_leg});
    } else if (const auto* ask = std::get_if<AskPlace>(&effect)) {
      next.push_back(PlaceTold{.ticket = ask->ticket});
    } else if (const auto* wish = std::get_if<ReserveFlows>(&effect)) {
      FlowsReserved reserved{.leg = wish->leg, .status = {}, .session = SessionSlotId(3)};
      for (uint32_t i = 0; i < wish->lanes; ++i)
        reserved.grants.push_back({.slot = FlowSlotId(16 * wish->leg.value() + i),
                                   .local_port = static_cast<uint16_t>(47000 + i),
                                   .random = 99});
      next.push_back(reserved);
    } else if (const auto* buffers = std::get_if<ReserveBuffers>(&effect)) {
      next.push_back(BuffersReserved{
          .leg = buffers->leg, .status = {}, .credit_extents = std::vector<uint32_t>(lanes_, 4)});
    } else if (const auto* call = std::get_if<Call>(&effect)) {
      called_.push_back(call->leg);
      said_[call->leg] = call->words;
      unanswered_.insert(call->leg);
    } else if (const auto* hang_up = std::get_if<HangUp>(&effect)) {
      if (unanswered_.erase(hang_up->leg) != 0)
        next.push_back(CallEnded{.leg = hang_up->leg, .status = Error{ErrorCode::kCancelled, "given up"}});
    } else if (const auto* send = std::get_if<Send>(&effect)) {
      said_[send->leg].push_back(send->message);
    } else if (const auto* create = std::get_if<CreateFiles>(&effect)) {
      created_ = create->files;
    } else if (const auto* flow = std::get_if<OpenFlow>(&effect)) {
      joined_.push_back(flow->leg);
      next.push_back(
          FlowEvent{.leg = flow->leg, .lane = flow->lane, .event = {.kind = board::EventKind::kFlowOpened}});
    } else if (const auto* close = std::get_if<CloseFlow>(&effect)) {
      next.push_back(FlowEvent{
          .leg = close->leg, .lane = close->lane, .event = {.kind = board::EventKind::kFlowClosed}});
    } else if (const auto* given = std::get_if<ReleaseFlows>(&effect)) {
      next.push_back(FlowsReleased{given->leg});
    } else if (std::holds_alternative<ReleaseFiles>(effect)) {
      next.push_back(FilesReleased{});
    } else if (std::holds_alternative<FinishObject>(effect)) {
      finishes_ = true;
    } else if (const auto* open = std::get_if<OpenObject>(&effect)) {
      next.push_back(ObjectOpened{.object = open->object, .status = {}});
    } else if (const auto* reopen = std::get_if<ReopenFile>(&effect)) {
      next.push_back(FileReopened{.object = reopen->object, .found = true});
    }
  }
  void files_are_made() {
    ASSERT_FALSE(created_.empty());
    for (catalog::File& file : created_) {
      file.path = file.shown = "in/" + file.name;
      if (listed_) file.digests.expected = {{.kind = digests::Kind::kSha256, .hex = std::string(64, '0')}};
    }
    post(FilesCreated{created_});
  }
  // All that these three have is offered, found and made.
  void all_move() {
    for (const LegId leg : {kBeta, kAlpha, kGamma}) answers(leg);
    files_are_made();
    for (const LegId leg : {kAlpha, kBeta, kGamma}) ASSERT_EQ(phase(leg), LegPhase::kMoving);
  }
  // The peer takes the call, and answers all that it hears, up to its offer.
  void answers(
      LegId leg, uint64_t size_bytes = 10 * kExtent,
      const std::function<void(Message&)>& twist = [](Message&) {}) {
    HonestPeer peer(Role::kSource, false, Content{{size_bytes}});
    ASSERT_EQ(unanswered_.erase(leg), 1U);
    post(CallEnded{.leg = leg, .status = {}});
    for (size_t heard = 0; heard < said_[leg].size(); ++heard)
      for (Message& word : peer.hear(Message(said_[leg][heard]))) {
        twist(word);
        post(Received{.leg = leg, .message = word});
      }
  }
  // It has ended the session, and says so to a call.
  void says_how_it_ended(LegId leg) {
    ASSERT_EQ(unanswered_.erase(leg), 1U);
    post(CallEnded{.leg = leg, .status = {}});
    Hello hello = make_hello(kId);
    hello.ended = true;
    post(Received{.leg = leg, .message = hello});
    post(Received{.leg = leg, .message = failure_of({ErrorCode::kIncompatible, "what it sent was wrong"})});
  }
  void tick(LegId leg) {
    const board::FlowSlot* const lanes[] = {&flow_};
    post(Tick{.leg = leg, .lanes = lanes});
  }
  LegPhase phase(LegId leg) const { return transfer_->leg(leg).phase(); }
  HandshakePhase handshake(LegId leg) const { return transfer_->leg(leg).handshake_phase(); }

  const uint32_t lanes_ = 1;
  bool listed_ = false;  // what each file is to come to
  ThisNode settings_{{.node_name = "here"}};
  uint64_t now_ns_ = 1'000 * kSecondNs;
  std::unique_ptr<Transfer> transfer_;
  std::vector<LegId> called_;
  std::vector<LegId> joined_;   // whose flows were opened
  std::set<LegId> unanswered_;  // of these calls
  std::map<LegId, std::vector<Message>> said_;
  std::vector<catalog::File> created_;
  Record recorded_;        // the last one
  bool finishes_ = false;  // some file, to give it its name
  board::FlowSlot flow_;   // nothing happens on it
};

TEST_F(SeveralPeers, AllAreCalledAtOnce) { EXPECT_EQ(called_, (std::vector{kAlpha, kBeta, kGamma})); }

class KnownPeers : public SeveralPeers {
 protected:
  KnownPeers() : SeveralPeers({{"beta", 30e6}, {"gamma", 40e6}}) {}
};

// So its offer comes first, and others have their turn behind it.
TEST_F(KnownPeers, TheFastestIsCalledFirst) { EXPECT_EQ(called_, (std::vector{kGamma, kBeta, kAlpha})); }

TEST_F(KnownPeers, OfThoseThatWaitTheFastestHasItsTurnFirst) {
  answers(kAlpha);
  answers(kBeta);
  answers(kGamma);
  EXPECT_EQ(handshake(kAlpha), HandshakePhase::kFiles);
  joined_.clear();
  files_are_made();
  EXPECT_EQ(joined_, (std::vector{kAlpha, kGamma, kBeta}));
}

TEST_F(SeveralPeers, TheFirstThatAnswersBegins) {
  answers(kGamma);
  EXPECT_EQ(handshake(kGamma), HandshakePhase::kFiles);
  files_are_made();
  EXPECT_EQ(phase(kGamma), LegPhase::kMoving);
  answers(kAlpha);
  EXPECT_EQ(phase(kAlpha), LegPhase::kMoving) << "it joins";
  EXPECT_EQ(handshake(kBeta), HandshakePhase::kCalling) << "it held up nobody";
}

TEST_F(SeveralPeers, OneAtATimeAgreesUponTheFiles) {
  answers(kBeta);
  answers(kAlpha);
  EXPECT_EQ(handshake(kBeta), HandshakePhase::kFiles);
  EXPECT_EQ(handshake(kAlpha), HandshakePhase::kOffer);
  EXPECT_EQ(transfer_->leg(kAlpha).waiting_for(), "another leg of the session");
  post(TimerDue{});
  EXPECT_EQ(handshake(kAlpha), HandshakePhase::kOffer);
  files_are_made();
  EXPECT_EQ(phase(kBeta), LegPhase::kMoving);
  EXPECT_EQ(phase(kAlpha), LegPhase::kMoving);
  EXPECT_EQ(transfer_->view(now_ns_).summary.attempts, 1U) << "who joins is no attempt";
}

TEST_F(SeveralPeers, WhoLacksTheFileIsDoneWithout) {
  answers(kBeta, 10 * kExtent, [](Message& word) {
    if (std::holds_alternative<TransferOffer>(word)) word = failure_of({ErrorCode::kUsage, "no such file"});
  });
  answers(kAlpha);
  EXPECT_EQ(handshake(kAlpha), HandshakePhase::kFiles);
  files_are_made();
  EXPECT_EQ(phase(kAlpha), LegPhase::kMoving);
  EXPECT_NE(transfer_->view(now_ns_).legs[kBeta.value()].error.find("no such file"), std::string::npos);
  EXPECT_EQ(transfer_->view(now_ns_).legs[kAlpha.value()].error, "");
}

TEST_F(SeveralPeers, WhatIsShownAtTheEndIsOfOneThatAgreed) {
  answers(kAlpha, 10 * kExtent, [](Message& word) {
    if (std::holds_alternative<TransferOffer>(word)) word = failure_of({ErrorCode::kUsage, "no such file"});
  });
  answers(kBeta);
  files_are_made();
  EXPECT_EQ(transfer_->view(now_ns_).crc, "crc64");
  post(Cancel{});
  ASSERT_NE(phase(kBeta), LegPhase::kMoving);
  EXPECT_EQ(transfer_->view(now_ns_).crc, "crc64") << "alpha was refused, and has agreed upon nothing";
}

// A source that has read all of its file compares the copy with it, and finds out that way.
TEST_F(SeveralPeers, OneThatSaysThatItsFileDiffersIsDoneWithoutWhereAListJudges) {
  listed_ = true;
  all_move();
  post(Received{.leg = kBeta, .message = failure_of({ErrorCode::kIntegrity, "another digest here"})});
  EXPECT_FALSE(transfer_->error());
  for (const LegId other : {kAlpha, kGamma}) EXPECT_EQ(phase(other), LegPhase::kMoving);
  EXPECT_NE(transfer_->view(now_ns_).legs[kBeta.value()].error.find("another digest here"),
            std::string::npos);
  EXPECT_NE(recorded_.legs[kBeta.value()].left_out.find("another digest here"), std::string::npos)
      << "also after a restart";
  called_.clear();
  now_ns_ += 3 * kSecondNs;
  tick(kAlpha);
  EXPECT_EQ(called_, std::vector<LegId>{}) << "it is not asked again";
  for (const LegId other : {kAlpha, kGamma}) post(StreamEnded{.leg = other, .reason = "reset"});
  now_ns_ += 60 * kSecondNs;
  post(TimerDue{});
  EXPECT_EQ(called_, (std::vector{kAlpha, kGamma})) << "nor by a next attempt";
}

TEST_F(SeveralPeers, WithoutAListNobodyKnowsWhichOfThemIsRight) {
  all_move();
  post(Received{.leg = kBeta, .message = failure_of({ErrorCode::kIntegrity, "another digest here"})});
  for (const LegId other : {kAlpha, kGamma}) EXPECT_NE(phase(other), LegPhase::kMoving);
}

// One source may be done with an empty or short copy before another was heard.
TEST_F(SeveralPeers, NothingGetsItsNameBeforeAllHaveSaidWhichFilesTheyHave) {
  answers(kGamma, 0);
  files_are_made();
  tick(kGamma);
  EXPECT_FALSE(finishes_);
  answers(kAlpha, 0);
  tick(kGamma);
  EXPECT_FALSE(finishes_) << "beta was not heard";
  answers(kBeta, kExtent);
  EXPECT_FALSE(finishes_);
  ASSERT_TRUE(transfer_->error());
  EXPECT_EQ(transfer_->error()->code, ErrorCode::kIntegrity);
}

TEST_F(SeveralPeers, WhoIsRefusedIsNotWaitedFor) {
  answers(kGamma, 0);
  files_are_made();
  answers(kAlpha, 0);
  tick(kGamma);
  answers(kBeta, 0, [](Message& word) {
    if (std::holds_alternative<TransferOffer>(word)) word = failure_of({ErrorCode::kUsage, "no such file"});
  });
  tick(kGamma);
  EXPECT_TRUE(finishes_);
}

// Who takes the call and says nothing is waited for; who does not take it, or is far away, is not.
TEST_F(SeveralPeers, WhoDoesNotAnswerIsNotWaitedForForLong) {
  answers(kGamma, 0);
  files_are_made();
  tick(kGamma);
  EXPECT_FALSE(finishes_);
  post(CallEnded{.leg = kAlpha, .status = {}, .rtt_ns = 1'000'000});
  uint64_t waited_s = 0;
  for (; !finishes_ && waited_s < 20; ++waited_s) {
    now_ns_ += kSecondNs;
    tick(kGamma);
  }
  EXPECT_TRUE(finishes_);
  EXPECT_GE(waited_s, 5U);
  EXPECT_LE(waited_s, 7U);
}

TEST_F(SeveralPeers, WhoIsFarAwayIsNotWaitedFor) {
  answers(kGamma, 0);
  files_are_made();
  tick(kGamma);
  EXPECT_FALSE(finishes_) << "nobody knows who takes a call";
  post(CallEnded{.leg = kAlpha, .status = {}, .rtt_ns = 200'000'000});
  now_ns_ += kSecondNs;
  tick(kGamma);
  EXPECT_TRUE(finishes_);
}

// Its files are in the making, and belong to an attempt that nobody goes on with.
TEST_F(SeveralPeers, WhenTheFirstIsGoneBeforeItMovesDataAllBeginAnew) {
  answers(kBeta);
  answers(kAlpha);
  post(StreamEnded{.leg = kBeta, .reason = "reset"});
  EXPECT_NE(handshake(kAlpha), HandshakePhase::kFiles);
  files_are_made();
  called_.clear();
  said_.clear();
  now_ns_ += 10 * kSecondNs;
  post(TimerDue{});
  EXPECT_EQ(called_, (std::vector{kAlpha, kBeta, kGamma}));
  answers(kAlpha);
  files_are_made();
  EXPECT_EQ(phase(kAlpha), LegPhase::kMoving);
}

TEST_F(SeveralPeers, WhoeverOffersFirstBothAreNamedIfTheyDiffer) {
  answers(kBeta, 9 * kExtent);
  answers(kAlpha);
  files_are_made();
  ASSERT_TRUE(transfer_->error());
  EXPECT_EQ(transfer_->error()->code, ErrorCode::kIntegrity);
  EXPECT_NE(transfer_->error()->message.find("beta and alpha"), std::string::npos)
      << transfer_->error()->message;
  const std::vector<LegView> legs = transfer_->view(now_ns_).legs;
  EXPECT_NE(legs[kAlpha.value()].error.find("beta and alpha"), std::string::npos) << "who came second";
  for (const LegId other : {kBeta, kGamma})
    EXPECT_EQ(legs[other.value()].error, "") << "it has said nothing wrong";
}

// It comes before the others, and has files neither found nor made for them.
TEST_F(SeveralPeers, WhoOnlySaysHowItEndedKeepsNobodyFromBeginning) {
  answers(kGamma);
  files_are_made();
  for (const LegId leg : {kAlpha, kBeta}) {
    unanswered_.erase(leg);
    post(CallEnded{.leg = leg, .status = Error{ErrorCode::kPeerUnreachable, "refused"}});
  }
  post(Received{.leg = kGamma, .message = failure_of({ErrorCode::kStalled, "it stood still"})});
  ASSERT_EQ(transfer_->phase(), TransferPhase::kResting);
  now_ns_ += 10 * kSecondNs;
  said_.clear();
  post(TimerDue{});
  says_how_it_ended(kAlpha);
  answers(kBeta, 10 * kExtent, [](Message& word) {
    if (auto* const hello = std::get_if<Hello>(&word)) hello->known = true;
  });
  EXPECT_EQ(phase(kBeta), LegPhase::kMoving);
}

TEST_F(SeveralPeers, WhoOnlySaysHowItEndedNeedsNoFiles) {
  answers(kBeta, kExtent, [](Message& word) {
    if (auto* const offer = std::get_if<TransferOffer>(&word)) offer->files.front().number = 5;
  });
  ASSERT_EQ(phase(kBeta), LegPhase::kIdle);
  says_how_it_ended(kAlpha);
  answers(kGamma);
  files_are_made();
  EXPECT_EQ(phase(kGamma), LegPhase::kMoving);
}

// Legs that are away come back by themselves. What this node's disk needs is somebody.
TEST_F(SeveralPeers, AnErrorOfThisNodeConcernsThoseThatAreAwayAsWell) {
  answers(kGamma);
  files_are_made();
  for (const LegId leg : {kAlpha, kBeta}) {
    unanswered_.erase(leg);
    post(CallEnded{.leg = leg, .status = Error{ErrorCode::kPeerUnreachable, "refused"}});
  }
  post(FlowEvent{.leg = kGamma,
                 .lane = LaneId(0),
                 .event = {.kind = board::EventKind::kExtentFailed, .object = 0, .value = EIO}});
  EXPECT_EQ(transfer_->phase(), TransferPhase::kPaused);
}

// The last leg that moves data ends while others speak with their peers: the data end stays for them.
TEST_F(SeveralPeers, WhoOnlyCallsKeepsTheDataEnd) {
  answers(kGamma);
  files_are_made();
  ASSERT_EQ(phase(kGamma), LegPhase::kMoving);
  post(Received{.leg = kGamma, .message = failure_of({ErrorCode::kStorage, "its disk broke"})});
  EXPECT_EQ(transfer_->phase(), TransferPhase::kActive);
  answers(kAlpha);
  EXPECT_EQ(phase(kAlpha), LegPhase::kMoving);
}

}  // namespace
}  // namespace sluice::transfer::test
