// SPDX-License-Identifier: Apache-2.0
#include "control/session/hello.h"

#include <fmt/format.h>

#include <asio/steady_timer.hpp>
#include <charconv>
#include <memory>

#include "control/session/negotiation.h"

namespace sluice::control {
namespace {

constexpr auto kHelloTimeout = std::chrono::seconds(10);
constexpr auto kHangUpTimeout = std::chrono::seconds(2);

}  // namespace

std::string session_id_text(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return text;
}

peer::PeerMessage make_hello(const std::string& session_id) {
  peer::PeerMessage message;
  peer::Hello* hello = message.mutable_hello();
  hello->set_protocol_version_min(kProtocolVersion);
  hello->set_protocol_version_max(kProtocolVersion);
  hello->set_software("sluice " SLUICE_VERSION);
  std::string bytes;
  for (size_t i = 0; i + 1 < session_id.size(); i += 2) {
    uint8_t byte = 0;  // stays so where a damaged journal has no hex digits: the peer knows no such session
    (void)std::from_chars(session_id.data() + i, session_id.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  hello->set_session_id(bytes);
  return message;
}

asio::awaitable<Result<peer::PeerMessage>> receive_within(asio::io_context& io,
                                                          peer::Connection& connection) {
  auto over = std::make_shared<bool>(false);
  auto timer = std::make_shared<asio::steady_timer>(io, kHelloTimeout);
  timer->async_wait([over, timer, &connection](const asio::error_code& error) {
    if (!error && !*over) connection.close();
  });
  Result<peer::PeerMessage> message = co_await connection.receive();
  *over = true;
  timer->cancel();
  co_return message;
}

asio::awaitable<void> hang_up(asio::io_context& io, std::shared_ptr<peer::Connection> connection) {
  co_await connection->flush();
  // The peer closes once it has read this; until then what it wrote must not reset the connection.
  auto timer = std::make_shared<asio::steady_timer>(io, kHangUpTimeout);
  timer->async_wait([connection, timer](const asio::error_code&) { connection->close(); });
  for (;;) {
    const Result<peer::PeerMessage> ignored = co_await connection->receive();
    if (!ignored) break;
  }
  timer->cancel();
}

}  // namespace sluice::control
