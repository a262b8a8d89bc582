// How an attempt comes to open flows: with a handshake, or by going on with those of a former control.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "control/session/destination.h"
#include "control/session/hello.h"
#include "control/session/session.h"
#include "control/session/source.h"

namespace sluice::control {
// Flows that a former control opened and its journal names: no handshake, only a new stream later.
asio::awaitable<Status> Session::adopt() {
  spdlog::info("{}: going on with {} open flow(s)", log_name(), lanes_.size());
  state_ = api::Session::NEGOTIATING;
  data_running_ = true;
  progress_ns_ = watched_ns_ = monotonic_ns();
  for (const board::Event& event : std::exchange(early_events_, {})) on_event(event);
  const Status status = co_await end_->adopt();
  if (!status) co_return status;
  co_return co_await begin_and_run();
}

asio::awaitable<Status> Session::initiate() {
  if (Status status = take_slot(); !status) co_return status;
  state_ = api::Session::QUEUED;
  Options options = request_->options;
  const auto direction = is_source_ ? board::Direction::kTx : board::Direction::kRx;
  const uint32_t lanes = std::min(options.lanes, context_->board->table().lanes_max(direction));
  Status status = co_await take_lanes(lanes, true);
  if (status && !is_source_) status = co_await take_budget(board::Direction::kRx);
  if (!status) co_return status;
  state_ = api::Session::CONNECTING;
  Result<std::unique_ptr<peer::Connection>> connection =
      co_await peer::connect(context_->identity, *peer_, kConnectTimeoutMs);
  if (!connection) co_return connection.error();
  if (failed()) co_return *attempt_error_;
  start_stream(std::move(*connection));

  state_ = api::Session::NEGOTIATING;
  send(hello(false));
  Result<peer::PeerMessage> hello = co_await expect(peer::PeerMessage::kHello, "peer's hello", false);
  if (!hello) co_return hello.error();
  if (status = check_hello(hello->hello()); !status) co_return status;
  contacted_ = true;
  if (hello->hello().ended()) co_return co_await run_settled();

  const bool discard = request_->destination == kNullDestination;
  Abilities able = abilities();
  if (began_) {  // what is there was cut and checked so
    able.port.extent_bytes_max = agreement_.extent_bytes;
    options.crc_kind = agreement_.crc_kind;
  }
  Result<peer::Specification> specification =
      make_specification(able, options, is_source_, discard, local_ports());
  if (!specification) co_return specification.error();
  peer::PeerMessage message;
  *message.mutable_specification() = *specification;
  send(message);
  Result<peer::PeerMessage> answer =
      co_await expect(peer::PeerMessage::kSpecificationSet, "peer's extent buffers", true);
  if (!answer) co_return answer.error();
  status = take_agreement(*specification, answer->specification_set());
  if (!status) co_return status;
  if (is_source_) co_return co_await run_source(std::move(request_->sources));

  peer::PeerMessage request;
  for (const std::string& path : request_->source_paths)
    request.mutable_transfer_request()->add_source_paths(path);
  send(request);
  co_return co_await run_destination();
}

asio::awaitable<Status> Session::serve() {
  Incoming incoming = std::move(*incoming_);
  incoming_.reset();
  start_stream(std::move(incoming.connection));
  contacted_ = true;
  // It never came to know what was agreed: no data was sent.
  if (began_ && !incoming.hello.known()) co_await forget_files();
  send(hello(false));

  Result<peer::PeerMessage> asked =
      co_await expect(peer::PeerMessage::kSpecification, "peer's specification", false);
  if (!asked) co_return asked.error();
  const peer::Specification specification = asked->specification();
  const bool source = specification.role() == peer::Specification::ROLE_DESTINATION;
  if (began_ && source != is_source_) {
    co_return Error{ErrorCode::kIncompatible, fmt::format("{} changed sides of the session", peer_name_)};
  }
  is_source_ = source;
  Status status = take_slot();
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
  status = take_agreement(specification, *set);
  if (!status) co_return status;
  peer::PeerMessage message;
  *message.mutable_specification_set() = *set;
  send(message);
  if (!is_source_) co_return co_await run_destination();

  Result<peer::PeerMessage> request =
      co_await expect(peer::PeerMessage::kTransferRequest, "peer's transfer request", false);
  if (!request) co_return request.error();
  std::vector<SourceItem> none;
  if (end_) co_return co_await run_source(std::move(none));
  std::vector<std::string> paths(request->transfer_request().source_paths().begin(),
                                 request->transfer_request().source_paths().end());
  auto work = [context = context_, paths] { return open_sources(context->exports, paths); };
  Result<std::vector<SourceItem>> items = co_await in_pool(context_, std::move(work));
  if (!items) co_return items.error();
  co_return co_await run_source(std::move(*items));
}

asio::awaitable<Status> Session::run_source(std::vector<SourceItem> items) {
  if (!end_ && items.empty()) {  // an initiator that was restarted before it began
    auto work = [context = context_, paths = request_->source_paths] {
      return open_sources(context->exports, paths);
    };
    Result<std::vector<SourceItem>> opened = co_await in_pool(context_, std::move(work));
    if (!opened) co_return opened.error();
    items = std::move(*opened);
  }
  if (!end_) end_ = std::make_unique<Source>(*this, std::move(items));
  auto& source = static_cast<Source&>(*end_);
  Status status = co_await source.reopen();
  if (status) status = co_await take_budget(board::Direction::kTx);
  if (!status) co_return status;
  state_ = api::Session::NEGOTIATING;
  send(source.offer(initiator_ ? request_->destination : "", initiator_ && request_->options.overwrite));
  Result<peer::PeerMessage> ready = co_await expect(peer::PeerMessage::kTransferReady, "peer's files", true);
  if (!ready) co_return ready.error();
  status = source.take_ready(ready->transfer_ready());
  if (!status) co_return status;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    lanes_[i].flow_id = ready->transfer_ready().flow_ids(static_cast<int>(i));
  }
  status = co_await journal_files();
  if (status) status = co_await open_lanes();
  if (!status) co_return status;
  source.start_attempt();
  co_return co_await begin_and_run();
}

asio::awaitable<Status> Session::run_destination() {
  Result<peer::PeerMessage> offer = co_await expect(peer::PeerMessage::kTransferOffer, "peer's files", true);
  if (!offer) co_return offer.error();
  peer::TransferOffer files = offer->transfer_offer();
  if (initiator_) {  // what the operator here asked for, not what the peer says
    const std::string& path = request_->destination;
    files.set_destination(path);
    files.set_destination_is_directory(path.ends_with('/') || request_->source_paths.size() > 1);
    files.set_overwrite(request_->options.overwrite);
  }
  if (!end_) end_ = std::make_unique<Destination>(*this);
  auto& destination = static_cast<Destination&>(*end_);
  waiting_for_ = "creating files";
  Status status = co_await destination.prepare(files);
  waiting_for_.clear();
  if (status) status = co_await journal_files();
  if (status) status = co_await open_lanes();
  if (!status) co_return status;
  destination.start_attempt();
  send(destination.ready());
  destination.send_states();
  co_return co_await begin_and_run();
}

// The session has ended at the other node, which says how: no flows are needed to hear it.
asio::awaitable<Status> Session::run_settled() {
  if (!end_) {
    Result<peer::PeerMessage> word = co_await expect(peer::PeerMessage::kFailure, "peer's reason", false);
    co_return word ? Status() : Status(word.error());
  }
  shrink_lanes(0);
  if (is_source_) {
    auto& source = static_cast<Source&>(*end_);
    const Status status = co_await source.reopen();
    if (!status) co_return status;
    source.start_attempt();
  }
  co_return co_await begin_and_run();
}

Abilities Session::abilities() const {
  return {.port = context_->board->port(), .udp_checksum_always = context_->node.udp_checksum == "always"};
}

Status Session::take_agreement(const peer::Specification& specification, const peer::SpecificationSet& set) {
  Result<Agreement> agreement = agree(specification, set, abilities(), initiator_);
  if (!agreement) return agreement.error();
  if (began_ && (agreement->extent_bytes != agreement_.extent_bytes ||
                 agreement->crc_kind != agreement_.crc_kind || agreement->discard != agreement_.discard)) {
    return Error{
        ErrorCode::kIncompatible,
        fmt::format("the session was cut into extents of {} bytes with {}, which {} does not take any "
                    "more: configure it as before, or begin another session",
                    agreement_.extent_bytes, wire::crc_kind_name(agreement_.crc_kind), peer_name_)};
  }
  agreement_ = std::move(*agreement);
  shrink_lanes(agreement_.lanes);
  return {};
}

}  // namespace sluice::control
