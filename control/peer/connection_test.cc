// Connections between two nodes: what arrives, what is refused, and what the operator is told.
// SPDX-License-Identifier: Apache-2.0
#include "control/peer/connection.h"

#include <gtest/gtest.h>

#include <asio/read.hpp>
#include <asio/redirect_error.hpp>

#include "control/peer/connection_fixture.h"

namespace sluice::peer {
namespace {

TEST_F(ConnectionTest, MessagesArriveInOrderInBothDirections) {
  auto [caller, called] = pair();
  EXPECT_EQ(caller->peer().name, "beta");
  EXPECT_EQ(called->peer().name, "alpha");
  EXPECT_EQ(caller->remote_address(), "127.0.0.1:" + std::to_string(listener_->port()));
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(caller->send(failure(i, "there")));
    ASSERT_TRUE(called->send(failure(i, "back")));
  }
  for (uint32_t i = 0; i < 100; ++i) {
    const auto there = run(called->receive());
    ASSERT_TRUE(there) << there.error().message;
    EXPECT_EQ(there->failure().code(), i);
    EXPECT_EQ(there->failure().message(), "there");
    EXPECT_EQ(run(caller->receive())->failure().code(), i);
  }
}

TEST_F(ConnectionTest, AMessageOfNearlyTheLimitArrivesWhole) {
  auto [caller, called] = pair();
  const std::string words(kMessageBytesMax - 100, 'x');
  ASSERT_TRUE(caller->send(failure(7, words)));
  const auto message = run(called->receive());
  ASSERT_TRUE(message) << message.error().message;
  EXPECT_EQ(message->failure().message(), words);
}

TEST_F(ConnectionTest, BothEndsExportOneSecretAndEachConnectionAnother) {
  auto [caller, called] = pair();
  auto [other, other_called] = pair();
  const std::vector<uint8_t> context = {1, 2, 3};
  using Secret = std::array<uint8_t, 32>;
  const auto secret = [](const Connection& of, std::string_view label, const std::vector<uint8_t>& with) {
    Secret out{};
    EXPECT_TRUE(of.export_secret(label, with, out));
    return out;
  };
  const Secret one = secret(*caller, "EXPORTER-sluice-flow-v1", context);
  EXPECT_EQ(one, secret(*called, "EXPORTER-sluice-flow-v1", context));
  EXPECT_NE(one, Secret{});
  EXPECT_NE(one, secret(*caller, "EXPORTER-sluice-flow-v1", {1, 2, 4}));
  EXPECT_NE(one, secret(*caller, "EXPORTER-other", context));
  EXPECT_NE(one, secret(*other, "EXPORTER-sluice-flow-v1", context));
  caller->close();
  Secret out{};
  EXPECT_FALSE(caller->export_secret("EXPORTER-sluice-flow-v1", context, out));
}

TEST_F(ConnectionTest, AMessageBeyondTheLimitIsNotSent) {
  auto [caller, called] = pair();
  EXPECT_FALSE(caller->send(failure(7, std::string(kMessageBytesMax, 'x'))));
  ASSERT_TRUE(caller->send(failure(8, "")));
  EXPECT_EQ(run(called->receive())->failure().code(), 8U);
}

TEST_F(ConnectionTest, WhatWasFlushedBeforeClosingArrivesEvenWithUnreadInput) {
  auto [caller, called] = pair();
  ASSERT_TRUE(called->send(failure(1, std::string(100'000, 'x'))));
  run(called->flush());
  ASSERT_TRUE(caller->send(failure(2, std::string(1'000'000, 'y'))));
  run(caller->flush());
  caller.reset();
  const auto last = run(called->receive());
  ASSERT_TRUE(last) << last.error().message;
  EXPECT_EQ(last->failure().message().size(), 1'000'000U);
  const auto end = run(called->receive());
  ASSERT_FALSE(end);
  EXPECT_EQ(end.error().code, ErrorCode::kPeerUnreachable);
  EXPECT_NE(end.error().message.find("alpha at 127.0.0.1"), std::string::npos) << end.error().message;
  EXPECT_FALSE(called->send(failure(3, "")));
}

TEST_F(ConnectionTest, CloseEndsAPendingReceive) {
  auto [caller, called] = pair();
  std::optional<Result<PeerMessage>> received;
  spawn(caller->receive(), &received);
  io_.poll();
  ASSERT_FALSE(received);
  caller->close();
  run_until([&] { return received.has_value(); });
  EXPECT_EQ(received->error().code, ErrorCode::kPeerUnreachable);
  EXPECT_EQ(caller->send(failure(1, "")).error().code, ErrorCode::kPeerUnreachable);
}

TEST_F(ConnectionTest, AConnectionMayBeDestroyedWhileItsCoroutinesWait) {
  auto [caller, called] = pair();
  std::optional<Result<PeerMessage>> received;
  bool flushed = false;
  spawn(caller->receive(), &received);
  while (caller->send(failure(1, std::string(8'000'000, 'x')))) {  // nobody reads: the queue fills
  }
  asio::co_spawn(io_, caller->flush(), [&](const std::exception_ptr&) { flushed = true; });
  io_.poll();
  ASSERT_FALSE(flushed);
  caller.reset();
  run_until([&] { return received.has_value() && flushed; });
  EXPECT_FALSE(*received);
}

TEST_F(ConnectionTest, AQueueThatIsFullRefusesMore) {
  auto [caller, called] = pair();
  Status status;
  for (int i = 0; i < 6 && status; ++i) status = caller->send(failure(1, std::string(15'000'000, 'x')));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kResources);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(run(called->receive())) << "what was queued still arrives";
  run(caller->flush());
  EXPECT_TRUE(caller->send(failure(2, ""))) << "and then there is room again";
}

TEST_F(ConnectionTest, AStrangerIsToldThatItIsNotTrusted) {
  const auto stranger = make("mallory");
  const Error error = connect_error(stranger, peer_beta());
  EXPECT_EQ(error.code, ErrorCode::kPeerUntrusted);
  EXPECT_NE(error.message.find("does not trust this node"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find(stranger.fingerprint), std::string::npos) << error.message;
  EXPECT_TRUE(accepted_.empty());
}

TEST_F(ConnectionTest, AServerWithAnotherKeyIsRefused) {
  auto peer = peer_beta();
  peer.fingerprint = alpha_.fingerprint;
  const Error error = connect_error(alpha_, peer);
  EXPECT_EQ(error.code, ErrorCode::kPeerUntrusted);
  EXPECT_NE(error.message.find(beta_.fingerprint), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("sluice node trust beta"), std::string::npos) << error.message;
  EXPECT_TRUE(accepted_.empty());
}

TEST_F(ConnectionTest, AnAddressOfAnotherTrustedNodeIsToBeCorrected) {
  const auto gamma = make("gamma");
  auto peer = peer_beta();
  peer.name = "gamma";
  peer.fingerprint = gamma.fingerprint;
  for (const bool by_authority : {false, true}) {
    peer.by_authority = by_authority;
    const identity::Standing both{
        std::make_shared<const identity::Identity>(alpha_),
        std::make_shared<const identity::Trust>(std::vector<identity::Peer>{peer_beta(), peer})};
    auto called = run(connect(both, peer, kTimeoutMs, memory_));
    ASSERT_FALSE(called);
    EXPECT_EQ(called.error().code, ErrorCode::kPeerUntrusted);
    EXPECT_NE(
        called.error().message.find("(that is beta); correct the address: sluice node trust gamma --address"),
        std::string::npos)
        << called.error().message;
  }
}

TEST_F(ConnectionTest, WhoseOwnCertificateHasExpiredIsToldSo) {
  auto stranger = make("mallory");
  stranger.expires_unix_s = 1;
  const Error error = connect_error(stranger, peer_beta());
  EXPECT_EQ(error.code, ErrorCode::kPeerUntrusted);
  EXPECT_NE(error.message.find("own certificate has expired on 1970-01-01"), std::string::npos)
      << error.message;
  EXPECT_NE(error.message.find("sluice node rotate"), std::string::npos) << error.message;
}

TEST_F(ConnectionTest, TrustGivenLaterWorksWithoutARestart) {
  const auto late = make("gamma");
  EXPECT_EQ(connect_error(late, peer_beta()).code, ErrorCode::kPeerUntrusted);
  trusted_by_beta_ = late.fingerprint;
  EXPECT_TRUE(run(call(late, peer_beta())));
}

TEST_F(ConnectionTest, NobodyListeningIsUnreachable) {
  const auto peer = peer_beta();
  listener_.reset();
  const Error error = connect_error(alpha_, peer);
  EXPECT_EQ(error.code, ErrorCode::kPeerUnreachable);
  EXPECT_NE(error.message.find("beta at 127.0.0.1"), std::string::npos) << error.message;
  EXPECT_NE(error.message.find("refused"), std::string::npos) << error.message;
}

TEST_F(ConnectionTest, AServerThatSaysNothingIsUnreachable) {
  tcp::acceptor silent(io_, {asio::ip::address_v4::loopback(), 0});
  identity::Peer peer = peer_beta();
  peer.address = "127.0.0.1:" + std::to_string(silent.local_endpoint().port());
  const Error error = connect_error(alpha_, peer, 50);
  EXPECT_EQ(error.code, ErrorCode::kPeerUnreachable);
  EXPECT_NE(error.message.find("no answer within 50 ms"), std::string::npos) << error.message;
}

TEST_F(ConnectionTest, ANameOrAddressThatLeadsNowhereIsUnreachable) {
  identity::Peer peer = peer_beta();
  peer.address = "host.invalid:7400";
  EXPECT_EQ(connect_error(alpha_, peer).code, ErrorCode::kPeerUnreachable);
  peer.address = "";
  EXPECT_EQ(connect_error(alpha_, peer).code, ErrorCode::kPeerUnreachable);
}

TEST_F(ConnectionTest, AnOversizedFrameEndsTheConnection) {
  const auto raw = raw_caller();
  asio::write(*raw, asio::buffer("\x01\x00\x00\x01", 4));
  const auto message = run(accepted_[0]->receive());
  ASSERT_FALSE(message);
  EXPECT_NE(message.error().message.find("more than 16777216 bytes"), std::string::npos)
      << message.error().message;
  EXPECT_FALSE(accepted_[0]->send(failure(1, "")));
}

TEST_F(ConnectionTest, AMessageThatDoesNotParseEndsTheConnection) {
  const auto raw = raw_caller();
  asio::write(*raw, asio::buffer(encode_frame("\xff\xff\xff")));
  const auto message = run(accepted_[0]->receive());
  ASSERT_FALSE(message);
  EXPECT_NE(message.error().message.find("cannot be read"), std::string::npos) << message.error().message;
}

TEST_F(ConnectionTest, AFrameCutOffByTheEndIsNotDelivered) {
  auto raw = raw_caller();
  asio::write(*raw, asio::buffer(encode_frame(failure(1, "whole").SerializeAsString()).substr(0, 8)));
  raw.reset();
  const auto message = run(accepted_[0]->receive());
  ASSERT_FALSE(message);
  EXPECT_EQ(message.error().code, ErrorCode::kPeerUnreachable);
}

TEST_F(ConnectionTest, OlderTlsAndMissingCertificatesAreRefused) {
  const auto try_with = [&](asio::ssl::context::method method, bool with_certificate) {
    asio::ssl::context context(method);
    if (with_certificate) {
      context.use_certificate_file(alpha_.certificate_file, asio::ssl::context::pem);
      context.use_private_key_file(alpha_.key_file, asio::ssl::context::pem);
    }
    asio::ssl::stream<tcp::socket> stream(io_, context);
    stream.next_layer().connect({asio::ip::address_v4::loopback(), listener_->port()});
    asio::error_code failure;
    run(stream.async_handshake(asio::ssl::stream_base::client,
                               asio::redirect_error(asio::use_awaitable, failure)));
    uint8_t greeting[4];
    if (!failure)
      run(asio::async_read(stream, asio::buffer(greeting),
                           asio::redirect_error(asio::use_awaitable, failure)));
    return !failure;
  };
  EXPECT_FALSE(try_with(asio::ssl::context::tlsv12_client, true));
  EXPECT_FALSE(try_with(asio::ssl::context::tlsv13_client, false));
  EXPECT_TRUE(try_with(asio::ssl::context::tlsv13_client, true)) << "the control: this test can succeed";
}

TEST_F(ConnectionTest, ConnectionsOutliveTheListener) {
  auto [caller, called] = pair();
  listener_.reset();
  ASSERT_TRUE(caller->send(failure(5, "")));
  EXPECT_EQ(run(called->receive())->failure().code(), 5U);
}

TEST_F(ConnectionTest, AnAddressInUseIsAConfigurationError) {
  const auto second = listen(
      io_, beta_, "127.0.0.1:" + std::to_string(listener_->port()), memory_,
      []() -> asio::awaitable<Result<identity::Standing>> {
        co_return identity::Standing{nullptr, nullptr};
      },
      [](std::unique_ptr<Connection>) {});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kConfiguration);
  EXPECT_NE(second.error().message.find("[control] listen"), std::string::npos);
}

}  // namespace
}  // namespace sluice::peer
