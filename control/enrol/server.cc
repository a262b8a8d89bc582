// SPDX-License-Identifier: Apache-2.0
#include <openssl/x509.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <ctime>
#include <map>

#include "control/enrol/enrol.h"
#include "control/identity/hex.h"
#include "control/identity/node_files.h"
#include "control/peer/accepting.h"
#include "control/peer/callers.h"
#include "control/peer/framing.h"
#include "control/peer/handshake_pace.h"
#include "control/peer/stream.h"
#include "control/site/words.h"
#include "dataplane/base/log.h"
#include "dataplane/base/text.h"

namespace sluice::enrol {
namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;

constexpr uint32_t kCallTimeoutMs = 30'000;  // from being accepted to the answer
// A site may be behind one address.
constexpr peer::Callers::Limits kCallersMax = {
    .strangers = 512, .strangers_of_address = 256, .at_known_addresses = 256, .idle_of_peer = 1};

struct KeyDeleter {
  void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
};

struct State {
  State(asio::io_context& io, site::Site& whose) : site(whose), acceptor(io) {}
  void let_go(std::optional<peer::Callers::Id> id) {
    if (!id) return;
    ++counts.let_go;
    if (const auto stream = streams[*id].lock()) stream->abort();
    streams.erase(*id);
  }
  void gone(peer::Callers::Id id) {
    callers.gone(id);
    streams.erase(id);
  }

  site::Site& site;
  std::shared_ptr<asio::ssl::context> context;
  std::shared_ptr<peer::FrameMemory> memory = std::make_shared<peer::FrameMemory>();
  tcp::acceptor acceptor;
  peer::Callers callers{kCallersMax};
  peer::HandshakePace pace;
  std::map<peer::Callers::Id, std::weak_ptr<peer::Stream>> streams;
  peer::LineBudget lines{"refused calls"};
  Counts counts;
  bool stopped = false;
};

// How one call ended, and who made it.
struct Outcome {
  Result<site::Enrolled> result;
  std::string token;
  std::string name;
  std::string fingerprint;
};

void note(State& state, const peer::Stream& stream, const Outcome& outcome) {
  if (outcome.result) {
    ++state.counts.enrolled;
    log::of(log::kPeer)
        ->info("{} is enrolled: key {}, token {}, from {}", outcome.name, outcome.fingerprint, outcome.token,
               stream.remote());
    return;
  }
  ++state.counts.refused;
  if (!state.lines.allow()) return;
  const std::string& why = outcome.result.error().message;
  log::of(log::kPeer)
      ->warn("refused {} at {}: {}", base::printable(outcome.name), stream.remote(), base::printable(why));
  const Status kept = state.site.audit("refused", {{"token", outcome.token},
                                                   {"name", outcome.name},
                                                   {"fingerprint", outcome.fingerprint},
                                                   {"from", stream.remote()},
                                                   {"reason", why}});
  if (!kept) log::of(log::kPeer)->error("{}", kept.error().message);
}

Outcome answer(State& state, peer::Stream& stream, EVP_PKEY* key, const std::string& frame) {
  Outcome outcome{.result = Error{ErrorCode::kUsage, ""},
                  .token = {},
                  .name = {},
                  .fingerprint = stream.check.fingerprint};
  const auto request = site::decode_request(frame);
  std::array<uint8_t, site::kBindingBytes> binding{};
  if (!request) {
    outcome.result = request.error();
  } else if (!stream.export_secret(site::kBindingLabel, {}, binding)) {
    outcome.result = Error{ErrorCode::kInternal, "this connection has no secret of its own"};
  } else {
    outcome.token = request->token;
    outcome.name = request->name;
    const site::Asked asked{.wish = {.token = request->token,
                                     .name = request->name,
                                     .fingerprint = outcome.fingerprint,
                                     .binding = identity::to_hex(
                                         {reinterpret_cast<const char*>(binding.data()), binding.size()})},
                            .signature = request->signature,
                            .key = key};
    outcome.result = state.site.enrol(asked, std::time(nullptr));
  }
  return outcome;
}

// False: it is not here any more.
asio::awaitable<bool> its_turn(std::shared_ptr<State> state, std::shared_ptr<peer::Stream> stream,
                               const std::string& address) {
  const peer::HandshakePace::Turn turn = state->pace.take(address, peer::steady_ns());
  if (turn.begins_ns > peer::steady_ns())
    co_await stream->wait_until(
        std::chrono::steady_clock::time_point(std::chrono::nanoseconds(turn.begins_ns)));
  co_return !state->stopped;
}

asio::awaitable<void> converse(std::shared_ptr<State> state, std::shared_ptr<peer::Stream> stream,
                               std::string address) {
  co_await stream->readable();  // whoever says nothing costs nothing more
  const bool silent = stream->left_silently();
  const bool here = co_await its_turn(state, stream, address);
  if (!here) co_return;
  std::unique_ptr<EVP_PKEY, KeyDeleter> key;
  stream->check.accept = [&key](const identity::Shown& shown) -> Status {
    key.reset(X509_get_pubkey(shown.certificate));
    return key ? Status() : Status(Error{ErrorCode::kPeerUntrusted, "its key cannot be read"});
  };
  asio::error_code failure = co_await stream->handshake(asio::ssl::stream_base::server);
  stream->check.accept = nullptr;
  if (failure || !key) {
    ++state->counts.failed;
    if (!silent && !state->stopped && state->lines.allow())
      log::of(log::kPeer)->warn("no handshake with {}: {}", stream->remote(), failure.message());
    co_return;
  }
  stream->set_frame_bytes_max(site::kRequestBytesMax);
  const auto frame = co_await stream->read_frame(&failure);
  if (!frame || state->stopped) {
    ++state->counts.failed;
    co_return;
  }
  const Outcome outcome = answer(*state, *stream, key.get(), *frame);
  note(*state, *stream, outcome);
  const std::string reply =
      outcome.result ? site::encode(*outcome.result) : site::encode(outcome.result.error());
  if (stream->send_frame(peer::encode_frame(reply))) co_await stream->flush();
}

asio::awaitable<void> one_call(std::shared_ptr<State> state, std::shared_ptr<peer::Stream> stream,
                               peer::Callers::Id id, std::string address) {
  {
    const peer::Deadline deadline(stream->executor(), kCallTimeoutMs, [stream] { stream->abort(); });
    co_await converse(state, stream, address);
    if (deadline.expired()) ++state->counts.timed_out;
  }
  stream->close();
  state->gone(id);
}

asio::awaitable<void> accept_loop(std::shared_ptr<State> state) {
  while (!state->stopped) {
    asio::error_code failure;
    tcp::socket socket =
        co_await state->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, failure));
    if (state->stopped) break;
    if (failure) {
      // Descriptors or memory are short, or the caller is gone again: neither is a reason to stop.
      if (state->lines.allow())
        log::of(log::kPeer)->warn("cannot accept a connection: {}", failure.message());
      asio::steady_timer pause(state->acceptor.get_executor(), 100ms);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, failure));
      continue;
    }
    std::string address = peer::address_group(socket.remote_endpoint(failure).address());
    const peer::Callers::Arrival arrival = state->callers.came(address);
    state->let_go(arrival.let_go);
    const auto executor = socket.get_executor();
    const auto stream = std::make_shared<peer::Stream>(std::move(socket), state->context, state->memory);
    state->streams[arrival.id] = stream;
    asio::co_spawn(executor, one_call(state, stream, arrival.id, std::move(address)), asio::detached);
  }
}

class TlsServer final : public Server {
 public:
  explicit TlsServer(std::shared_ptr<State> state) : state_(std::move(state)) {
    asio::error_code ignored;
    port_ = state_->acceptor.local_endpoint(ignored).port();
  }
  ~TlsServer() override {
    state_->stopped = true;
    asio::error_code ignored;
    state_->acceptor.close(ignored);
    for (const auto& [id, weak] : state_->streams) {
      if (const auto stream = weak.lock()) stream->abort();
    }
  }
  uint16_t port() const override { return port_; }
  const Counts& counts() const override { return state_->counts; }

 private:
  std::shared_ptr<State> state_;
  uint16_t port_ = 0;
};

}  // namespace

Result<std::unique_ptr<Server>> serve(asio::io_context& io, site::Site& site, const std::string& address) {
  const auto context = peer::make_tls_context(site.identity());
  if (!context) return context.error();
  const auto state = std::make_shared<State>(io, site);
  state->context = *context;
  if (Status status =
          peer::listen_at(io, state->acceptor, address, "give another --listen, or stop what uses it");
      !status)
    return status.error();
  asio::co_spawn(io, accept_loop(state), asio::detached);
  return std::unique_ptr<Server>(std::make_unique<TlsServer>(state));
}

}  // namespace sluice::enrol
