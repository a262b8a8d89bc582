// SPDX-License-Identifier: Apache-2.0
#include "control/session/session.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <asio/detached.hpp>
#include <chrono>

#include "control/session/destination.h"
#include "control/session/source.h"

// GCC 12 takes the inlined frame allocation of a coroutine for a mismatch; it is asio's own pair.
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"

namespace sluice::control {
namespace {

constexpr uint32_t kConnectTimeoutMs = 5000;
constexpr auto kFlushTimeout = std::chrono::seconds(2);

int64_t unix_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Session::Session(std::shared_ptr<Context> context, std::string id, SessionRequest request)
    : context_(std::move(context)),
      changed_(context_->io),
      id_(std::move(id)),
      request_(std::move(request)),
      peer_name_(request_->peer.name),
      is_source_(request_->send),
      state_(api::Session::CONNECTING),
      started_unix_ns_(unix_ns()),
      started_ns_(monotonic_ns()) {}

Session::Session(std::shared_ptr<Context> context, std::unique_ptr<peer::Connection> connection)
    : context_(std::move(context)),
      changed_(context_->io),
      peer_name_(connection->peer().name),
      connection_(std::move(connection)),
      started_unix_ns_(unix_ns()),
      started_ns_(monotonic_ns()) {}

Session::~Session() = default;

std::string Session::log_name() const {
  return fmt::format("session {}", id_.empty() ? "-" : id_.substr(0, 8));
}

void Session::start(OnEnd on_end) {
  on_end_ = std::move(on_end);
  asio::co_spawn(context_->io, run(shared_from_this()), asio::detached);
}

void Session::cancel() {
  fail({ErrorCode::kCancelled, fmt::format("cancelled by an operator of node {}", context_->node.name)});
}

void Session::fail(Error error) {
  if (!error_ && !ended_) error_ = std::move(error);
  changed_.notify();
}

void Session::spawn(asio::awaitable<void> task) {
  ++tasks_;
  asio::co_spawn(context_->io, std::move(task), [self = shared_from_this()](const std::exception_ptr&) {
    --self->tasks_;
    self->changed_.notify();
  });
}

void Session::command(board::CommandKind kind, uint32_t lane, uint32_t object, recovery::Range range,
                      uint32_t tag) {
  if (board_lost_) return;
  context_->board->command({.kind = kind,
                            .flow = lanes_[lane].grant.slot,
                            .object = object,
                            .tag = tag,
                            .offset = range.offset,
                            .length = range.length});
}

asio::awaitable<void> Session::run(std::shared_ptr<Session> self) {
  Status status;
  if (request_) {
    status = co_await initiate();
  } else {
    status = co_await serve();
  }
  if (!status) fail(status.error());
  co_await wind_down();
  ended_ns_ = monotonic_ns();
  if (data_ended_ns_ == 0) data_ended_ns_ = ended_ns_;
  waiting_for_.clear();
  state_ = !error_                                 ? api::Session::SUCCEEDED
           : error_->code == ErrorCode::kCancelled ? api::Session::CANCELLED
                                                   : api::Session::FAILED;
  ended_ = true;
  changed_.notify();
  const api::Session figures = snapshot();
  if (!error_) {
    spdlog::info(
        "{} with {} succeeded: {} file(s), {} bytes in {:.3f} s, {:.2f} Gbit/s, {} chunk(s) sent again",
        log_name(), peer_name_, figures.files_size(), figures.bytes_total(), figures.elapsed_s(),
        figures.goodput_bps() * 1e-9, figures.retransmits());
  } else {
    spdlog::warn("{} with {} ended: {} ({})", log_name(), peer_name_, error_->message,
                 error_code_name(error_->code));
  }
  on_end_(self);
}

asio::awaitable<Status> Session::initiate() {
  if (Status status = take_slot(); !status) co_return status;
  state_ = api::Session::QUEUED;
  const Options options = request_->options;
  const auto direction = is_source_ ? board::Direction::kTx : board::Direction::kRx;
  const uint32_t lanes = std::min(options.lanes, context_->board->table().lanes_max(direction));
  Status status = co_await take_lanes(lanes, true);
  if (status && !is_source_) status = co_await take_budget(board::Direction::kRx);
  if (!status) co_return status;
  state_ = api::Session::CONNECTING;
  Result<std::unique_ptr<peer::Connection>> connection =
      co_await peer::connect(context_->identity, request_->peer, kConnectTimeoutMs);
  if (!connection) co_return connection.error();
  if (failed()) co_return *error_;
  start_stream(std::move(*connection));

  state_ = api::Session::NEGOTIATING;
  send_hello();
  Result<peer::PeerMessage> hello = co_await expect(peer::PeerMessage::kHello, "peer's hello", false);
  if (!hello) co_return hello.error();
  if (status = check_hello(hello->hello()); !status) co_return status;

  const bool discard = request_->destination == kNullDestination;
  Result<peer::Specification> specification =
      make_specification(abilities(), options, is_source_, discard, local_ports());
  if (!specification) co_return specification.error();
  peer::PeerMessage message;
  *message.mutable_specification() = *specification;
  send(message);
  Result<peer::PeerMessage> answer =
      co_await expect(peer::PeerMessage::kSpecificationSet, "peer's extent buffers", true);
  if (!answer) co_return answer.error();
  status = take_agreement(*specification, answer->specification_set(), true);
  if (!status) co_return status;
  if (is_source_) co_return co_await run_source(std::move(request_->sources));

  peer::PeerMessage request;
  for (const std::string& path : request_->source_paths)
    request.mutable_transfer_request()->add_source_paths(path);
  send(request);
  co_return co_await run_destination();
}

asio::awaitable<Status> Session::serve() {
  start_stream(std::move(connection_));
  Result<peer::PeerMessage> hello = co_await expect(peer::PeerMessage::kHello, "peer's hello", false);
  if (!hello) co_return hello.error();
  Status status = check_hello(hello->hello());
  if (!status) co_return status;
  id_.clear();
  for (const char c : hello->hello().session_id()) id_ += fmt::format("{:02x}", static_cast<uint8_t>(c));
  send_hello();

  Result<peer::PeerMessage> asked =
      co_await expect(peer::PeerMessage::kSpecification, "peer's specification", false);
  if (!asked) co_return asked.error();
  const peer::Specification specification = asked->specification();
  is_source_ = specification.role() == peer::Specification::ROLE_DESTINATION;
  status = take_slot();
  if (!status) co_return status;
  const auto direction = is_source_ ? board::Direction::kTx : board::Direction::kRx;
  Result<uint32_t> lanes = lanes_for(specification, context_->board->table().lanes_max(direction));
  if (!lanes) co_return lanes.error();
  status = co_await take_lanes(*lanes, false);
  if (status && !is_source_) status = co_await take_budget(board::Direction::kRx);
  if (!status) co_return status;
  state_ = api::Session::NEGOTIATING;
  Result<peer::SpecificationSet> set =
      answer(specification, abilities(), context_->node.partition_bytes, local_ports());
  if (!set) co_return set.error();
  status = take_agreement(specification, *set, false);
  if (!status) co_return status;
  peer::PeerMessage message;
  *message.mutable_specification_set() = *set;
  send(message);
  if (!is_source_) co_return co_await run_destination();

  Result<peer::PeerMessage> request =
      co_await expect(peer::PeerMessage::kTransferRequest, "peer's transfer request", false);
  if (!request) co_return request.error();
  std::vector<std::string> paths(request->transfer_request().source_paths().begin(),
                                 request->transfer_request().source_paths().end());
  auto work = [context = context_, paths] { return open_sources(context->exports, paths); };
  Result<std::vector<SourceItem>> items = co_await in_pool(context_, std::move(work));
  if (!items) co_return items.error();
  co_return co_await run_source(std::move(*items));
}

asio::awaitable<Status> Session::run_source(std::vector<SourceItem> items) {
  auto source = std::make_unique<Source>(*this, std::move(items));
  Source& end = *source;
  end_ = std::move(source);
  Status status = co_await take_budget(board::Direction::kTx);
  if (!status) co_return status;
  state_ = api::Session::NEGOTIATING;
  const bool ours = request_.has_value();
  send(end.offer(ours ? request_->destination : "", ours && request_->options.overwrite));
  Result<peer::PeerMessage> ready = co_await expect(peer::PeerMessage::kTransferReady, "peer's files", true);
  if (!ready) co_return ready.error();
  status = end.take_ready(ready->transfer_ready());
  if (!status) co_return status;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].flow_id = ready->transfer_ready().flow_ids(static_cast<int>(i));
  }
  status = co_await open_lanes();
  if (!status) co_return status;
  co_return co_await begin_and_run();
}

asio::awaitable<Status> Session::run_destination() {
  Result<peer::PeerMessage> offer = co_await expect(peer::PeerMessage::kTransferOffer, "peer's files", true);
  if (!offer) co_return offer.error();
  peer::TransferOffer files = offer->transfer_offer();
  if (request_) {  // what the operator here asked for, not what the peer says
    const std::string& path = request_->destination;
    files.set_destination(path);
    files.set_destination_is_directory(path.ends_with('/') || request_->source_paths.size() > 1);
    files.set_overwrite(request_->options.overwrite);
  }
  auto destination = std::make_unique<Destination>(*this);
  Destination& end = *destination;
  end_ = std::move(destination);
  waiting_for_ = "creating files";
  Status status = co_await end.prepare(files);
  waiting_for_.clear();
  if (!status) co_return status;
  status = co_await open_lanes();
  if (!status) co_return status;
  send(end.ready());
  co_return co_await begin_and_run();
}

asio::awaitable<Status> Session::begin_and_run() {
  if (failed()) co_return *error_;
  state_ = api::Session::TRANSFERRING;
  waiting_for_.clear();
  data_started_ns_ = progress_ns_ = watched_ns_ = monotonic_ns();
  data_running_ = true;
  meter_.sample(0, data_started_ns_);
  spdlog::info("{}: {} {} bytes {} {} over {} lane(s), chunks of {}, {}", log_name(),
               is_source_ ? "sending" : "receiving", end_->bytes_total(), is_source_ ? "to" : "from",
               peer_name_, agreement_.lanes, agreement_.chunk_bytes,
               wire::crc_kind_name(agreement_.crc_kind));
  while (!inbox_.empty()) {
    const peer::PeerMessage message = std::move(inbox_.front());
    inbox_.pop_front();
    end_->on_message(message);
  }
  Status status = co_await end_->run();
  data_ended_ns_ = monotonic_ns();
  state_ = api::Session::FINISHING;
  if (failed()) co_return *error_;
  co_return status;
}

asio::awaitable<void> Session::wind_down() {
  winding_down_ = true;
  data_running_ = false;
  if (error_) waiting_for_ = "cleaning up";
  changed_.notify();
  if (connection_) co_await send_failure();
  co_await close_lanes();
  while (tasks_ > 0) co_await changed_.wait();
  if (slot_ && !board_lost_) co_await context_->board->close_session(*slot_, this);
  if (end_) co_await end_->release();
  if (connection_) connection_->close();
  while (reading_) co_await changed_.wait();
}

// Tells the peer why, if it does not know, and lets everything queued leave, within a bound.
asio::awaitable<void> Session::send_failure() {
  if (error_ && !error_is_peers_) {
    peer::PeerMessage message;
    message.mutable_failure()->set_code(static_cast<uint32_t>(error_->code));
    message.mutable_failure()->set_message(error_->message);
    (void)connection_->send(message);
  }
  auto timer = std::make_shared<asio::steady_timer>(context_->io, kFlushTimeout);
  timer->async_wait([self = shared_from_this(), timer](const asio::error_code& error) {
    if (!error) self->connection_->close();
  });
  co_await connection_->flush();
  timer->cancel();
}

}  // namespace sluice::control
