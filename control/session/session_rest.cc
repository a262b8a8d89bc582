// Between two attempts of a session: does it go on by itself, wait for an operator, or end?
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "control/session/session.h"

namespace sluice::control {
namespace {

constexpr uint64_t kBackoffMinNs = 200'000'000;
constexpr uint64_t kBackoffMaxNs = 5'000'000'000;
constexpr auto kPoll = std::chrono::milliseconds(500);

enum class Remedy : uint8_t {
  kTime,      // it may be well later
  kOperator,  // somebody must do something; what is there is kept
  kNone,
};

Remedy remedy_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kPeerUnreachable:
    case ErrorCode::kDaemonNotRunning:
    case ErrorCode::kStalled:
    case ErrorCode::kResources:
      return Remedy::kTime;
    case ErrorCode::kNoSpace:
    case ErrorCode::kStorage:
    case ErrorCode::kPeerUntrusted:
      return Remedy::kOperator;
    default:
      return Remedy::kNone;
  }
}

}  // namespace

void Session::end_with(Error error) {
  error_ = std::move(error);
  changed_.notify();
}

asio::awaitable<void> Session::rest() {
  const Error error =
      attempt_error_.value_or(Error{ErrorCode::kInternal, "the attempt ended without a reason"});
  if (detached_) co_return;
  if (cancelled_) co_return end_with(error);
  Remedy remedy = remedy_of(error.code);
  if (!began_) {  // as with any tool, an error at the beginning is the end, unless somebody just fell over
    const bool fell = error.code == ErrorCode::kPeerUnreachable || error.code == ErrorCode::kDaemonNotRunning;
    if (!incoming_ && !(fell && initiator_ && (contacted_ || board_lost_))) co_return end_with(error);
    if (end_) co_await forget_files();
    remedy = Remedy::kTime;
  }
  if (paused_ && !held_) co_return co_await wait_paused();
  if (remedy == Remedy::kNone) co_return end_with(error);
  spdlog::warn("{} with {} is interrupted: {}", log_name(), peer_name_, error.message);
  (void)co_await journal_session(journal::Durability::kProcess);  // its flows are closed
  if (remedy == Remedy::kTime || !initiator_) {
    if (!initiator_ && remedy == Remedy::kOperator) held_ = error;
    const bool again = co_await wait_turn(error);
    if (cancelled_) co_return end_with(*attempt_error_);
    if (again || detached_) co_return;
  }
  if (!paused_) {
    paused_ = true;
    held_ = Error{error.code, fmt::format("{}; what has arrived is kept: remedy that, then 'sluice session "
                                          "continue {}'",
                                          error.message, id_.substr(0, 8))};
  }
  co_await wait_paused();
}

// True: try again. False: it was paused meanwhile, or has waited too long.
asio::awaitable<bool> Session::wait_turn(const Error& error) {
  const uint64_t start_ns = monotonic_ns();
  if (interrupted_ns_ == 0) interrupted_ns_ = start_ns;
  if (!paused_by_.empty()) interrupted_ns_ = start_ns;  // the peer is well
  backoff_ns_ = std::clamp(backoff_ns_ * 2, kBackoffMinNs, kBackoffMaxNs);
  const uint64_t next_ns = start_ns + backoff_ns_;
  const uint64_t limit_ns = interrupted_ns_ + context_->node.resume_timeout_s * 1'000'000'000ULL;
  attempt_error_.reset();
  for (;;) {
    if (cancelled_ || detached_ || paused_) co_return false;
    const uint64_t now_ns = monotonic_ns();
    const bool attached = context_->board->attached();
    if (initiator_ && now_ns >= limit_ns) co_return false;
    if (attached && (initiator_ ? now_ns >= next_ns : incoming_.has_value())) break;
    state_ = api::Session::WAITING;
    waiting_for_ = !attached             ? "sluice-dataplane of this node"
                   : !paused_by_.empty() ? fmt::format("node {} (paused by its operator)", paused_by_)
                   : initiator_          ? error.message
                                         : "node " + peer_name_;
    const auto rest = initiator_ && next_ns > now_ns ? std::chrono::nanoseconds(next_ns - now_ns) : kPoll;
    co_await changed_.wait_for(std::min<std::chrono::nanoseconds>(rest, kPoll));
  }
  waiting_for_.clear();
  held_.reset();
  co_return true;
}

asio::awaitable<void> Session::wait_paused() {
  (void)co_await journal_session(journal::Durability::kPower);
  spdlog::info("{} is paused{}", log_name(), held_ ? ": " + held_->message : " by an operator");
  while (paused_ && !cancelled_ && !detached_) {
    state_ = api::Session::PAUSED;
    waiting_for_ = "an operator: 'sluice session continue " + id_.substr(0, 8) + "'";
    if (incoming_) {
      peer::PeerMessage message;
      message.mutable_pause()->set_node(context_->node.name);
      (void)incoming_->connection->send(message);
      co_await incoming_->connection->flush();
      incoming_.reset();
      continue;
    }
    co_await changed_.wait();
  }
  waiting_for_.clear();
  if (cancelled_) co_return end_with(*attempt_error_);
  attempt_error_.reset();
  if (!detached_) (void)co_await journal_session(journal::Durability::kPower);
}

Status Session::pause() {
  if (ended_) return Error{ErrorCode::kUsage, fmt::format("session {} has ended already", id_)};
  if (paused_) return Error{ErrorCode::kUsage, fmt::format("session {} is paused already", id_)};
  if (!began_) {
    return Error{ErrorCode::kUsage,
                 fmt::format("session {} has not begun to move data: cancel it, or wait", id_)};
  }
  paused_ = true;
  held_.reset();
  fail({ErrorCode::kCancelled, fmt::format("paused by an operator of node {}", context_->node.name)});
  return {};
}

Status Session::go_on() {
  if (ended_) return Error{ErrorCode::kUsage, fmt::format("session {} has ended already", id_)};
  if (!paused_) return Error{ErrorCode::kUsage, fmt::format("session {} is not paused here", id_)};
  paused_ = false;
  held_.reset();
  interrupted_ns_ = backoff_ns_ = 0;
  changed_.notify();
  return {};
}

}  // namespace sluice::control
