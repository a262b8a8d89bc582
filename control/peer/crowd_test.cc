// Many callers at once, and little to serve them with: those who are trusted are served all the same.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <asio/read.hpp>
#include <asio/redirect_error.hpp>

#include "control/peer/connection_fixture.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::peer {
namespace {

class CrowdTest : public ConnectionTest {
 protected:
  CrowdTest() {
    rlimit limit{};
    ::getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  // Somebody at 127.0.0.`host` who says nothing.
  tcp::socket silent_caller(uint8_t host) {
    tcp::socket socket(io_);
    socket.open(tcp::v4());
    socket.bind({asio::ip::address_v4({127, 0, 0, host}), 0});
    socket.connect({asio::ip::address_v4::loopback(), listener_->port()});
    io_.poll();
    return socket;
  }
  static bool was_let_go(tcp::socket& socket) {
    socket.non_blocking(true);
    char byte = 0;
    asio::error_code failure;
    socket.read_some(asio::buffer(&byte, 1), failure);
    return failure != asio::error::would_block;
  }
  void expect_served() {
    auto [caller, called] = pair();
    ASSERT_TRUE(caller->send(failure(1, "served")));
    EXPECT_EQ(run(called->receive())->failure().message(), "served");
  }
  // A peer's stream, in a session at beta, of which beta has begun to read a frame of this length.
  std::unique_ptr<asio::ssl::stream<tcp::socket>> half_frame(uint32_t bytes,
                                                             std::optional<Result<PeerMessage>>* message) {
    auto raw = raw_caller();
    callees_.push_back(std::move(accepted_.front()));
    accepted_.clear();
    std::string header = encode_frame({});
    for (int i = 0; i < 4; ++i) header[i] = static_cast<char>(bytes >> (24 - 8 * i));
    spawn(callees_.back()->receive(), message);
    asio::write(*raw, asio::buffer(header));
    for (int i = 0; i < 100; ++i) io_.poll();
    return raw;
  }

  std::vector<std::unique_ptr<Connection>> callees_;
};

TEST_F(CrowdTest, AThousandSilentStrangersOfFiftyAddressesShutNobodyOut) {
  auto [caller, called] = pair();  // in a session: it stays
  std::vector<tcp::socket> strangers;
  for (int i = 0; i < 1000; ++i) {
    strangers.push_back(silent_caller(static_cast<uint8_t>(1 + i % 50)));
    if (i % 100 == 0) expect_served();
  }
  expect_served();
  ASSERT_TRUE(caller->send(failure(2, "still there")));
  EXPECT_EQ(run(called->receive())->failure().message(), "still there");
  int let_go = 0;
  for (tcp::socket& stranger : strangers) let_go += was_let_go(stranger) ? 1 : 0;
  EXPECT_GE(let_go, 1000 - 256 - 32) << "those at the address where somebody is trusted have 32 more";
  EXPECT_FALSE(was_let_go(strangers.back())) << "the newest is waited for";
}

TEST_F(CrowdTest, TheOldestOfTheAddressWithTheMostGoes) {
  std::vector<tcp::socket> few;
  for (int i = 0; i < 4; ++i) few.push_back(silent_caller(2));
  std::vector<tcp::socket> many;
  for (int i = 0; i < 300; ++i) many.push_back(silent_caller(static_cast<uint8_t>(10 + i % 16)));
  for (tcp::socket& one : few) EXPECT_FALSE(was_let_go(one));
  EXPECT_TRUE(was_let_go(many.front()));
}

TEST_F(CrowdTest, HandshakesOfStrangersWaitForEachOtherAndHoldUpNobodyWhoIsKnown) {
  listener_ = std::move(*listen(
      io_, beta_, "127.0.0.1:0", memory_,
      [this]() -> asio::awaitable<Result<identity::Standing>> {
        co_return standing(beta_, {"alpha", "", alpha_.fingerprint, ""});
      },
      [this](std::unique_ptr<Connection> connection) { accepted_.push_back(std::move(connection)); },
      [](const identity::Offer&) {}, {.strangers = {.per_s = 1, .at_once = 2}}));
  expect_served();
  std::vector<tcp::socket> strangers;
  for (int i = 0; i < 40; ++i) {
    strangers.push_back(silent_caller(static_cast<uint8_t>(2 + i / 20)));
    asio::write(strangers.back(), asio::buffer("no TLS\n", 7));
  }
  const CallerCounts& counts = listener_->counts();
  run_until([&] { return counts.failed > 0 && counts.waited > 30; });
  expect_served();
  EXPECT_EQ(counts.trusted, 2U);
  EXPECT_LT(counts.failed, 30U) << "they wait";
  EXPECT_FALSE(was_let_go(strangers.back()));
  for (int i = 0; i < 40; ++i) strangers.push_back(silent_caller(2));
  EXPECT_TRUE(was_let_go(strangers[1])) << "whoever waits goes first";
  EXPECT_GE(counts.let_go, 20U);
}

TEST_F(CrowdTest, ATrustedPeerThatSaysNothingDisplacesOnlyItself) {
  auto [caller, called] = pair();
  std::vector<std::unique_ptr<Connection>> idle;
  std::vector<std::unique_ptr<Connection>> waiting;
  for (int i = 0; i < 140; ++i) {
    auto connection = run(call(alpha_, peer_beta()));
    ASSERT_TRUE(connection) << i << ": " << connection.error().message;
    idle.push_back(std::move(*connection));
    run_until([&] { return !accepted_.empty(); });
    waiting.push_back(std::move(accepted_.front()));
    accepted_.clear();
  }
  EXPECT_FALSE(run(idle.front()->receive())) << "it was let go";
  ASSERT_TRUE(caller->send(failure(2, "in a session")));
  EXPECT_EQ(run(called->receive())->failure().message(), "in a session");
}

TEST_F(CrowdTest, AFirstMessageIsSmall) {
  const auto raw = raw_caller();
  accepted_[0]->set_stage(Stage::kHello);
  asio::write(*raw, asio::buffer(encode_frame(std::string(kHelloBytesMax + 1, 'x'))));
  const auto message = run(accepted_[0]->receive());
  ASSERT_FALSE(message);
  EXPECT_NE(message.error().message.find("more than 4096 bytes"), std::string::npos)
      << message.error().message;
}

TEST_F(CrowdTest, BigFramesOfOnePeerAreReadOneAfterTheOther) {
  constexpr uint32_t kBytes = 15U << 20;
  std::optional<Result<PeerMessage>> received[3];
  std::vector<std::unique_ptr<asio::ssl::stream<tcp::socket>>> raws;
  for (auto& each : received) raws.push_back(half_frame(kBytes, &each));
  EXPECT_EQ(memory_->in_bytes(), kBytes) << "of three";
  const std::string half(kBytes / 2, 'x');
  run(asio::async_write(*raws[0], asio::buffer(half), asio::redirect_error(asio::use_awaitable, failure_)));
  EXPECT_EQ(memory_->in_bytes(), kBytes);
  raws[0]->next_layer().close();
  run_until([&] { return received[0].has_value(); });
  callees_[0].reset();
  EXPECT_EQ(memory_->in_bytes(), kBytes) << "the next one's turn";
  callees_.clear();
  run_until([&] { return received[1].has_value() && received[2].has_value(); });
  EXPECT_EQ(memory_->in_bytes(), 0U);
}

TEST_F(CrowdTest, SmallFramesPassWhileABigOneIsUnderWay) {
  std::optional<Result<PeerMessage>> received;
  const auto raw = half_frame(15U << 20, &received);
  auto [caller, called] = pair();
  ASSERT_TRUE(caller->send(failure(3, std::string(60'000, 'x'))));
  EXPECT_EQ(run(called->receive())->failure().code(), 3U);
  EXPECT_FALSE(received);
  callees_.clear();
  run_until([&] { return received.has_value(); });
}

TEST_F(CrowdTest, ANodeThatCannotJudgeSaysSoAndNotThatItDoesNotTrust) {
  trouble_ = Error{ErrorCode::kResources, "no descriptors"};
  const Error error = connect_error(alpha_, peer_beta());
  EXPECT_EQ(error.code, ErrorCode::kResources) << error.message;
  EXPECT_NE(error.message.find("beta at 127.0.0.1"), std::string::npos) << error.message;
  trouble_.reset();
  expect_served();
}

TEST_F(CrowdTest, WithoutDescriptorsCallersAreStillToldWhy) {
  context_ = *make_tls_context(alpha_);
  check_.accept = [](const identity::Shown&) { return Status(); };
  for (int round = 0; round < 3; ++round) {
    asio::ssl::stream<tcp::socket> stream(io_, *context_);
    set_peer_check(stream.native_handle(), &check_);
    stream.next_layer().connect({asio::ip::address_v4::loopback(), listener_->port()});
    std::vector<UniqueFd> all;
    for (int fd = ::open("/dev/null", O_RDONLY); fd >= 0; fd = ::open("/dev/null", O_RDONLY))
      all.emplace_back(fd);
    ASSERT_EQ(errno, EMFILE);
    trouble_ = Error{ErrorCode::kResources, "no descriptors"};  // as when files of peers cannot be opened
    run(stream.async_handshake(asio::ssl::stream_base::client,
                               asio::redirect_error(asio::use_awaitable, failure_)));
    uint8_t greeting[4];
    if (!failure_)
      run(asio::async_read(stream, asio::buffer(greeting),
                           asio::redirect_error(asio::use_awaitable, failure_)));
    EXPECT_TRUE(not_judged_by_peer(failure_)) << failure_.message();
  }
  trouble_.reset();
  expect_served();
}

}  // namespace
}  // namespace sluice::peer
