// The called side: accepts, judges the caller by its key, and greets it.
//
// At most kHandshakesMax handshakes are under way; further callers wait in the kernel's backlog.
// SPDX-License-Identifier: Apache-2.0
#include <spdlog/spdlog.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>

#include "control/peer/stream.h"
#include "control/peer/stream_connection.h"
#include "dataplane/base/config/config.h"

namespace sluice::peer {
namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;

constexpr unsigned kHandshakesMax = 64;
constexpr uint32_t kHandshakeTimeoutMs = 10'000;

// Strangers choose how often they call: without a bound they would fill the log.
class LogBudget {
 public:
  bool allow() {
    const auto now = std::chrono::steady_clock::now();
    if (now - since_ >= 10s) {
      if (dropped_ > 0) spdlog::warn("{} further refused control connections were not logged", dropped_);
      since_ = now;
      used_ = 0;
      dropped_ = 0;
    }
    if (used_ < 20) return ++used_ > 0;
    ++dropped_;
    return false;
  }

 private:
  std::chrono::steady_clock::time_point since_{};
  unsigned used_ = 0;
  unsigned dropped_ = 0;
};

struct State {
  State(asio::io_context& io, std::shared_ptr<asio::ssl::context> tls)
      : context(std::move(tls)), acceptor(io), slot_free(io, asio::steady_timer::time_point::max()) {}
  std::shared_ptr<asio::ssl::context> context;
  tcp::acceptor acceptor;
  asio::steady_timer slot_free;  // never expires; cancelled when a handshake ends
  unsigned handshakes = 0;
  bool stopped = false;
  LogBudget log;
  TrustedPeers trusted;
  std::function<void(std::unique_ptr<Connection>)> on_connection;
};

void log_refusal(State& state, const Stream& stream, bool expired, const asio::error_code& failure) {
  if (!state.log.allow()) return;
  if (stream.check.refused) {
    spdlog::warn("refused a stranger at {} with the key {}; to trust it: sluice node trust NAME CERT.pem",
                 stream.remote(), stream.check.fingerprint);
  } else if (refused_by_peer(failure)) {
    spdlog::warn("{} does not trust this node", stream.remote());
  } else {
    spdlog::warn("no handshake with {}: {}", stream.remote(),
                 expired ? "it took too long" : failure.message());
  }
}

asio::awaitable<void> serve(std::shared_ptr<State> state, std::shared_ptr<Stream> stream) {
  std::optional<identity::Peer> peer;
  bool expired = false;
  asio::error_code failure;
  {
    const Deadline deadline(stream->executor(), kHandshakeTimeoutMs, [stream] { stream->abort(); });
    const std::vector<identity::Peer> trusted = co_await state->trusted();
    stream->check.accept = [&](const std::string& fingerprint) {
      for (const identity::Peer& one : trusted) {
        if (one.fingerprint == fingerprint) peer = one;
      }
      return peer.has_value() && !state->stopped;
    };
    failure = co_await stream->handshake(asio::ssl::stream_base::server);
    expired = deadline.expired();
    stream->check.accept = nullptr;
  }
  --state->handshakes;
  state->slot_free.cancel();
  if (state->stopped || expired || failure || !peer) {
    if (!state->stopped) log_refusal(*state, *stream, expired, failure);
    stream->abort();
    co_return;
  }
  stream->set_name(peer->name + " at " + stream->remote());
  if (stream->send_frame(encode_frame({}))) state->on_connection(make_connection(stream, std::move(*peer)));
}

asio::awaitable<void> accept_loop(std::shared_ptr<State> state) {
  while (!state->stopped) {
    asio::error_code failure;
    if (state->handshakes >= kHandshakesMax) {
      co_await state->slot_free.async_wait(asio::redirect_error(asio::use_awaitable, failure));
      continue;
    }
    tcp::socket socket =
        co_await state->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, failure));
    if (state->stopped) break;
    if (failure) {
      // Descriptors or memory are short, or the caller is gone again: neither is a reason to stop.
      if (state->log.allow()) spdlog::warn("cannot accept a control connection: {}", failure.message());
      asio::steady_timer pause(state->acceptor.get_executor(), 100ms);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, failure));
      continue;
    }
    ++state->handshakes;
    const auto executor = socket.get_executor();
    auto stream = std::make_shared<Stream>(std::move(socket), state->context);
    asio::co_spawn(executor, serve(state, std::move(stream)), asio::detached);
  }
}

class TlsListener final : public Listener {
 public:
  explicit TlsListener(std::shared_ptr<State> state) : state_(std::move(state)) {
    asio::error_code ignored;
    port_ = state_->acceptor.local_endpoint(ignored).port();
  }
  ~TlsListener() override {
    state_->stopped = true;
    asio::error_code ignored;
    state_->acceptor.close(ignored);
    state_->slot_free.cancel();
  }
  uint16_t port() const override { return port_; }

 private:
  std::shared_ptr<State> state_;
  uint16_t port_ = 0;
};

Status bind(asio::io_context& io, tcp::acceptor& acceptor, const std::string& address) {
  const auto where = config::parse_host_port(address);
  if (!where) return where.error();
  asio::error_code failure;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(where->host, std::to_string(where->port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, failure);
  if (!failure && !found.empty()) {
    const tcp::endpoint endpoint = found.begin()->endpoint();
    acceptor.open(endpoint.protocol(), failure);
    if (!failure) acceptor.set_option(tcp::acceptor::reuse_address(true), failure);
    if (!failure) acceptor.bind(endpoint, failure);
    if (!failure) acceptor.listen(asio::socket_base::max_listen_connections, failure);
  }
  if (!failure) return {};
  return Error{ErrorCode::kConfiguration, "cannot listen on " + address + ": " + failure.message() +
                                              "; change [control] listen in node.toml, or stop what uses it"};
}

}  // namespace

Result<std::unique_ptr<Listener>> listen(asio::io_context& io, const identity::Identity& self,
                                         const std::string& address, TrustedPeers trusted,
                                         std::function<void(std::unique_ptr<Connection>)> on_connection) {
  const auto context = make_tls_context(self);
  if (!context) return context.error();
  const auto state = std::make_shared<State>(io, *context);
  if (auto status = bind(io, state->acceptor, address); !status) return status.error();
  state->trusted = std::move(trusted);
  state->on_connection = std::move(on_connection);
  asio::co_spawn(io, accept_loop(state), asio::detached);
  return std::unique_ptr<Listener>(std::make_unique<TlsListener>(state));
}

}  // namespace sluice::peer
