// SPDX-License-Identifier: Apache-2.0
#include "control/node/names_asker.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "control/async/clock.h"
#include "control/identity/hex.h"
#include "control/leg/job.h"
#include "control/leg/negotiation.h"
#include "control/peer/codec.h"
#include "control/proto/names_codec.h"
#include "control/runtime/leg_stream.h"
#include "control/runtime/standing.h"
#include "dataplane/base/check.h"

namespace sluice::node {
namespace {

using namespace std::chrono_literals;

constexpr auto kNothingYet = 200ms;  // whoever waits here looks whether its own asker is still there

// The session that a call about names does not have.
std::string no_session() { return identity::random_hex(16); }

Error over() { return {ErrorCode::kCancelled, "nobody waits for the answer any more"}; }

}  // namespace

ClockOffset clock_offset(const names::NodeState& peer, int64_t asked_unix_ns, uint64_t waited_ns) {
  // Differences modulo 2^64: what a peer says may be any number.
  const auto since = [](int64_t from, int64_t to) {
    return static_cast<int64_t>(static_cast<uint64_t>(to) - static_cast<uint64_t>(from));
  };
  const int64_t held = since(peer.asked_unix_ns, peer.answered_unix_ns);
  const uint64_t held_ns = held < 0 ? 0 : std::min(static_cast<uint64_t>(held), waited_ns);
  const uint64_t round_trip_ns = waited_ns - held_ns;
  const int64_t there = since(asked_unix_ns, peer.asked_unix_ns);
  return {.offset_ns = since(static_cast<int64_t>(round_trip_ns / 2), there),
          .error_ns = round_trip_ns / 2,
          .round_trip_ns = round_trip_ns};
}

NamesAsker::NamesAsker(std::shared_ptr<SessionlessCall> call, const names::Request& request)
    : call_(std::move(call)) {
  if (const auto* list = std::get_if<names::List>(&request)) list_.emplace(*list);
}

NamesAsker::~NamesAsker() { call_->end(over()); }

asio::awaitable<Result<std::shared_ptr<NamesAsker>>> NamesAsker::ask(
    std::shared_ptr<runtime::Services> services, identity::Peer peer, names::Request request,
    std::optional<transfer::User> user) {
  if (auto* list = std::get_if<names::List>(&request)) list->pages = names::kPagesAhead;
  names::Word word = request;
  if (const Status status = names::admit(&word); !status)
    co_return Error{ErrorCode::kUsage,
                    "a path has at most 4096 bytes; list the directory by parts of its path"};
  const Result<identity::Standing> standing = co_await runtime::standing_now(services);
  if (!standing) co_return standing.error();
  peer::OnOffer on_offer = [services](identity::Offer offer) {
    runtime::remember_offer(*services, std::move(offer));
  };
  transfer::Hello hello = transfer::make_hello(no_session());
  hello.names = true;
  hello.inquires = true;  // whoever does not know `names` opens nothing
  if (user) {
    if (transfer::good_user_name(user->name)) hello.user = user->name;
    hello.share = transfer::share_of(*user);
  }
  // A list is asked for at once, which saves a round trip. What changes names waits until the peer is known
  // to hear.
  const bool at_once = std::holds_alternative<names::List>(request);
  std::vector<peer::PeerMessage> words{peer::to_wire(hello)};
  if (at_once) words.push_back(peer::to_wire(names::Word(request)));
  Result<std::unique_ptr<peer::Connection>> connected =
      co_await peer::connect(*standing, peer, runtime::kConnectTimeoutMs, services->frames,
                             std::move(on_offer), std::make_shared<peer::FirstWords>(std::move(words)));
  if (!connected) co_return connected.error();
  const auto call = std::make_shared<SessionlessCall>(services->io, std::shared_ptr(std::move(*connected)));
  call->begin();
  const std::shared_ptr<NamesAsker> asker(new NamesAsker(call, request));
  const Result<transfer::Hello> answer = co_await asker->greet();
  if (!answer) co_return answer.error();
  // Otherwise it would be done with the rights of this node, which are none of the user's.
  if (user && !at_once && !answer->by_map)
    co_return asker->cut_off(
        {ErrorCode::kConfiguration,
         fmt::format("to make, move or remove names at {} is not for members of [control] users_group: that "
                     "node has no map of users that says who you are there; ask an operator of this node",
                     call->peer())});
  if (!at_once) asker->put(request);
  co_return asker;
}

// What the peer answers to the Hello with which it was called.
asio::awaitable<Result<transfer::Hello>> NamesAsker::greet() {
  Result<std::optional<SessionlessCall::Said>> said = co_await call_->next(peer::kHelloTimeout);
  if (!said) co_return said.error();
  if (!said->has_value())
    co_return Error{ErrorCode::kPeerUnreachable,
                    fmt::format("{} did not answer within {} s; see the log of its sluice-control",
                                call_->peer(), peer::kHelloTimeout.count())};
  const auto* message = std::get_if<transfer::Message>(&**said);
  if (message != nullptr && std::holds_alternative<transfer::Failure>(*message))
    co_return transfer::error_of(call_->peer(), std::get<transfer::Failure>(*message));
  const auto* answer = message == nullptr ? nullptr : std::get_if<transfer::Hello>(message);
  if (answer == nullptr)
    co_return cut_off({ErrorCode::kIncompatible, call_->peer() + " did not answer with Hello"});
  if (const Status status = transfer::check_hello(*answer); !status) co_return cut_off(status.error());
  if (!answer->names)
    co_return cut_off(
        {ErrorCode::kIncompatible,
         fmt::format(
             "{} is too old ({}): it answers no questions about names; bring both nodes to one version",
             call_->peer(), answer->software)});
  co_return *answer;
}

void NamesAsker::put(const names::Request& request) {
  DCHECK(asked_ns_ == 0, "one call, one question");
  asked_unix_ns_ = async::unix_ns();
  asked_ns_ = async::monotonic_ns();
  call_->say(names::Word(request));
}

Error NamesAsker::cut_off(Error error) {
  call_->say(transfer::failure_of(error));
  call_->end(error);
  return error;
}

Result<NamesAnswer> NamesAsker::take_page(names::Page page) {
  if (!list_)
    return cut_off({ErrorCode::kIncompatible, call_->peer() + " sent a list that nobody asked for"});
  if (const Status status = list_->take(page); !status)
    return cut_off({status.error().code, call_->peer() + ": " + status.error().message});
  if (list_->used()) call_->say(names::Word(names::More{.pages = list_->granted()}));
  return NamesAnswer{.page = std::move(page), .done = {}, .clock = {}};
}

Result<NamesAnswer> NamesAsker::take(SessionlessCall::Said said) {
  if (auto* word = std::get_if<names::Word>(&said)) {
    if (auto* page = std::get_if<names::Page>(word)) return take_page(std::move(*page));
    if (auto* done = std::get_if<names::Done>(word)) {
      const Status status = list_ ? list_->end(*done) : Status();
      if (!status) return cut_off({status.error().code, call_->peer() + ": " + status.error().message});
      call_->end(over());
      NamesAnswer answer{.page = {}, .done = std::move(*done), .clock = {}};
      if (answer.done->node)
        answer.clock = clock_offset(*answer.done->node, asked_unix_ns_, async::monotonic_ns() - asked_ns_);
      return answer;
    }
  } else if (const auto* failure = std::get_if<transfer::Failure>(&std::get<transfer::Message>(said))) {
    const Error error = transfer::error_of(call_->peer(), *failure);
    call_->end(error);
    return error;
  }
  return cut_off({ErrorCode::kIncompatible, call_->peer() + " said what is no answer"});
}

asio::awaitable<Result<NamesAnswer>> NamesAsker::next() {
  Result<std::optional<SessionlessCall::Said>> said = co_await call_->next(kNothingYet);
  if (!said) co_return said.error();
  if (!said->has_value()) co_return NamesAnswer{};
  co_return take(std::move(**said));
}

}  // namespace sluice::node
