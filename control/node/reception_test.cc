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
