// SPDX-License-Identifier: Apache-2.0
#include "control/node/trust_watch.h"

#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <asio/redirect_error.hpp>
#include <asio/use_awaitable.hpp>
#include <chrono>
#include <ctime>

#include "control/grant/grant.h"
#include "control/runtime/leg_stream.h"
#include "control/runtime/standing.h"
#include "dataplane/base/check.h"
#include "dataplane/base/log.h"

namespace sluice::node {
namespace {

constexpr auto kLookInterval = std::chrono::seconds(2);
constexpr uint64_t kAskAgainNs = 30'000'000'000;  // a peer that does not take the new key yet

// Of pinned peers, and of those in the file of addresses: as many as the listener remembers.
std::vector<std::string> addresses_of(const identity::Trust& trust) {
  constexpr size_t kMax = 1024;
  std::vector<std::string> addresses;
  const auto add = [&addresses](const std::string& address) {
    if (addresses.size() >= kMax) return;
    if (const auto where = config::parse_host_port(address)) addresses.push_back(where->host);
  };
  for (const identity::Peer& peer : trust.pinned()) add(peer.address);
  if (trust.addresses() == nullptr) return addresses;
  for (const auto& [name, address] : trust.addresses()->all()) add(address);
  return addresses;
}

}  // namespace

TrustWatch::TrustWatch(std::shared_ptr<runtime::Services> services, Sessions& sessions, Reception& reception)
    : services_(std::move(services)),
      sessions_(sessions),
      reception_(reception),
      timer_(std::make_shared<asio::steady_timer>(services_->io)) {}

TrustWatch::~TrustWatch() { *alive_ = false; }

void TrustWatch::start() { asio::co_spawn(services_->io, watch(alive_), asio::detached); }

void TrustWatch::stop() { timer_->cancel(); }

asio::awaitable<void> TrustWatch::watch(std::shared_ptr<bool> alive) {
  const std::shared_ptr<runtime::Services> services = services_;
  const auto timer = timer_;
  for (;;) {
    const Result<identity::Standing> now = co_await runtime::standing_now(services);
    if (!*alive || sessions_.stopping()) co_return;
    if (now) look(*now);
    asio::error_code ignored;
    timer->expires_after(kLookInterval);
    co_await timer->async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    if (!*alive || sessions_.stopping()) co_return;
  }
}

void TrustWatch::look(const identity::Standing& now) {
  reception_.expect(addresses_of(*now.trust));
  std::vector<identity::Expiry> expiries = identity::expiries_of(now);
  for (const Sessions::Task& task : sessions_.tasks()) {
    if (const std::optional<transfer::Granted>& granted = task->transfer().job().granted;
        granted && !task->over()) {
      const Status still = grant::check_still(*granted, *now.trust, async::unix_ns());
      if (!still) task->post(transfer::Cancel{still.error()});
    }
    const std::shared_ptr<peer::Connection> stream = task->stream();
    if (!stream) continue;
    const identity::Peer& peer = stream->peer();
    if (peer.by_authority)
      expiries.push_back({.kind = "peer", .name = peer.name, .unix_s = peer.expires_unix_s});
    if (const Status still = now.trust->check_still(peer); !still) {
      log::of(log::kSession)
          ->warn("session {}: {} may not go on: {}", task->transfer().id().substr(0, 8), peer.name,
                 still.error().message);
      end(task, {still.error().code, peer.name + ": " + still.error().message});
    } else if (stream->own_fingerprint() != now.self->fingerprint) {
      renew_soon(task, now);
    }
  }
  for (const std::string& line : warnings_.due(expiries, std::time(nullptr)))
    log::of(log::kPeer)->warn("{}", line);
  expiries_ = std::move(expiries);
}

// Data that were granted would flow on without a connection: so the session is paused, and goes on when an
// operator says so.
void TrustWatch::end(const Sessions::Task& task, Error reason) {
  if (task->transfer().may_pause()) {
    task->post(transfer::PauseAsked{std::move(reason)});
  } else {
    task->drop_stream(reason.message);
  }
}

void TrustWatch::renew_soon(const Sessions::Task& task, const identity::Standing& now) {
  const std::string& name = task->transfer().peer();
  uint64_t& next_ns = ask_again_ns_[name];
  if (async::monotonic_ns() < next_ns) return;
  const Result<identity::Peer> peer = now.trust->find(name);
  if (!peer || peer->address.empty()) return;  // it calls: what stands stays until it ends
  DCHECK(peer->name == name, "the peer that was looked for");
  next_ns = async::monotonic_ns() + kAskAgainNs;
  asio::co_spawn(services_->io, renew(alive_, now, *peer), asio::detached);
}

// Whoever lets this node in under its new key gets all that runs with it renewed.
asio::awaitable<void> TrustWatch::renew(std::shared_ptr<bool> alive, identity::Standing now,
                                        identity::Peer peer) {
  peer::OnOffer on_offer = [](const identity::Offer&) {};  // it is heard of when it is used
  const auto asked =
      co_await peer::connect(now, peer, runtime::kConnectTimeoutMs, services_->frames, std::move(on_offer));
  if (!*alive || sessions_.stopping()) co_return;
  if (!asked) {
    log::of(log::kPeer)
        ->warn("what runs with {} goes on under the former key: {}", peer.name, asked.error().message);
    co_return;
  }
  (*asked)->close();
  ask_again_ns_.erase(peer.name);
  for (const Sessions::Task& task : sessions_.tasks()) {
    const std::shared_ptr<peer::Connection> stream = task->stream();
    if (!stream || task->transfer().peer() != peer.name || stream->own_fingerprint() == now.self->fingerprint)
      continue;
    log::of(log::kSession)
        ->info("session {}: its control connection is renewed under the new key",
               task->transfer().id().substr(0, 8));
    task->drop_stream("this node has a new key");
  }
}

}  // namespace sluice::node
