// A leg's control stream over real TLS on the loopback, one thread: each effect is answered once, and what
// the peer says comes in order. No test waits for time to pass; the bound in run_until() only ends one that
// hangs.
// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/leg_stream.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/read.hpp>
#include <asio/ssl/stream.hpp>
#include <deque>
#include <filesystem>

#include "control/leg/negotiation.h"
#include "control/peer/codec.h"
#include "control/peer/framing.h"
#include "control/peer/tls.h"
#include "control/runtime/runtime_fixture.h"

namespace sluice::runtime {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

const std::string kId(32, 'a');

using Queue = HeardEvents;

// This node is alpha. Beta listens, and is as many connections as it was called.
class LegStreamTest : public testing::Test {
 protected:
  LegStreamTest() {
    char name[] = "/tmp/sluice-leg-XXXXXX";
    root_ = ::mkdtemp(name);
    const identity::Identity alpha = make("alpha");
    beta_ = make("beta");
    listener_ = listen(beta_, alpha, "alpha", accepted_);
    trust(listener_->port());
    config::Node node;
    node.directory = root_ / "alpha";
    node.name = "alpha";
    auto exports = exports::Exports::open({});
    EXPECT_TRUE(exports);
    services_ = std::make_shared<Services>(io_, node, alpha, std::move(*exports), nullptr);
    own_listener_ = listen(*services_->self, beta_, "beta", calls_);
    stream_ = std::make_unique<LegStream>(services_, queue_, transfer::LegId(0), "beta");
  }
  ~LegStreamTest() override {
    stream_.reset();
    fs::remove_all(root_);
  }

  static identity::Standing standing(const identity::Identity& self, const identity::Peer& peer) {
    return {std::make_shared<const identity::Identity>(self),
            std::make_shared<const identity::Trust>(std::vector<identity::Peer>{peer})};
  }

  using Connections = std::deque<std::shared_ptr<peer::Connection>>;
  identity::Identity make(const std::string& name) {
    EXPECT_TRUE(identity::create(root_ / name, name));
    return *identity::load(root_ / name);
  }
  std::unique_ptr<peer::Listener> listen(const identity::Identity& self, const identity::Identity& other,
                                         const std::string& its_name, Connections& taken) {
    auto now =
        [now = standing(
             self,
             {.name = its_name, .address = "", .fingerprint = other.fingerprint, .certificate_pem = ""})]()
        -> asio::awaitable<Result<identity::Standing>> { co_return now; };
    auto listener =
        peer::listen(io_, self, "127.0.0.1:0", std::make_shared<peer::FrameMemory>(), std::move(now),
                     [&taken](std::unique_ptr<peer::Connection> one) { taken.push_back(std::move(one)); });
    EXPECT_TRUE(listener);
    return std::move(*listener);
  }
  void trust(uint16_t port) {
    const std::string address = port == 0 ? "" : "127.0.0.1:" + std::to_string(port);
    EXPECT_TRUE(identity::trust(root_ / "alpha", "beta", address, beta_.certificate_pem, false));
  }

  void run_until(const std::function<bool()>& condition) {
    while (!condition()) ASSERT_GT(io_.run_one_for(30s), 0U) << "hangs";
  }
  template <typename E>
  void await(size_t count = 1) {
    run_until([&] { return queue_->all<E>().size() >= count; });
  }
  std::shared_ptr<peer::Connection> connected() {
    stream_->perform(transfer::Call{});
    await<transfer::CallEnded>();
    run_until([&] { return !accepted_.empty(); });
    return accepted_.front();
  }
  // Beta calls alpha.
  std::shared_ptr<peer::Connection> call_of_beta() {
    std::shared_ptr<peer::Connection> caller;
    const identity::Peer alpha{"alpha", "127.0.0.1:" + std::to_string(own_listener_->port()),
                               services_->self->fingerprint, ""};
    asio::co_spawn(io_, connect(beta_, alpha, &caller), asio::detached);
    const size_t before = calls_.size();
    run_until([&] { return caller && calls_.size() > before; });
    return caller;
  }
  static asio::awaitable<void> connect(identity::Identity self, identity::Peer peer,
                                       std::shared_ptr<peer::Connection>* to) {
    const identity::Standing now = standing(self, peer);
    const auto frames = std::make_shared<peer::FrameMemory>();
    peer::OnOffer on_offer = [](const identity::Offer&) {};
    Result<std::unique_ptr<peer::Connection>> one =
        co_await peer::connect(now, peer, 10'000, frames, std::move(on_offer));
    if (one) *to = std::move(*one);
  }
  // What this end of a connection hears until it ends; nothing: it has ended.
  std::optional<transfer::Message> hear(const std::shared_ptr<peer::Connection>& connection) {
    std::optional<Result<peer::PeerMessage>> heard;
    asio::co_spawn(io_, receive(connection, &heard), asio::detached);
    run_until([&] { return heard.has_value(); });
    return *heard ? peer::from_wire(**heard) : std::nullopt;
  }
  static asio::awaitable<void> receive(std::shared_ptr<peer::Connection> connection,
                                       std::optional<Result<peer::PeerMessage>>* heard) {
    heard->emplace(co_await connection->receive());
  }

  fs::path root_;
  asio::io_context io_{1};
  identity::Identity beta_;
  Connections accepted_;  // by beta
  Connections calls_;     // of beta
  std::unique_ptr<peer::Listener> listener_;
  std::unique_ptr<peer::Listener> own_listener_;
  std::shared_ptr<Services> services_;
  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();
  std::unique_ptr<LegStream> stream_;
};

TEST_F(LegStreamTest, ACallIsAnsweredOnceAndCarriesWordsInOrder) {
  const auto beta = connected();
  ASSERT_EQ(queue_->all<transfer::CallEnded>().size(), 1U);
  EXPECT_TRUE(queue_->all<transfer::CallEnded>().front().status);
  stream_->perform(transfer::Send{.leg = transfer::LegId(0), .message = transfer::make_hello(kId)});
  EXPECT_EQ(std::get<transfer::Hello>(*hear(beta)).session_id, kId);
  for (uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(beta->send(peer::to_wire(transfer::SessionDone{.files = i})));
  await<transfer::Received>(20);
  for (uint64_t i = 0; i < 20; ++i)
    EXPECT_EQ(std::get<transfer::SessionDone>(queue_->all<transfer::Received>()[i].message).files, i);
  beta->close();
  await<transfer::StreamEnded>();
  EXPECT_EQ(queue_->all<transfer::CallEnded>().size(), 1U);
}

TEST_F(LegStreamTest, ACallCarriesItsFirstWords) {
  stream_->perform(transfer::Call{.leg = transfer::LegId(0),
                                  .words = {transfer::make_hello(kId), transfer::Specification{}}});
  stream_->perform(
      transfer::Send{.leg = transfer::LegId(0), .message = transfer::SessionDone{}});  // no stream yet
  await<transfer::CallEnded>();
  stream_->perform(transfer::Send{.leg = transfer::LegId(0), .message = transfer::Heartbeat{}});
  run_until([&] { return !accepted_.empty(); });
  const auto beta = accepted_.front();
  EXPECT_EQ(std::get<transfer::Hello>(*hear(beta)).session_id, kId);
  beta->set_stage(peer::Stage::kGreeting);
  EXPECT_TRUE(std::holds_alternative<transfer::Specification>(*hear(beta)));
  EXPECT_TRUE(std::holds_alternative<transfer::Heartbeat>(*hear(beta)));
}

// The verdict on who calls arrives though it has spoken already.
TEST_F(LegStreamTest, ACallerThatIsNotTrustedHearsSo) {
  own_listener_.reset();
  const identity::Identity stranger = make("stranger");
  listener_ = listen(beta_, stranger, "alpha", accepted_);
  trust(listener_->port());
  for (int i = 1; i <= 5; ++i) {
    stream_->perform(transfer::Call{.leg = transfer::LegId(0),
                                    .words = {transfer::make_hello(kId), transfer::Specification{}}});
    await<transfer::CallEnded>(i);
    EXPECT_EQ(queue_->all<transfer::CallEnded>().back().status.error().code, ErrorCode::kPeerUntrusted)
        << queue_->all<transfer::CallEnded>().back().status.error().message;
  }
  EXPECT_TRUE(accepted_.empty());
}

TEST_F(LegStreamTest, ACallThatNobodyTakesIsAnsweredToo) {
  listener_.reset();
  stream_->perform(transfer::Call{});
  await<transfer::CallEnded>();
  EXPECT_EQ(queue_->all<transfer::CallEnded>().front().status.error().code, ErrorCode::kPeerUnreachable);
}

// Nobody has said where it is: it only calls.
TEST_F(LegStreamTest, APeerWithoutAnAddressCannotBeCalled) {
  fs::remove(root_ / "alpha" / "trusted" / "beta.toml");
  stream_->perform(transfer::Call{});
  await<transfer::CallEnded>();
  EXPECT_FALSE(queue_->all<transfer::CallEnded>().front().status);
  EXPECT_TRUE(accepted_.empty());
}

TEST_F(LegStreamTest, HangingUpWhileItCallsAnswersAtOnceAndOnce) {
  stream_->perform(transfer::Call{});
  stream_->perform(transfer::HangUp{});
  ASSERT_EQ(queue_->all<transfer::CallEnded>().size(), 1U);
  EXPECT_FALSE(queue_->all<transfer::CallEnded>().front().status);
  stream_->perform(transfer::Call{});
  await<transfer::CallEnded>(2);
  EXPECT_TRUE(queue_->all<transfer::CallEnded>().back().status);
  EXPECT_EQ(queue_->all<transfer::StreamEnded>().size(), 0U) << "of a call that was hung up nothing is heard";
}

// ---- what is dialled before there is a call ----

TEST_F(LegStreamTest, ACallTakesTheConnectionThatWasDialledForIt) {
  for (const bool open : {false, true}) {
    SCOPED_TRACE(open ? "it is open" : "it is being opened");
    const size_t before = queue_->count<transfer::CallEnded>();
    accepted_.clear();
    stream_->perform(transfer::Dial{});
    if (open) run_until([this] { return stream_->dialled(); });
    EXPECT_EQ(queue_->count<transfer::CallEnded>(), before) << "nobody has called";
    stream_->perform(transfer::Call{.leg = transfer::LegId(0), .words = {transfer::make_hello(kId)}});
    await<transfer::CallEnded>(before + 1);
    EXPECT_TRUE(queue_->all<transfer::CallEnded>().back().status);
    EXPECT_FALSE(stream_->dialled());
    run_until([this] { return !accepted_.empty(); });
    const auto beta = accepted_.front();
    EXPECT_EQ(std::get<transfer::Hello>(*hear(beta)).session_id, kId) << "and heard nothing before";
    stream_->perform(transfer::HangUp{});
    EXPECT_FALSE(hear(beta).has_value());
    EXPECT_EQ(accepted_.size(), 1U);
    EXPECT_EQ(queue_->count<transfer::CallEnded>(), before + 1);
  }
}

// The verdict takes a round trip more. Nobody gives one here.
TEST_F(LegStreamTest, ACallWhileItDialsIsHeardBeforeThePeersVerdict) {
  using asio::ip::tcp;
  const transfer::Call call{.leg = transfer::LegId(0), .words = {transfer::make_hello(kId)}};
  const std::string expected = peer::encode_frame(peer::to_wire(call.words[0]).SerializeAsString());
  const auto context = peer::make_tls_context(beta_);
  ASSERT_TRUE(context);
  peer::PeerCheck check;
  check.accept = [](const identity::Shown&) { return Status(); };
  tcp::acceptor acceptor(io_, {asio::ip::address_v4::loopback(), 0});
  trust(acceptor.local_endpoint().port());
  for (const bool called_first : {false, true}) {
    SCOPED_TRACE(called_first ? "called before the handshake" : "called after it");
    stream_->perform(transfer::Dial{});
    if (called_first) stream_->perform(call);
    asio::ssl::stream<tcp::socket> beta(io_, **context);
    peer::set_peer_check(beta.native_handle(), &check);
    int done = 0;
    const auto count = [&done](const asio::error_code& error, auto...) { done += error ? -100 : 1; };
    acceptor.async_accept(beta.next_layer(), count);
    run_until([&] { return done == 1; });
    beta.async_handshake(asio::ssl::stream_base::server, count);
    run_until([&] { return done == 2; });
    if (!called_first) stream_->perform(call);
    std::string heard(expected.size(), 0);
    asio::async_read(beta, asio::buffer(heard), count);
    run_until([&] { return done == 3; });
    EXPECT_EQ(heard, expected);
    stream_->perform(transfer::HangUp{});
    EXPECT_FALSE(queue_->all<transfer::CallEnded>().back().status);
    EXPECT_TRUE(queue_->all<transfer::CallEnded>().back().said);
  }
}

TEST_F(LegStreamTest, WhyDialledInVainTheCallSays) {
  listener_.reset();
  stream_->perform(transfer::Dial{});
  stream_->perform(transfer::Call{});
  await<transfer::CallEnded>();
  EXPECT_EQ(queue_->all<transfer::CallEnded>().front().status.error().code, ErrorCode::kPeerUnreachable);
  EXPECT_FALSE(queue_->all<transfer::CallEnded>().front().said);
  EXPECT_EQ(queue_->events.size(), 1U);
}

TEST_F(LegStreamTest, HangingUpEndsWhatWasDialledAndTheNextCallHasItsOwn) {
  for (const bool open : {false, true}) {
    SCOPED_TRACE(open ? "it is open" : "it is being opened");
    accepted_.clear();
    stream_->perform(transfer::Dial{});
    if (open) run_until([this] { return stream_->dialled(); });
    stream_->perform(transfer::HangUp{});
    EXPECT_FALSE(stream_->dialled());
    run_until([this] { return !accepted_.empty(); });
    EXPECT_FALSE(hear(accepted_.front()).has_value());
    EXPECT_EQ(queue_->count<transfer::StreamEnded>(), 0U);
    const size_t before = queue_->count<transfer::CallEnded>();
    stream_->perform(transfer::Call{});
    await<transfer::CallEnded>(before + 1);
    EXPECT_TRUE(queue_->all<transfer::CallEnded>().back().status);
    run_until([this] { return accepted_.size() == 2; });
    stream_->perform(transfer::HangUp{});
  }
}

// A second later: it may wait for its turn, and the peer for its first word.
TEST_F(LegStreamTest, WhatNoCallComesForIsGivenUp) {
  stream_->perform(transfer::Dial{});
  run_until([this] { return !accepted_.empty(); });
  EXPECT_FALSE(hear(accepted_.front()).has_value());
  EXPECT_FALSE(stream_->dialled());
  EXPECT_TRUE(queue_->events.empty());
}

TEST_F(LegStreamTest, WhatWasSaidBeforeHangingUpIsHeard) {
  const auto beta = connected();
  stream_->perform(transfer::Send{.leg = transfer::LegId(0), .message = transfer::Failure{.code = 12}});
  stream_->perform(transfer::HangUp{});
  EXPECT_EQ(std::get<transfer::Failure>(*hear(beta)).code, 12U);
  EXPECT_FALSE(hear(beta).has_value());
  EXPECT_TRUE(queue_->all<transfer::StreamEnded>().empty()) << "whoever hangs up knows";
}

TEST_F(LegStreamTest, AStreamThatIsDroppedEndsAsIfItHadBeenLost) {
  const auto beta = connected();
  EXPECT_EQ(stream_->stream()->peer().name, "beta");
  EXPECT_EQ(stream_->stream()->own_fingerprint(), services_->self->fingerprint);
  stream_->drop_stream("a new key");
  ASSERT_EQ(queue_->all<transfer::StreamEnded>().size(), 1U);
  EXPECT_EQ(queue_->all<transfer::StreamEnded>().front().reason, "a new key");
  EXPECT_FALSE(stream_->stream());
  EXPECT_FALSE(hear(beta).has_value());
  stream_->drop_stream("again");
  EXPECT_EQ(queue_->all<transfer::StreamEnded>().size(), 1U);
}

TEST_F(LegStreamTest, ACallOfThePeerWaitsWithItsWordsUntilItIsTaken) {
  const auto beta = call_of_beta();
  stream_->peer_called(calls_.front(), transfer::make_hello(kId));
  EXPECT_EQ(queue_->all<transfer::PeerCalled>().front().hello.session_id, kId);
  for (uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(beta->send(peer::to_wire(transfer::SessionDone{.files = i})));
  stream_->perform(transfer::TakeCall{});
  await<transfer::Received>(5);
  for (uint64_t i = 0; i < 5; ++i)
    EXPECT_EQ(std::get<transfer::SessionDone>(queue_->all<transfer::Received>()[i].message).files, i);
  EXPECT_TRUE(queue_->all<transfer::CallLost>().empty());
}

// Whoever takes a call while its own is under way has two connections when that one is answered.
TEST_F(LegStreamTest, ALegHasOneStream) {
  stream_->perform(transfer::Call{});
  const auto taken = std::make_shared<FakeConnection>(io_, identity::Peer{.name = "beta"});
  stream_->peer_called(taken, transfer::make_hello(kId));
  stream_->perform(transfer::TakeCall{});
  ASSERT_EQ(stream_->stream(), taken);
  await<transfer::CallEnded>();
  ASSERT_TRUE(queue_->all<transfer::CallEnded>()[0].status);
  EXPECT_NE(stream_->stream(), taken);
  run_until([&] { return taken->closed(); });
  EXPECT_TRUE(queue_->all<transfer::StreamEnded>().empty());
}

TEST_F(LegStreamTest, ACallIsRefusedWithAWord) {
  const auto beta = call_of_beta();
  stream_->peer_called(calls_.front(), transfer::make_hello(kId));
  stream_->perform(transfer::RefuseCall{.leg = transfer::LegId(0), .word = transfer::Pause{.node = "alpha"}});
  EXPECT_EQ(std::get<transfer::Pause>(*hear(beta)).node, "alpha");
  EXPECT_FALSE(hear(beta).has_value());
  EXPECT_TRUE(queue_->all<transfer::CallLost>().empty());
}

TEST_F(LegStreamTest, ACallThatEndsWhileItWaitsIsLost) {
  const auto beta = call_of_beta();
  stream_->peer_called(calls_.front(), transfer::make_hello(kId));
  beta->close();
  await<transfer::CallLost>();
  EXPECT_TRUE(queue_->all<transfer::StreamEnded>().empty());
}

TEST_F(LegStreamTest, ASecondCallTakesThePlaceOfTheFirst) {
  const auto first = call_of_beta();
  stream_->peer_called(calls_.front(), transfer::make_hello(kId));
  const auto second = call_of_beta();
  stream_->peer_called(calls_.back(), transfer::make_hello(kId));
  EXPECT_FALSE(hear(first).has_value());
  stream_->perform(transfer::TakeCall{});
  ASSERT_TRUE(second->send(peer::to_wire(transfer::SessionDone{.files = 7})));
  await<transfer::Received>();
  EXPECT_EQ(queue_->all<transfer::PeerCalled>().size(), 2U);
  EXPECT_TRUE(queue_->all<transfer::CallLost>().empty()) << "one that waited before is gone without a word";
}

}  // namespace
}  // namespace sluice::runtime
