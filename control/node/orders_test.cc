// A transfer that a third node orders: at the node that gives the order, at its source and at its
// destination.
// SPDX-License-Identifier: Apache-2.0
#include "control/node/orders.h"

#include <fstream>

#include "control/grant/grant.h"
#include "control/node/logs.h"
#include "control/node/node_fixture.h"

namespace sluice::node {
namespace {

using transfer::Failure;
using transfer::Hello;
using transfer::OrderState;

// alpha is this node, beta the other one, and home orders.
class OrdersTest : public NodeTest {
 protected:
  OrdersTest() {
    EXPECT_TRUE(identity::create(root_ / "third", "home"));
    home_self_ = *identity::load(root_ / "third");
    EXPECT_TRUE(identity::trust(root_, "home", "127.0.0.1:2", home_self_.certificate_pem, false));
    home_ = *identity::find_peer(root_, "home");
    beta_self_ = *identity::load(root_ / "other");
    have_sessions();
    self_ = *identity::load(root_);
    attach();
  }
  ~OrdersTest() override { orders_.reset(); }

  transfer::SignedGrant grant_by(const identity::Identity& issuer, const std::string& holder,
                                 const std::string& destination, const std::string& id = id_of('1')) const {
    const int64_t now = async::unix_ns();
    const auto made = grant::sign(issuer, {.id = id,
                                           .issuer = issuer.fingerprint,
                                           .holder = holder,
                                           .destination = destination,
                                           .sources_sha256 = grant::digest_of({"data/x"}),
                                           .path = "data/y",
                                           .not_before_unix_ns = now,
                                           .start_by_unix_ns = now + grant::kStartWithinNs,
                                           .end_by_unix_ns = now + grant::kEndWithinNs});
    EXPECT_TRUE(made);
    return *made;
  }
  // ---- this node is the destination ----
  transfer::SignedGrant to_here() const { return grant_by(home_self_, beta_.fingerprint, self_.fingerprint); }
  static Hello with_grant(const transfer::SignedGrant& grant, char id = '1') {
    Hello hello = transfer::make_hello(id_of(id));
    hello.grant = grant;
    return hello;
  }
  Failure refused(const std::shared_ptr<runtime::FakeConnection>& connection) {
    run_until([&] { return connection->closed(); });
    const auto said = connection->said<Failure>();
    EXPECT_EQ(said.size(), 1U);
    return said.empty() ? Failure{} : said.front();
  }
  // ---- this node is the source ----
  transfer::Order order(const transfer::SignedGrant& grant) const {
    return {.grant = grant, .source_paths = {"data/x"}, .destination = "data/y"};
  }
  transfer::SignedGrant from_here() const {
    return grant_by(home_self_, self_.fingerprint, beta_.fingerprint);
  }
  std::shared_ptr<runtime::FakeConnection> call_about(char id, const identity::Peer& peer) {
    Hello hello = transfer::make_hello(id_of(id));
    hello.orders = true;
    hello.inquires = true;
    return call(hello, peer);
  }
  std::shared_ptr<runtime::FakeConnection> give(const transfer::Order& order) {
    const auto connection = call_about('1', home_);
    connection->say(order);
    return connection;
  }
  // A session that ends just then is asked for again.
  std::shared_ptr<runtime::FakeConnection> told(const transfer::Order& order) {
    for (;;) {
      const auto connection = give(order);
      run_until([&] { return connection->closed() || !connection->said<OrderState>().empty(); });
      if (!connection->said<OrderState>().empty()) return connection;
      EXPECT_EQ(connection->said<Failure>().at(0).code, static_cast<uint32_t>(ErrorCode::kResources));
    }
  }
  std::string audited() {
    settle();
    std::ifstream in(root_ / "audit.ndjson");
    return {std::istreambuf_iterator<char>(in), {}};
  }

  identity::Identity self_, home_self_, beta_self_;
  identity::Peer home_;
  std::unique_ptr<Orders> orders_;
};

// ---- the destination -----------------------------------------------------------------------------

TEST_F(OrdersTest, ACallWithAGrantBeginsASessionForItsIssuer) {
  const auto connection = call(with_grant(to_here()));
  run_until([&] { return !connection->said<Hello>().empty(); });
  const Sessions::Task task = sessions_->active(id_of('1'));
  ASSERT_TRUE(task);
  EXPECT_EQ(task->transfer().peer(), "beta");
  ASSERT_TRUE(task->transfer().job().granted);
  EXPECT_EQ(task->transfer().job().granted->issuer, "home");
  EXPECT_EQ(sessions_->list()[0].asker.ordered_by, "home");
  run_until([&] { return audited().find(R"("ordered_by":"home")") != std::string::npos; });
}

TEST_F(OrdersTest, ASessionWithAGrantGoesOnByThatGrantAlone) {
  const auto first = call(with_grant(to_here()));
  run_until([&] { return !first->said<Hello>().empty(); });
  const auto without = call(transfer::make_hello(id_of('1')));
  EXPECT_EQ(refused(without).code, static_cast<uint32_t>(ErrorCode::kPeerUntrusted));
  EXPECT_FALSE(first->closed());
  const auto again = call(with_grant(sessions_->active(id_of('1'))->transfer().job().granted->grant));
  run_until([&] { return !again->said<Hello>().empty(); });
  EXPECT_TRUE(again->said<Failure>().empty());
}

TEST_F(OrdersTest, ASessionWithoutAGrantGoesOnWithoutOne) {
  const auto first = call(transfer::make_hello(id_of('1')));
  run_until([&] { return !first->said<Hello>().empty(); });
  EXPECT_EQ(refused(call(with_grant(to_here()))).code, static_cast<uint32_t>(ErrorCode::kPeerUntrusted));
  EXPECT_FALSE(sessions_->active(id_of('1'))->transfer().job().granted);
}

TEST_F(OrdersTest, AGrantForOthersOpensNothing) {
  for (const transfer::SignedGrant& grant :
       {grant_by(home_self_, home_.fingerprint, self_.fingerprint),
        grant_by(home_self_, beta_.fingerprint, beta_.fingerprint),
        grant_by(home_self_, beta_.fingerprint, self_.fingerprint, id_of('2'))})
    EXPECT_EQ(refused(call(with_grant(grant))).code, static_cast<uint32_t>(ErrorCode::kPeerUntrusted));
  EXPECT_TRUE(sessions_->list().empty());
  run_until([&] { return audited().find(R"("event":"grant_refused")") != std::string::npos; });
}

TEST_F(OrdersTest, ASecondPresenterEndsTheSession) {
  const transfer::SignedGrant grant = to_here();
  const auto first = call(with_grant(grant));
  run_until([&] { return !first->said<Hello>().empty(); });
  EXPECT_NE(refused(call(with_grant(grant), home_)).message.find("given to another node"), std::string::npos);
  run_until([&] { return sessions_->active(id_of('1')) == nullptr; });
  ASSERT_TRUE(sessions_->list()[0].error);
  EXPECT_NE(sessions_->list()[0].error->message.find("home has shown the grant"), std::string::npos);
}

TEST_F(OrdersTest, SomebodyElsesGrantUnderTheSameIdEndsNothing) {
  const auto first = call(with_grant(to_here()));
  run_until([&] { return !first->said<Hello>().empty(); });
  const auto other = call(with_grant(grant_by(beta_self_, home_.fingerprint, self_.fingerprint)), home_);
  // As for any session that is not the caller's, which hears nothing of it.
  EXPECT_EQ(refused(other).code, static_cast<uint32_t>(ErrorCode::kIncompatible));
  EXPECT_TRUE(sessions_->active(id_of('1')));
}

// ---- the source ----------------------------------------------------------------------------------

TEST_F(OrdersTest, AnOrderBeginsASessionAndIsToldOfIt) {
  std::ofstream(path("x")) << "content";
  const auto connection = give(order(from_here()));
  run_until([&] { return !connection->said<OrderState>().empty(); });
  ASSERT_EQ(connection->said<Hello>().size(), 1U);
  EXPECT_TRUE(connection->said<Hello>()[0].orders);
  ASSERT_EQ(sessions_->list().size(), 1U);
  EXPECT_EQ(sessions_->list()[0].peer, "beta");
  EXPECT_EQ(sessions_->list()[0].asker.ordered_by, "home");
  // Who hangs up changes nothing; who comes back finds it.
  connection->close();
  const auto again = told(order(from_here()));
  EXPECT_EQ(sessions_->list().size(), 1U);
  // beta does not answer, so it ends, and is told of after its end as well.
  run_until([&] { return again->closed(); });
  const uint32_t end = again->said<OrderState>().back().state;
  EXPECT_EQ(end, 6U);  // FAILED
  const auto late = told(order(from_here()));
  run_until([&] { return late->closed(); });
  EXPECT_EQ(late->said<OrderState>().back().state, end);
}

TEST_F(OrdersTest, WhatThisNodeHasForgottenIsNotBegunAnew) {
  std::ofstream(path("x")) << "content";
  Hello hello = transfer::make_hello(id_of('1'));
  hello.orders = true;
  hello.known = true;
  const auto connection = call(hello, home_);
  connection->say(order(from_here()));
  EXPECT_EQ(refused(connection).code, static_cast<uint32_t>(ErrorCode::kIncompatible));
  EXPECT_TRUE(sessions_->list().empty());
}

TEST_F(OrdersTest, AnOrderOfAFileThatIsNotThereIsRefused) {
  EXPECT_EQ(refused(give(order(from_here()))).code, static_cast<uint32_t>(ErrorCode::kSourceUnreadable));
  EXPECT_TRUE(sessions_->list().empty());
  run_until([&] { return audited().find(R"("result":"source_unreadable")") != std::string::npos; });
  EXPECT_NE(audited().find(R"("event":"grant_refused","session":")" + id_of('1') + R"(","peer":"home")"),
            std::string::npos)
      << audited();
}

TEST_F(OrdersTest, AnOrderIsItsGrantsAndNoOther) {
  std::ofstream(path("x")) << "content";
  std::ofstream(path("z")) << "content";
  transfer::Order other = order(from_here());
  other.source_paths = {"data/z"};
  EXPECT_EQ(refused(give(other)).code, static_cast<uint32_t>(ErrorCode::kPeerUntrusted));
  other = order(from_here());
  other.destination = "data/elsewhere";
  EXPECT_EQ(refused(give(other)).code, static_cast<uint32_t>(ErrorCode::kPeerUntrusted));
  other = order(from_here());
  other.options.overwrite = true;
  EXPECT_EQ(refused(give(other)).code, static_cast<uint32_t>(ErrorCode::kPeerUntrusted));
  EXPECT_TRUE(sessions_->list().empty());
}

TEST_F(OrdersTest, NobodyOrdersForAnother) {
  std::ofstream(path("x")) << "content";
  const auto connection = call_about('1', beta_);
  connection->say(order(from_here()));
  EXPECT_NE(refused(connection).message.find("beta orders a transfer for home"), std::string::npos);
  EXPECT_TRUE(sessions_->list().empty());
}

TEST_F(OrdersTest, TheIdOfAnothersSessionIsNobodysToOrder) {
  std::ofstream(path("x")) << "content";
  const std::string id = begin();  // an operator's
  const transfer::SignedGrant grant = grant_by(home_self_, self_.fingerprint, beta_.fingerprint, id);
  Hello hello = transfer::make_hello(id);
  hello.orders = true;
  const auto connection = call(hello, home_);
  connection->say(order(grant));
  EXPECT_EQ(refused(connection).code, static_cast<uint32_t>(ErrorCode::kIncompatible));
  EXPECT_EQ(sessions_->find(id)->asker.ordered_by, "");
}

// ---- who orders ----------------------------------------------------------------------------------

TEST_F(OrdersTest, AnOrderStandsInTheJournalAndWaitsForItsSource) {
  orders_ = std::make_unique<Orders>(services_, *sessions_);
  Wishes wishes{.peer = "beta", .sources = {"data/x"}, .destination = "data/y"};
  wishes.source_node = "home";
  const Result<std::string> id = await(orders_->begin(wishes));
  ASSERT_TRUE(id) << id.error().message;
  run_until([&] { return sessions_->find(*id)->waiting_for.find("node home (") == 0; });
  EXPECT_EQ(sessions_->find(*id)->asker.source_node, "home");
  const auto saved = services_->journal->session(*id);
  ASSERT_TRUE(saved && *saved && (*saved)->ordered);
  EXPECT_EQ((*saved)->ordered->destination, "beta");
  // Only the two nodes of an order have its log and its files, and this one says so.
  for (const Error& error :
       {sessions_->find_active(*id).error(), Logs(services_, *sessions_).log(*id).error(),
        Logs(services_, *sessions_).set_level(*id, "events").error()}) {
    EXPECT_EQ(error.code, ErrorCode::kUsage);
    EXPECT_NE(error.message.find("between home and beta"), std::string::npos) << error.message;
  }
  // The next control goes on with it.
  orders_->stop();
  settle();
  orders_.reset();
  orders_ = std::make_unique<Orders>(services_, *sessions_);
  orders_->restore(**saved);
  EXPECT_TRUE(orders_->has(id->substr(0, 8)));
  ASSERT_TRUE(await(sessions_->cancel(*id)));
  run_until([&] { return !orders_->has(*id); });
  EXPECT_EQ(sessions_->find(*id)->state, transfer::ViewState::kCancelled);
  EXPECT_NE(sessions_->find_active(*id).error().message.find("has ended already"), std::string::npos);
  EXPECT_EQ((*services_->journal->session(*id))->state, transfer::RecordState::kCancelled);
}

TEST_F(OrdersTest, WhatCannotBeOrderedIsRefusedAtOnce) {
  orders_ = std::make_unique<Orders>(services_, *sessions_);
  const auto code = [&](const std::function<void(Wishes&)>& change) {
    Wishes wishes{.peer = "beta", .sources = {"data/x"}, .destination = "data/y"};
    wishes.source_node = "home";
    change(wishes);
    const Result<std::string> id = await(orders_->begin(wishes));
    return id ? ErrorCode::kOk : id.error().code;
  };
  EXPECT_EQ(code([](Wishes& wishes) { wishes.source_node = "nobody"; }), ErrorCode::kPeerUntrusted);
  EXPECT_EQ(code([](Wishes& wishes) { wishes.peer = "nobody"; }), ErrorCode::kPeerUntrusted);
  EXPECT_EQ(code([](Wishes& wishes) { wishes.peer = "home"; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](Wishes& wishes) { wishes.sources = {""}; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](Wishes& wishes) { wishes.sources.clear(); }), ErrorCode::kUsage);
  EXPECT_EQ(code([](Wishes& wishes) { wishes.destination.clear(); }), ErrorCode::kUsage);
  EXPECT_EQ(code([](Wishes& wishes) { wishes.destination = std::string(3000, 'x'); }), ErrorCode::kUsage);
  EXPECT_EQ(code([](Wishes& wishes) { wishes.user = transfer::User{.uid = 7, .name = "u"}; }),
            ErrorCode::kUsage);
  EXPECT_TRUE(orders_->views().empty());
}

}  // namespace
}  // namespace sluice::node
