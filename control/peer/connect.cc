// The calling side: from a peer's address to an authenticated stream, and why it did not come to that.
// SPDX-License-Identifier: Apache-2.0
#include <netdb.h>

#include <asio/co_spawn.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/post.hpp>
#include <asio/redirect_error.hpp>
#include <asio/ssl/error.hpp>
#include <asio/use_awaitable.hpp>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "control/identity/node_files.h"
#include "control/peer/stream.h"
#include "control/peer/stream_connection.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/text.h"
#include "dataplane/base/utc.h"

namespace sluice::peer {
namespace {

using asio::ip::tcp;

// This node itself cannot call just now.
Error no_descriptor(const identity::Peer& peer) {
  return {ErrorCode::kResources, "cannot call " + peer.name +
                                     ": this node has no free file descriptor; wait for sessions to end, or "
                                     "raise the limit of open files of its sluice-control"};
}

// Where it does not answer, or another one does.
std::string correct_address(const identity::Peer& peer) {
  return "correct the address: sluice node trust " + peer.name + " --address HOST:PORT";
}

Error unreachable(const identity::Peer& peer, const std::string& reason) {
  return {ErrorCode::kPeerUnreachable, "cannot reach " + peer.name + " at " + peer.address + ": " + reason};
}

std::string no_answer(uint32_t timeout_ms) {
  return "no answer within " + std::to_string(timeout_ms) +
         " ms; check the address, the network and the firewall";
}

struct Resolution {
  explicit Resolution(const asio::any_io_executor& executor) : timer(executor) {}
  asio::steady_timer timer;
  bool done = false;
  std::string failure;
  std::vector<tcp::endpoint> endpoints;
};

// Looks names up with threads of its own: a name server that does not answer for one peer's name holds up
// nobody else. Each name is looked up once at a time, whoever asks; a lookup cannot be interrupted, so at the
// end it is left to itself.
//
// Not asio's own thread for it: that one blocks all signals, SIGSYS as well, and what a library of the name
// service tries and the sandbox does not allow would end the daemon.
class Resolver final : public asio::execution_context::service {
 public:
  using key_type = Resolver;
  static asio::execution_context::id id;
  explicit Resolver(asio::execution_context& owner) : service(owner) {}

  // False: as many names as may be are looked up already, and none of them has been found yet.
  bool look_up(const config::HostPort& where, const std::shared_ptr<Resolution>& resolution) {
    const std::lock_guard lock(shared_->mutex);
    const std::string name = where.host + " " + std::to_string(where.port);
    const auto at = shared_->waiting.find(name);
    if (at != shared_->waiting.end()) {
      at->second.push_back(resolution);
      return true;
    }
    if (shared_->waiting.size() >= kNamesMax) return false;
    try {
      std::thread([shared = shared_, where, name] { shared->answer(name, find(where)); }).detach();
    } catch (const std::system_error&) {
      return false;
    }
    shared_->waiting[name].push_back(resolution);
    return true;
  }

 private:
  static constexpr size_t kNamesMax = 64;
  struct Found {
    std::string failure;
    std::vector<tcp::endpoint> endpoints;
  };
  struct Shared {
    std::mutex mutex;
    std::map<std::string, std::vector<std::shared_ptr<Resolution>>> waiting;
    bool closed = false;  // the loop is gone

    void answer(const std::string& name, const Found& found) {
      const std::lock_guard lock(mutex);
      if (closed) return;
      for (std::shared_ptr<Resolution>& one : waiting[name]) {
        auto& timer = one->timer;
        asio::post(timer.get_executor(), [one = std::move(one), found] {
          one->done = true;
          one->failure = found.failure;
          one->endpoints = found.endpoints;
          one->timer.cancel();
        });
      }
      waiting.erase(name);
    }
  };

  static Found find(const config::HostPort& where) {
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICSERV;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* all = nullptr;
    const int failed = ::getaddrinfo(where.host.c_str(), std::to_string(where.port).c_str(), &hints, &all);
    if (failed != 0) return {.failure = ::gai_strerror(failed), .endpoints = {}};
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(all, &::freeaddrinfo);
    Found found;
    for (const addrinfo* each = all; each != nullptr; each = each->ai_next) {
      tcp::endpoint endpoint;
      if (each->ai_addrlen > endpoint.capacity()) continue;
      endpoint.resize(each->ai_addrlen);
      std::memcpy(endpoint.data(), each->ai_addr, each->ai_addrlen);
      found.endpoints.push_back(endpoint);
    }
    return found;
  }

  void shutdown() override {
    std::map<std::string, std::vector<std::shared_ptr<Resolution>>> forgotten;
    const std::lock_guard lock(shared_->mutex);
    shared_->closed = true;
    forgotten.swap(shared_->waiting);
  }
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};
asio::execution_context::id Resolver::id;

// The system's resolver cannot be interrupted, so this does not wait for it: late answers are ignored.
asio::awaitable<Result<std::vector<tcp::endpoint>>> resolve(const identity::Peer& peer, uint32_t timeout_ms) {
  const auto where = config::parse_host_port(peer.address);
  if (!where) co_return unreachable(peer, where.error().message);
  asio::error_code not_numeric;
  const auto address = asio::ip::make_address(where->host, not_numeric);
  if (!not_numeric) co_return std::vector<tcp::endpoint>{{address, where->port}};

  const auto state = std::make_shared<Resolution>(co_await asio::this_coro::executor);
  state->timer.expires_after(std::chrono::milliseconds(timeout_ms));
  auto& context = asio::query(state->timer.get_executor(), asio::execution::context);
  if (!asio::use_service<Resolver>(context).look_up(*where, state))
    co_return unreachable(peer,
                          "too many names are being looked up; check the resolver, or use a numeric address");
  asio::error_code woken;
  co_await state->timer.async_wait(asio::redirect_error(asio::use_awaitable, woken));
  if (!state->done) {
    co_return unreachable(peer, "its name was not resolved within " + std::to_string(timeout_ms) +
                                    " ms; check the resolver, or use a numeric address");
  }
  if (!state->failure.empty() || state->endpoints.empty())
    co_return unreachable(peer,
                          "its name cannot be resolved: " + state->failure + "; " + correct_address(peer));
  co_return state->endpoints;
}

std::string reason_of(const identity::Peer& peer, const asio::error_code& failure) {
  if (failure == asio::error::connection_refused)
    return "connection refused; start sluice-control there, or " + correct_address(peer) +
           " (a node with listen = \"none\" cannot be called)";
  return failure.message() + "; check the address and the network";
}

// Each endpoint gets its share of the time.
asio::awaitable<Result<tcp::socket>> open_socket(const identity::Peer& peer,
                                                 const std::vector<tcp::endpoint>& endpoints,
                                                 uint32_t timeout_ms) {
  const auto executor = co_await asio::this_coro::executor;
  const auto share_ms = static_cast<uint32_t>(timeout_ms / endpoints.size());
  std::string reason;
  bool shortage = false;
  for (const tcp::endpoint& endpoint : endpoints) {
    const auto socket = std::make_shared<tcp::socket>(executor);
    const Deadline deadline(executor, share_ms, [socket] {
      asio::error_code ignored;
      socket->close(ignored);
    });
    asio::error_code failure;
    co_await socket->async_connect(endpoint, asio::redirect_error(asio::use_awaitable, failure));
    if (!failure && !deadline.expired()) co_return std::move(*socket);
    shortage |= identity::is_shortage(failure.value());
    reason = deadline.expired() || failure == asio::error::timed_out ? no_answer(timeout_ms)
                                                                     : reason_of(peer, failure);
  }
  if (shortage) co_return no_descriptor(peer);
  co_return unreachable(peer, reason);
}

// How to reach the expected peer where another one has answered. Empty: the reason says it.
std::string remedy_of(const identity::Identity& self, const identity::Peer& peer, const PeerCheck& check,
                      const std::string& answers) {
  if (check.fingerprint == self.fingerprint) return " (that is this node itself); " + correct_address(peer);
  if (!answers.empty()) return " (that is " + answers + "); " + correct_address(peer);
  if (peer.by_authority || check.fingerprint == peer.fingerprint) return "";
  return "; if its owner confirms the new key: sluice node trust " + peer.name + " CERT.pem --replace";
}

// Why a handshake failed, in the operator's terms. `answers`: the trusted node that is at this address, if
// that is another one.
Error handshake_error(const identity::Identity& self, const identity::Peer& peer, const PeerCheck& check,
                      const std::string& answers, const asio::error_code& failure) {
  if (!check.refusal.empty()) {
    std::string text = "the node at " + peer.address + " is not the trusted " + peer.name +
                       ": it shows the key " + check.fingerprint;
    const bool same = check.fingerprint == peer.fingerprint;
    if (!peer.by_authority && !same) text += ", pinned is " + peer.fingerprint;
    if (answers.empty()) text += ": " + base::printable(check.refusal);
    return {ErrorCode::kPeerUntrusted, text + remedy_of(self, peer, check, answers)};
  }
  if (refused_by_peer(failure)) {
    const std::string whom = peer.name + " at " + peer.address + " does not trust this node";
    if (self.expires_unix_s <= std::time(nullptr))
      return {ErrorCode::kPeerUntrusted,
              whom + ", whose own certificate has expired on " +
                  base::utc_text(self.expires_unix_s * 1'000'000'000) +
                  "; make a new one: sluice node rotate (of an authority: sluice node enrol), or look at the "
                  "clock of this host"};
    if (peer.by_authority)
      return {ErrorCode::kPeerUntrusted, whom + ", whose key is " + self.fingerprint +
                                             "; the log of its sluice-control says why: its clock, its "
                                             "ca_file or crl_file, or this node was "
                                             "revoked or distrusted"};
    return {ErrorCode::kPeerUntrusted, whom + ", whose key is " + self.fingerprint +
                                           "; run there: sluice node trust " + self.name +
                                           " CERT.pem, with the certificate of this node"};
  }
  if (not_judged_by_peer(failure))
    return {ErrorCode::kResources,
            peer.name + " at " + peer.address +
                " cannot take calls now: it lacks file descriptors or memory, or cannot "
                "read whom it trusts; see the log of its sluice-control"};
  if (failure == asio::error::eof || failure == asio::ssl::error::stream_truncated ||
      failure == asio::error::connection_reset)
    return unreachable(peer,
                       "it closed the connection during the handshake; see the log of its sluice-control");
  return unreachable(
      peer, "the TLS handshake failed: " + failure.message() + "; is this the address of a sluice-control?");
}

// Whether what is shown is this very peer. It becomes what is known of it then. Else `answers` is the name of
// the other one.
Status accept(const identity::Trust& trust, const identity::Shown& shown, identity::Peer* peer,
              std::string* answers) {
  Result<identity::Peer> found = trust.judge(shown, std::time(nullptr));
  if (!found) return found.error();
  if (found->name != peer->name) {
    *answers = found->name;
    return Error{ErrorCode::kPeerUntrusted, "this key is that of " + found->name};
  }
  found->address = peer->address;
  *peer = std::move(*found);
  return {};
}

}  // namespace

asio::awaitable<Result<std::unique_ptr<Connection>>> connect(identity::Standing standing, identity::Peer peer,
                                                             uint32_t timeout_ms,
                                                             std::shared_ptr<FrameMemory> memory,
                                                             OnOffer on_offer,
                                                             std::shared_ptr<FirstWords> words) {
  if (peer.address.empty())
    co_return Error{ErrorCode::kPeerUnreachable,
                    peer.name +
                        " has no address: it is to call; if it listens, name it with: sluice node trust " +
                        peer.name + " --address HOST:PORT"};
  const auto context = make_tls_context(*standing.self);
  if (!context) co_return context.error();
  const auto endpoints = co_await resolve(peer, timeout_ms);
  if (!endpoints) co_return endpoints.error();
  auto socket = co_await open_socket(peer, *endpoints, timeout_ms);
  if (!socket) co_return socket.error();

  const auto stream = std::make_shared<Stream>(std::move(*socket), *context, std::move(memory));
  stream->set_peer(peer.name);
  stream->own_fingerprint = standing.self->fingerprint;
  std::optional<identity::Offer> offer;
  std::string answers;
  stream->check.accept = [&](const identity::Shown& shown) {
    offer = standing.trust->offer_in(shown);
    return accept(*standing.trust, shown, &peer, &answers);
  };
  const Deadline deadline(stream->executor(), timeout_ms, [stream] { stream->abort(); });
  asio::error_code failure = co_await stream->handshake(asio::ssl::stream_base::client);
  // In TLS 1.3 the client is through before the server has judged it. The server's empty first frame says
  // that it has accepted (docs/WIRE.md, "Control stream"); a refusal arrives here as an alert.
  bool greeted = false;
  if (!failure) {
    const auto send = [stream](const PeerMessage& word) {
      (void)stream->send_frame(encode_frame(word.SerializeAsString()));
    };
    if (words) words->proved(send);
    const auto greeting = co_await stream->read_frame(&failure);
    greeted = greeting && greeting->empty();
    if (words) words->proved(nullptr);
  }
  stream->check.accept = nullptr;
  if (offer) on_offer(std::move(*offer));
  if (greeted && !deadline.expired()) co_return make_connection(stream, std::move(peer));
  Error error = deadline.expired() ? unreachable(peer, no_answer(timeout_ms))
                : failure          ? handshake_error(*standing.self, peer, stream->check, answers, failure)
                          : unreachable(peer, "it does not speak this protocol; is it another program?");
  stream->abort();
  co_return error;
}

}  // namespace sluice::peer
