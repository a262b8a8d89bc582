// Who calls this node, and what becomes of the call.
// SPDX-License-Identifier: Apache-2.0
#include "control/node/reception.h"

#include "control/node/node_fixture.h"

namespace sluice::node {
namespace {

using transfer::Failure;
using transfer::Hello;

class ReceptionTest : public NodeTest {
 protected:
  ReceptionTest()
      : NodeTest([](config::Node& node) {
          node.sessions_per_peer = 1;
          node.queue_max = 2;
        }) {
    have_sessions();
  }
};

TEST_F(ReceptionTest, AKnownPeerBeginsASessionAndIsAnswered) {
  attach();
  const auto connection = call(transfer::make_hello(id_of('1')));
  run_until([&] { return !connection->said<Hello>().empty(); });
  ASSERT_EQ(sessions_->list().size(), 1U);
  EXPECT_EQ(sessions_->list()[0].id, id_of('1'));
  EXPECT_EQ(sessions_->list()[0].peer, "beta");
  EXPECT_FALSE(connection->closed());
}

TEST_F(ReceptionTest, WhoeverIsNotTrustedAnyMoreHearsSoAndBeginsNothing) {
  attach();
  ASSERT_TRUE(identity::distrust(root_, "beta"));
  const auto connection = call(transfer::make_hello(id_of('1')));
  run_until([&] { return connection->closed(); });
  ASSERT_EQ(connection->said<Failure>().size(), 1U);
  EXPECT_EQ(connection->said<Failure>()[0].code, static_cast<uint32_t>(ErrorCode::kPeerUntrusted));
  EXPECT_TRUE(sessions_->list().empty());
}

TEST_F(ReceptionTest, ASessionIsNobodyElses) {
  attach();
  EXPECT_TRUE(identity::create(root_ / "third", "gamma"));
  const auto gamma = identity::load(root_ / "third");
  ASSERT_TRUE(identity::trust(root_, "gamma", "", gamma->certificate_pem, false));
  const auto first = call(transfer::make_hello(id_of('1')));
  run_until([&] { return !first->said<Hello>().empty(); });
  const auto second = call(transfer::make_hello(id_of('1')), *identity::find_peer(root_, "gamma"));
  run_until([&] { return second->closed(); });
  ASSERT_EQ(second->said<Failure>().size(), 1U);
  EXPECT_EQ(sessions_->list().size(), 1U);
  EXPECT_EQ(sessions_->list()[0].peer, "beta");
  EXPECT_FALSE(first->closed());
}

TEST_F(ReceptionTest, AQuestionForASessionThatNobodyKnowsOpensNothing) {
  attach();
  Hello question = transfer::make_hello(id_of('2'));
  question.inquires = true;
  const auto connection = call(question);
  run_until([&] { return connection->closed(); });
  ASSERT_EQ(connection->said<Hello>().size(), 1U);
  EXPECT_TRUE(connection->said<Hello>()[0].ended);
  EXPECT_TRUE(sessions_->list().empty());
}

TEST_F(ReceptionTest, APeerHasRoomForSoManySessions) {
  attach();
  std::vector<std::shared_ptr<runtime::FakeConnection>> calls;
  for (const char digit : {'1', '2'}) {
    calls.push_back(call(transfer::make_hello(id_of(digit))));
    run_until([&] { return sessions_->active(id_of(digit)) != nullptr; });
  }
  const auto third = call(transfer::make_hello(id_of('3')));
  run_until([&] { return third->closed(); });
  ASSERT_EQ(third->said<Failure>().size(), 1U);
  EXPECT_EQ(third->said<Failure>()[0].code, static_cast<uint32_t>(ErrorCode::kResources));
  EXPECT_EQ(sessions_->list().size(), 2U);
}

TEST_F(ReceptionTest, AnEndedSessionIsToldAgainFromTheJournal) {
  attach();
  transfer::Record record;
  record.id = id_of('4');
  record.role = transfer::Role::kDestination;
  record.state = transfer::RecordState::kFailed;
  record.error = Error{ErrorCode::kNoSpace, "a full disk"};
  record.legs = {{.peer = "beta", .agreement = {}, .flows = {}}};
  ASSERT_TRUE(services_->journal->write(record.id, {.record = record}, transfer::Durability::kProcess));
  const auto connection = call(transfer::make_hello(record.id));
  run_until([&] { return connection->closed(); });
  ASSERT_EQ(connection->said<Failure>().size(), 1U);
  EXPECT_EQ(connection->said<Failure>()[0].message, "a full disk");
  EXPECT_TRUE(sessions_->list().empty());
}

// ---- leases ---------------------------------------------------------------------------------------

class LeasesTest : public ReceptionTest {
 protected:
  LeasesTest() {
    attach();
    EXPECT_TRUE(identity::create(root_ / "third", "gamma"));
    const auto gamma = identity::load(root_ / "third");
    EXPECT_TRUE(identity::trust(root_, "gamma", "", gamma->certificate_pem, false));
    gamma_ = *identity::find_peer(root_, "gamma");
  }
  static Hello leased(char digit, uint64_t epoch) {
    Hello hello = transfer::make_hello(id_of(digit));
    hello.lease = transfer::Lease{.name = "0123456789abcdef", .epoch = epoch};
    return hello;
  }
  // Until it is neither refused, nor told to come again.
  std::shared_ptr<runtime::FakeConnection> call_until_taken(const Hello& hello, const identity::Peer& peer) {
    for (int turn = 0; turn < 1000; ++turn) {
      auto connection = call(hello, peer);
      run_until([&] { return connection->closed() || !connection->said<Hello>().empty(); });
      if (!connection->said<Hello>().empty()) return connection;
      EXPECT_TRUE(connection->said<Failure>().empty()) << connection->said<Failure>()[0].message;
      EXPECT_EQ(connection->said<transfer::Pause>()[0].place, 1U);
    }
    ADD_FAILURE() << "it was never taken";
    return nullptr;
  }
  ErrorCode refused(const Hello& hello, const identity::Peer& peer) {
    const auto connection = call(hello, peer);
    run_until([&] { return connection->closed(); });
    EXPECT_TRUE(connection->said<Hello>().empty());
    const auto failures = connection->said<Failure>();
    return failures.empty() ? ErrorCode::kOk : static_cast<ErrorCode>(failures[0].code);
  }
  identity::Peer gamma_;
};

TEST_F(LeasesTest, ItIsInTheJournalBeforeTheCallerHearsSo) {
  const auto connection = call_until_taken(leased('1', 7), beta_);
  EXPECT_TRUE(connection->said<Hello>()[0].leased);
  const auto rows = services_->journal->leases();
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ(rows->front().lease.epoch, 7U);
  EXPECT_EQ(rows->front().holder, "beta");
  EXPECT_EQ(sessions_->list()[0].asker.lease, "012345...:7");
}

TEST_F(LeasesTest, ALowerEpochAndAnotherNodeUnderTheSameAreRefused) {
  call_until_taken(leased('1', 7), beta_);
  EXPECT_EQ(refused(leased('2', 6), gamma_), ErrorCode::kSuperseded);
  EXPECT_EQ(refused(leased('2', 7), gamma_), ErrorCode::kSuperseded);
  EXPECT_TRUE(sessions_->active(id_of('1')));
  EXPECT_EQ(sessions_->list().size(), 1U);
}

TEST_F(LeasesTest, WhatRunsUnderALowerEpochHasEndedBeforeAHigherOneIsTaken) {
  const auto lower = call_until_taken(leased('1', 7), beta_);
  const auto higher = call_until_taken(leased('2', 8), gamma_);
  EXPECT_FALSE(sessions_->active(id_of('1')));
  EXPECT_TRUE(sessions_->active(id_of('2')));
  ASSERT_EQ(lower->said<Failure>().size(), 1U);
  EXPECT_EQ(lower->said<Failure>()[0].code, static_cast<uint32_t>(ErrorCode::kSuperseded));
  EXPECT_EQ(refused(leased('3', 7), beta_), ErrorCode::kSuperseded);
}

TEST_F(LeasesTest, ASessionKeepsTheLeaseThatItBeganUnder) {
  call_until_taken(leased('1', 7), beta_);
  EXPECT_EQ(refused(transfer::make_hello(id_of('1')), beta_), ErrorCode::kIncompatible);
  EXPECT_EQ(refused(leased('1', 8), beta_), ErrorCode::kIncompatible);
  Hello other = leased('1', 7);
  other.lease->name = "another-lease-there";
  EXPECT_EQ(refused(other, beta_), ErrorCode::kIncompatible);
  EXPECT_TRUE(sessions_->active(id_of('1')));
  EXPECT_EQ(services_->journal->leases()->size(), 1U) << "whoever is refused takes nothing";
}

TEST_F(LeasesTest, ASessionOfThisNodeKeepsToItAsWell) {
  call_until_taken(leased('1', 7), beta_);
  Wishes asked = wishes();
  asked.lease = transfer::Lease{.name = "0123456789abcdef", .epoch = 7};
  EXPECT_EQ(await(starter_->send(asked)).error().code, ErrorCode::kSuperseded);
  asked.lease->epoch = 9;
  const Result<std::string> id = await(starter_->send(asked));
  ASSERT_TRUE(id) << id.error().message;
  EXPECT_FALSE(sessions_->active(id_of('1')));
  EXPECT_EQ(refused(leased('2', 8), beta_), ErrorCode::kSuperseded);
}

TEST_F(ReceptionTest, WhoeverSaysNoHelloFirstIsNotHeard) {
  attach();
  const auto connection = std::make_shared<runtime::FakeConnection>(io_, beta_);
  std::weak_ptr<runtime::FakeConnection> gone = connection;
  reception_->take(connection);
  connection->say(transfer::SessionDone{.files = 1});
  settle();
  EXPECT_TRUE(sessions_->list().empty());
  EXPECT_TRUE(connection->said<Failure>().empty());
}

}  // namespace
}  // namespace sluice::node
