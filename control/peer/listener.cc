// The called side: accepts, judges the caller by its key, and greets it.
//
// Everybody is accepted, and who is let go for that says callers.h; when its handshake may begin,
// handshake_pace.h. One descriptor is kept in reserve: when
// all others are used up, callers are still answered with it, one after the other, and hear why they cannot
// be taken.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <ctime>
#include <map>

#include "control/identity/node_files.h"
#include "control/peer/accepting.h"
#include "control/peer/callers.h"
#include "control/peer/handshake_pace.h"
#include "control/peer/stream.h"
#include "control/peer/stream_connection.h"
#include "dataplane/base/log.h"
#include "dataplane/base/text.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::peer {
namespace {

using asio::ip::tcp;
using namespace std::chrono_literals;

constexpr uint32_t kHandshakeTimeoutMs = 10'000;

struct State {
  State(asio::io_context& io, std::shared_ptr<asio::ssl::context> tls, std::shared_ptr<FrameMemory> frames)
      : context(std::move(tls)), memory(std::move(frames)), acceptor(io) {
    keep_spare();
  }
  void keep_spare() {
    if (!spare) spare.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  }
  void let_go(std::optional<Callers::Id> id) {
    if (!id) return;
    ++counts.let_go;
    if (const auto stream = streams[*id].lock()) {
      if (log.allow()) log::of(log::kPeer)->warn("too many connections: let {} go", stream->name());
      stream->abort();
    }
    streams.erase(*id);
  }

  std::shared_ptr<asio::ssl::context> context;
  std::shared_ptr<FrameMemory> memory;
  tcp::acceptor acceptor;
  Callers callers;
  HandshakePace pace;
  CallerCounts counts;
  std::map<Callers::Id, std::weak_ptr<Stream>> streams;  // of callers
  UniqueFd spare;
  bool stopped = false;
  LineBudget log{"refused control connections"};
  StandingNow standing;
  OnOffer on_offer;
  std::function<void(std::unique_ptr<Connection>)> on_connection;
};

class CallerSeat final : public Seat {
 public:
  CallerSeat(std::shared_ptr<State> state, Callers::Id id, std::string address)
      : state_(std::move(state)), id_(id), address_(std::move(address)) {}
  ~CallerSeat() override {
    state_->callers.gone(id_);
    state_->streams.erase(id_);
    state_->keep_spare();
  }
  void set_busy(bool busy) override { state_->let_go(state_->callers.set_busy(id_, busy)); }
  bool present() const { return state_->callers.knows(id_); }  // it was not let go
  void trust(const std::string& peer) {
    state_->pace.trusted(address_, steady_ns());
    state_->let_go(state_->callers.trusted(id_, peer));
  }
  const std::string& address() const { return address_; }

 private:
  const std::shared_ptr<State> state_;
  const Callers::Id id_;
  const std::string address_;
};

void log_refusal(State& state, const Stream& stream, bool expired, const asio::error_code& failure) {
  if (!state.log.allow()) return;
  if (!stream.check.refusal.empty()) {
    const std::string& why = stream.check.refusal;
    const bool says_what_to_do = why.find("; ") != std::string::npos;
    log::of(log::kPeer)
        ->warn("refused a stranger at {} with the key {}: {}{}", stream.remote(), stream.check.fingerprint,
               base::printable(why), says_what_to_do ? "" : "; to trust it: sluice node trust NAME CERT.pem");
  } else if (refused_by_peer(failure)) {
    log::of(log::kPeer)->warn("{} does not trust this node", stream.remote());
  } else {
    log::of(log::kPeer)
        ->warn("no handshake with {}: {}", stream.remote(), expired ? "it took too long" : failure.message());
  }
}

// The handshake, and who it is; nothing, with `failure`, unless it is somebody whom this node trusts.
asio::awaitable<std::optional<identity::Peer>> judge(std::shared_ptr<State> state,
                                                     std::shared_ptr<Stream> stream,
                                                     asio::error_code& failure) {
  std::optional<identity::Peer> peer;
  std::optional<identity::Offer> offer;
  const Result<identity::Standing> now = co_await state->standing();
  const auto context =
      now ? make_tls_context(*now->self) : Result<std::shared_ptr<asio::ssl::context>>(now.error());
  if (!context && state->log.allow())
    log::of(log::kPeer)->warn("cannot judge {}: {}", stream->remote(), context.error().message);
  stream->check.cannot_judge = !context;
  if (context) {
    stream->show(*context);
    stream->own_fingerprint = now->self->fingerprint;
  }
  stream->check.accept = [&](const identity::Shown& shown) -> Status {
    if (state->stopped) return Error{ErrorCode::kDaemonNotRunning, "this node is stopping"};
    offer = now->trust->offer_in(shown);
    Result<identity::Peer> found = now->trust->judge(shown, std::time(nullptr));
    if (!found) return found.error();
    peer = std::move(*found);
    return {};
  };
  failure = co_await stream->handshake(asio::ssl::stream_base::server);
  stream->check.accept = nullptr;
  // Only of somebody who has proved that he has the key that he showed.
  if (offer && (!failure || !stream->check.refusal.empty())) state->on_offer(std::move(*offer));
  co_return peer;
}

// False: it is not here any more.
asio::awaitable<bool> its_turn(std::shared_ptr<State> state, std::shared_ptr<Stream> stream,
                               const CallerSeat& seat, const Deadline& deadline) {
  const auto is_here = [&] { return !state->stopped && seat.present() && !deadline.expired(); };
  if (!is_here()) co_return false;
  const uint64_t now = steady_ns();
  const HandshakePace::Turn turn = state->pace.take(seat.address(), now);
  if (turn.begins_ns <= now) co_return true;
  ++state->counts.waited;
  if (state->log.allow())
    log::of(log::kPeer)
        ->warn("too many handshakes: {} waits {} ms for its turn", stream->remote(),
               (turn.begins_ns - now) / 1'000'000);
  co_await stream->wait_until(
      std::chrono::steady_clock::time_point(std::chrono::nanoseconds(turn.begins_ns)));
  if (is_here()) co_return true;
  state->pace.give_back(seat.address(), turn);
  co_return false;
}

void count_refusal(CallerCounts& counts, const Stream& stream, bool expired) {
  ++(!stream.check.refusal.empty() ? counts.refused : expired ? counts.timed_out : counts.failed);
}

asio::awaitable<void> serve(std::shared_ptr<State> state, std::shared_ptr<Stream> stream) {
  CallerSeat& seat = static_cast<CallerSeat&>(*stream->seat);
  std::optional<identity::Peer> peer;
  bool expired = false;
  bool silent = false;
  asio::error_code failure;
  {
    const Deadline deadline(stream->executor(), kHandshakeTimeoutMs, [stream] { stream->abort(); });
    co_await stream->readable();  // whoever says nothing costs nothing more
    silent = stream->left_silently();
    if (co_await its_turn(state, stream, seat, deadline)) peer = co_await judge(state, stream, failure);
    expired = deadline.expired();
  }
  if (state->stopped || !seat.present() || expired || failure || !peer) {
    if (!state->stopped && seat.present()) {
      count_refusal(state->counts, *stream, expired);
      // `sluice doctor`, and whatever else watches a port, does no more than that.
      if (silent)
        log::of(log::kPeer)->debug("{} closed without a word", stream->remote());
      else if (!stream->check.cannot_judge)
        log_refusal(*state, *stream, expired, failure);
    }
    // Who was judged may be saying its first words already: a reset would overtake the verdict.
    const bool judged = !stream->check.refusal.empty() || stream->check.cannot_judge;
    judged && !expired && seat.present() ? stream->close() : stream->abort();
    state->keep_spare();  // at once: it may have been that descriptor, and somebody else would take it
    co_return;
  }
  ++state->counts.trusted;
  stream->set_peer(peer->name);
  seat.trust(peer->name);
  if (stream->send_frame(encode_frame({}))) state->on_connection(make_connection(stream, std::move(*peer)));
}

void welcome(const std::shared_ptr<State>& state, tcp::socket socket) {
  asio::error_code ignored;
  std::string address = address_group(socket.remote_endpoint(ignored).address());
  const Callers::Arrival arrival = state->callers.came(address, state->pace.knows(address));
  state->let_go(arrival.let_go);
  const auto executor = socket.get_executor();
  auto stream = std::make_shared<Stream>(std::move(socket), state->context, state->memory);
  stream->seat = std::make_unique<CallerSeat>(state, arrival.id, std::move(address));
  state->streams[arrival.id] = stream;
  asio::co_spawn(executor, serve(state, std::move(stream)), asio::detached);
}

asio::awaitable<void> accept_loop(std::shared_ptr<State> state) {
  while (!state->stopped) {
    asio::error_code failure;
    // Without a descriptor the system refuses to accept also when nobody is there: so somebody is waited for.
    co_await state->acceptor.async_wait(tcp::acceptor::wait_read,
                                        asio::redirect_error(asio::use_awaitable, failure));
    if (state->stopped) break;
    tcp::socket socket =
        co_await state->acceptor.async_accept(asio::redirect_error(asio::use_awaitable, failure));
    if (state->stopped) break;
    if (!failure) {
      state->keep_spare();
      welcome(state, std::move(socket));
      continue;
    }
    // Descriptors or memory are short, or the caller is gone again: neither is a reason to stop.
    if (state->log.allow())
      log::of(log::kPeer)->warn("cannot accept a control connection: {}", failure.message());
    const bool shortage = identity::is_shortage(failure.value());
    if (shortage && state->spare) {
      state->spare.reset();
    } else if (shortage && state->callers.strangers() > 1) {  // the last one is being told
      state->let_go(state->callers.oldest_stranger());
    } else {
      asio::steady_timer pause(state->acceptor.get_executor(), 100ms);
      co_await pause.async_wait(asio::redirect_error(asio::use_awaitable, failure));
      state->keep_spare();
    }
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
  }
  uint16_t port() const override { return port_; }
  const CallerCounts& counts() const override { return state_->counts; }
  void expect(const std::vector<std::string>& addresses) override {
    for (const std::string& each : addresses) {
      asio::error_code not_numeric;
      const asio::ip::address address = asio::ip::make_address(each, not_numeric);
      if (!not_numeric) state_->pace.trusted(address_group(address), steady_ns());
    }
  }

 private:
  std::shared_ptr<State> state_;
  uint16_t port_ = 0;
};

}  // namespace

Result<std::unique_ptr<Listener>> listen(asio::io_context& io, const identity::Identity& self,
                                         const std::string& address, std::shared_ptr<FrameMemory> memory,
                                         StandingNow standing,
                                         std::function<void(std::unique_ptr<Connection>)> on_connection,
                                         OnOffer on_offer, const HandshakePace::Limits& pace) {
  const auto context = make_tls_context(self);
  if (!context) return context.error();
  const auto state = std::make_shared<State>(io, *context, std::move(memory));
  if (auto status = listen_at(io, state->acceptor, address,
                              "change [control] listen in node.toml, or stop what uses it");
      !status)
    return status.error();
  state->standing = std::move(standing);
  state->on_offer = std::move(on_offer);
  state->pace = HandshakePace(pace);
  state->on_connection = std::move(on_connection);
  asio::co_spawn(io, accept_loop(state), asio::detached);
  return std::unique_ptr<Listener>(std::make_unique<TlsListener>(state));
}

}  // namespace sluice::peer
