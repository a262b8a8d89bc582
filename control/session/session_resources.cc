// What an attempt takes from the board and gives back: its slot, flows, credit.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "control/session/session.h"

namespace sluice::control {
namespace {

constexpr auto kQueuePoll = std::chrono::milliseconds(200);
constexpr uint64_t kOpenTimeoutNs = 5'000'000'000;
constexpr uint64_t kCloseTimeoutNs = 5'000'000'000;
constexpr uint32_t kStatusIntervalNs = 1'000'000;

// Low 16 bits: the slot; the rest random, so that datagrams of a former life are strangers.
uint64_t new_flow_id(uint32_t slot) {
  static std::random_device random;
  const uint64_t high = static_cast<uint64_t>(random()) << 32 | random();
  return (high << 16 | slot) | (uint64_t{1} << 63);
}

}  // namespace

Status Session::take_slot() {
  Result<uint32_t> slot = context_->board->open_session(this);
  if (!slot) return slot.error();
  slot_ = *slot;
  return {};
}

asio::awaitable<Status> Session::take_lanes(uint32_t lanes, bool may_wait) {
  if (lanes == 0) {
    co_return Error{ErrorCode::kResources,
                    "no lane is possible: raise dataplane.extents_per_worker in node.toml"};
  }
  for (;;) {
    if (failed()) co_return *attempt_error_;
    if (auto grants = context_->board->table().take_flows(lanes)) {
      for (const FlowGrant& grant : *grants) lanes_.push_back({.grant = grant});
      waiting_for_.clear();
      co_return Status();
    }
    if (!may_wait) {
      co_return Error{
          ErrorCode::kResources,
          fmt::format("node {} has no {} free flow slot(s): try again later", context_->node.name, lanes)};
    }
    waiting_for_ = "flow slots";
    co_await context_->board->changed().wait_for(kQueuePoll);
  }
}

bool Session::try_budget(board::Direction direction) {
  FlowTable& table = context_->board->table();
  std::vector<FlowGrant> grants;
  for (const Lane& lane : lanes_) grants.push_back(lane.grant);
  if (direction == board::Direction::kTx) return table.take_buffers(grants);
  const std::optional<std::vector<uint32_t>> credit = table.take_credit(grants);
  for (size_t i = 0; credit && i < lanes_.size(); ++i) lanes_[i].credit = (*credit)[i];
  return credit.has_value();
}

asio::awaitable<Status> Session::take_budget(board::Direction direction) {
  std::list<const void*>& queue =
      direction == board::Direction::kRx ? context_->rx_queue : context_->tx_queue;
  struct Place {
    std::list<const void*>& queue;
    std::list<const void*>::iterator at;
    ~Place() { queue.erase(at); }
  } place{queue, queue.insert(queue.end(), this)};
  for (;;) {
    if (failed()) co_return *attempt_error_;
    if (place.at == queue.begin() && try_budget(direction)) break;
    if (state_ != api::Session::QUEUED || waiting_for_ != "extent buffers") {
      spdlog::info("{}: queued, waiting for extent buffers", log_name());
    }
    state_ = api::Session::QUEUED;
    waiting_for_ = "extent buffers";
    co_await context_->board->changed().wait_for(kQueuePoll);
  }
  waiting_for_.clear();
  context_->board->changed().notify();  // the next in the queue
  co_return Status();
}

std::vector<uint16_t> Session::local_ports() const {
  std::vector<uint16_t> ports;
  for (const Lane& lane : lanes_) ports.push_back(lane.grant.local_port);
  return ports;
}

void Session::shrink_lanes(uint32_t lanes) {
  while (lanes_.size() > lanes) {
    context_->board->release_flow(lanes_.back().grant.slot);
    lanes_.pop_back();
  }
}

board::FlowConfig Session::flow_config(const Lane& lane, uint16_t peer_port) const {
  board::FlowConfig config;
  config.flow_id = lane.flow_id;
  config.rate_bps = agreement_.rate_bps / 10 / agreement_.lanes;  // the ramp begins at a tenth
  config.partition_bytes = agreement_.partition_bytes;
  config.session = *slot_;
  config.chunk_bytes = agreement_.chunk_bytes;
  config.extent_bytes = agreement_.extent_bytes;
  config.credit_extents = lane.credit;
  config.status_interval_ns = kStatusIntervalNs;
  config.local_port = lane.grant.local_port;
  config.peer_port = peer_port;
  std::copy(agreement_.local_ip.begin(), agreement_.local_ip.end(), config.local_ip);
  std::copy(agreement_.peer_ip.begin(), agreement_.peer_ip.end(), config.peer_ip);
  config.direction = is_source_ ? board::Direction::kTx : board::Direction::kRx;
  config.crc_kind = static_cast<uint8_t>(agreement_.crc_kind);
  config.udp_checksum = agreement_.udp_checksum ? 1 : 0;
  return config;
}

asio::awaitable<Status> Session::open_lanes() {
  if (failed()) co_return *attempt_error_;
  ++attempts_;
  for (size_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[i];
    if (!is_source_) lane.flow_id = new_flow_id(lane.grant.slot);
    lane.opened = true;
    context_->board->open_flow(lane.grant.slot, flow_config(lane, agreement_.peer_ports[i]), this);
  }
  const uint64_t deadline_ns = monotonic_ns() + kOpenTimeoutNs;
  const auto answered = [](const Lane& lane) { return lane.answered; };
  while (!failed() && !std::all_of(lanes_.begin(), lanes_.end(), answered) && monotonic_ns() < deadline_ns) {
    co_await changed_.wait_for(std::chrono::nanoseconds(deadline_ns - std::min(monotonic_ns(), deadline_ns)));
  }
  if (failed()) co_return *attempt_error_;
  for (const Lane& lane : lanes_) {
    if (lane.answered && lane.open_status == 0) continue;
    co_return Error{
        ErrorCode::kInternal,
        fmt::format("the dataplane of {} did not open a flow ({}): see its log", context_->node.name,
                    lane.answered ? std::strerror(static_cast<int>(lane.open_status)) : "no answer")};
  }
  co_return Status();
}

asio::awaitable<void> Session::close_lanes() {
  BoardClient& board = *context_->board;
  for (const Lane& lane : lanes_) {
    if (lane.opened && !board_lost_) board.close_flow(lane.grant.slot);
  }
  const auto closed = [&](const Lane& lane) { return board.flow_closed(lane.grant.slot); };
  const uint64_t deadline_ns = monotonic_ns() + kCloseTimeoutNs;
  while (!board_lost_ && !std::all_of(lanes_.begin(), lanes_.end(), closed) && monotonic_ns() < deadline_ns) {
    co_await changed_.wait_for(std::chrono::nanoseconds(deadline_ns - std::min(monotonic_ns(), deadline_ns)));
  }
  read_figures();
  for (const Lane& lane : lanes_) {
    if (board_lost_) break;
    if (!closed(lane)) spdlog::warn("{}: flow slot {} did not close yet", log_name(), lane.grant.slot);
    board.release_flow(lane.grant.slot);
  }
}

}  // namespace sluice::control
