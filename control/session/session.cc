// A session's life: attempts until it is done, given up or cancelled.
// SPDX-License-Identifier: Apache-2.0
#include "control/session/session.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/detached.hpp>
#include <chrono>

namespace sluice::control {
namespace {

constexpr auto kFlushTimeout = std::chrono::seconds(2);

int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Session::Session(Token /*token*/, std::shared_ptr<Context> context, std::string id)
    : context_(std::move(context)),
      changed_(context_->io),
      id_(std::move(id)),
      started_unix_ns_(unix_ns()),
      started_ns_(monotonic_ns()) {}

Session::Session(std::shared_ptr<Context> context, std::string id, SessionRequest request)
    : Session(Token(), std::move(context), std::move(id)) {
  initiator_ = true;
  request_ = std::move(request);
  peer_ = request_->peer;
  peer_name_ = peer_->name;
  is_source_ = request_->send;
  state_ = api::Session::CONNECTING;
}

Session::Session(std::shared_ptr<Context> context, std::string id, Incoming incoming)
    : Session(Token(), std::move(context), std::move(id)) {
  peer_name_ = incoming.connection->peer().name;
  incoming_ = std::move(incoming);
}

Session::~Session() = default;

std::string Session::log_name() const { return fmt::format("session {}", id_.substr(0, 8)); }

void Session::start(OnEnd on_end) {
  on_end_ = std::move(on_end);
  asio::co_spawn(context_->io, run(shared_from_this()), asio::detached);
}

void Session::fail(Error error) {
  if (!attempt_error_ && !ended_) attempt_error_ = std::move(error);
  changed_.notify();
}

void Session::cancel() {
  cancelled_ = true;
  attempt_error_.reset();  // whatever else was in the way
  fail({ErrorCode::kCancelled, fmt::format("cancelled by an operator of node {}", context_->node.name)});
}

void Session::detach() {
  detached_ = true;
  fail(
      {ErrorCode::kDaemonNotRunning, fmt::format("sluice-control of node {} was stopped: the session goes on "
                                                 "when it runs again",
                                                 context_->node.name)});
}

void Session::offer(Incoming incoming) {
  if (incoming_) incoming_->connection->close();
  incoming_ = std::move(incoming);
  // The peer has given the old connection up; keep_stream or rest() takes the new one.
  if (connection_ && reading_) connection_->close();
  changed_.notify();
}

void Session::spawn(asio::awaitable<void> task) {
  ++tasks_;
  asio::co_spawn(context_->io, std::move(task), [self = shared_from_this()](const std::exception_ptr&) {
    --self->tasks_;
    self->changed_.notify();
  });
}

void Session::command(const recovery::LaneCommand& command) {
  if (board_lost_ || command.lane.value() >= lanes_.size()) return;
  context_->board->command({.kind = command.kind,
                            .flow = lanes_[command.lane.value()].grant.slot,
                            .object = command.object.value(),
                            .tag = command.tag,
                            .offset = command.range.offset,
                            .length = command.range.length});
}

asio::awaitable<void> Session::run(std::shared_ptr<Session> /*self*/) {
  bool done = end_ && end_->complete();  // found in the journal
  if (initiator_ && !began_) {
    const Status status = co_await journal_session(journal::Durability::kProcess);
    if (!status) end_with(status.error());
  }
  if (paused_) co_await wait_paused();
  while (!done && !error_ && !detached_) {
    attempt_error_.reset();
    error_is_peers_ = board_lost_ = told_ = false;
    paused_by_.clear();
    const Status status = co_await attempt();
    if (!status) fail(status.error());
    co_await end_attempt();
    done = end_ ? end_->complete() : !attempt_error_;
    if (!done) co_await rest();
  }
  co_await finish();
}

// The dataplane first, then either the flows of a former control, or new ones.
asio::awaitable<Status> Session::attempt() {
  while (!failed() && (claim_pending_ || !context_->board->attached())) {
    state_ = api::Session::WAITING;
    waiting_for_ = "sluice-dataplane of this node";
    co_await context_->board->changed().wait_for(std::chrono::milliseconds(200));
  }
  if (failed()) co_return *attempt_error_;
  if (std::exchange(claimed_, false)) co_return co_await adopt();
  if (initiator_) co_return co_await initiate();
  while (!failed() && !incoming_) {
    state_ = api::Session::WAITING;
    waiting_for_ = "node " + peer_name_;
    co_await changed_.wait();
  }
  if (failed()) co_return *attempt_error_;
  co_return co_await serve();
}

asio::awaitable<Status> Session::begin_and_run() {
  const Status status = co_await journal_session(journal::Durability::kProcess);
  if (!status) co_return status;
  if (failed()) co_return *attempt_error_;
  state_ = api::Session::TRANSFERRING;
  waiting_for_.clear();
  progress_ns_ = watched_ns_ = monotonic_ns();
  if (data_started_ns_ == 0) data_started_ns_ = watched_ns_;
  data_running_ = true;
  meter_ = RateMeter();
  meter_.sample(bytes_done(), watched_ns_);
  spdlog::info("{}: {} {} bytes {} {} over {} lane(s), chunks of {}, {}", log_name(),
               is_source_ ? "sending" : "receiving", end_->bytes_total(), is_source_ ? "to" : "from",
               peer_name_, lanes_.size(), agreement_.chunk_bytes, wire::crc_kind_name(agreement_.crc_kind));
  while (!inbox_.empty()) {
    const peer::PeerMessage message = std::move(inbox_.front());
    inbox_.pop_front();
    end_->on_message(message);
  }
  spawn(keep_stream());
  const Status ran = co_await end_->run();
  data_ended_ns_ = monotonic_ns();
  state_ = api::Session::FINISHING;
  if (failed()) co_return *attempt_error_;
  co_return ran;
}

// Gives back everything but the files and what is known of them.
asio::awaitable<void> Session::end_attempt() {
  winding_down_ = true;
  data_running_ = false;
  if (attempt_error_) waiting_for_ = "cleaning up";
  changed_.notify();
  if (connection_) co_await send_last_word();
  if (!detached_) co_await close_lanes();
  while (tasks_ > 0) co_await changed_.wait();
  if (end_ && !detached_ && !cancelled_) end_->settle();
  while (tasks_ > 0) co_await changed_.wait();
  if (!detached_) {
    if (slot_ && !board_lost_) co_await context_->board->close_session(*slot_, this);
    slot_.reset();
    lanes_.clear();
  }
  if (connection_) connection_->close();
  while (reading_) co_await changed_.wait();
  connection_.reset();
  inbox_.clear();
  early_events_.clear();
  former_figures_.add(std::exchange(figures_, {}));
  waiting_for_.clear();
  winding_down_ = false;
}

// Tells the peer why, if it does not know, and lets everything queued leave, within a bound.
asio::awaitable<void> Session::send_last_word() {
  // A control that stops says nothing: the flows go on, and the peer looks for the next one.
  if (attempt_error_ && !error_is_peers_ && !detached_) {
    peer::PeerMessage message;
    if (paused_ && !held_) {
      message.mutable_pause()->set_node(context_->node.name);
    } else {
      message.mutable_failure()->set_code(static_cast<uint32_t>(attempt_error_->code));
      message.mutable_failure()->set_message(attempt_error_->message);
    }
    told_ = static_cast<bool>(connection_->send(message));
  }
  auto timer = std::make_shared<asio::steady_timer>(context_->io, kFlushTimeout);
  timer->async_wait([connection = connection_, timer](const asio::error_code& error) {
    if (!error) connection->close();
  });
  co_await connection_->flush();
  timer->cancel();
}

asio::awaitable<void> Session::finish() {
  if (incoming_) incoming_->connection->close();
  incoming_.reset();
  if (std::exchange(claim_pending_, false)) context_->board->forget(this);  // what it claimed is closed
  if (end_) co_await end_->release(detached_ && !error_);
  if (detached_ && !error_ && !(end_ && end_->complete())) {
    context_->board->forget(this);
    ended_ = true;
    changed_.notify();
    on_end_(shared_from_this());
    co_return;
  }
  ended_ns_ = monotonic_ns();
  if (data_ended_ns_ == 0) data_ended_ns_ = ended_ns_;
  waiting_for_.clear();
  state_ = !error_                                 ? api::Session::SUCCEEDED
           : error_->code == ErrorCode::kCancelled ? api::Session::CANCELLED
                                                   : api::Session::FAILED;
  peer_unaware_ = initiator_ && began_ && error_ && !told_ && (cancelled_ || !error_is_peers_);
  ended_ = true;
  co_await journal_end();
  changed_.notify();
  report_end();
  on_end_(shared_from_this());
}

void Session::report_end() {
  if (error_) {
    spdlog::warn("{} with {} ended: {} ({})", log_name(), peer_name_, error_->message,
                 error_code_name(error_->code));
    return;
  }
  const api::Session figures = snapshot();
  spdlog::info(
      "{} with {} succeeded: {} file(s), {} bytes in {:.3f} s, {:.2f} Gbit/s, {} chunk(s) sent again",
      log_name(), peer_name_, figures.files_size(), figures.bytes_total(), figures.elapsed_s(),
      figures.goodput_bps() * 1e-9, figures.retransmits());
}

std::optional<identity::Peer> Session::unaware_peer() const {
  return ended_ && peer_unaware_ ? peer_ : std::nullopt;
}

}  // namespace sluice::control
