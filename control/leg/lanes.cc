// SPDX-License-Identifier: Apache-2.0
#include "control/leg/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "control/leg/codes.h"
#include "control/leg/compression.h"

namespace sluice::transfer {
namespace {

constexpr uint32_t kStatusIntervalNs = 1'000'000;
constexpr uint64_t kRampStart = 10;  // the ramp begins at a tenth

// Low 16 bits: the slot, by which the worker finds the flow. The rest is random, so that datagrams of a
// former life are strangers.
uint64_t flow_id_of(const Grant& grant) {
  return (grant.random << 16 | grant.slot.value()) | (uint64_t{1} << 63);
}

// What the dataplane's host says of a flow that was not opened.
Error why_refused(int reason, uint16_t local_port) {
  switch (reason) {
    case EADDRINUSE:
      return {ErrorCode::kResources,
              fmt::format("UDP port {} of this node is in use by another program: choose another [port] "
                          "udp_port_base",
                          local_port)};
    case EADDRNOTAVAIL:
      return {ErrorCode::kResources,
              "this host does not have the address of its data port any more: bring its interface up, or "
              "restart sluice-dataplane"};
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
      return {ErrorCode::kPeerUnreachable,
              "this host has no route to the peer's data address: see 'ip route'"};
    case EPERM:
    case EACCES:
      return {ErrorCode::kDevice, "this host forbids UDP to the peer's data address: see its firewall"};
    case ENOKEY:
      return {ErrorCode::kPeerUnreachable,
              "the control connection ended before the keys of a flow were taken from it"};
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
      return {ErrorCode::kResources,
              fmt::format("the dataplane did not open a flow ({}): see its limits", std::strerror(reason))};
    default:
      return {ErrorCode::kInternal,
              fmt::format("the dataplane did not open a flow ({}): see its log", std::strerror(reason))};
  }
}

}  // namespace

void LaneSet::reserved(SessionSlotId session, const std::vector<Grant>& grants) {
  session_ = session;
  lanes_.clear();
  for (const Grant& grant : grants) lanes_.push_back({.grant = grant});
}

void LaneSet::credited(const std::vector<uint32_t>& credit_extents) {
  const size_t known = std::min(credit_extents.size(), lanes_.size());
  for (uint32_t i = 0; i < known; ++i) lanes_[LaneId(i)].credit_extents = credit_extents[i];
}

void LaneSet::name_flows(const std::vector<uint64_t>& flow_ids) {
  CHECK(flow_ids.size() == lanes_.size(), "the number of flows was checked");
  for (uint32_t i = 0; i < lanes_.size(); ++i) lanes_[LaneId(i)].flow_id = flow_ids[i];
}

void LaneSet::invent_names() {
  for (Lane& lane : lanes_) lane.flow_id = flow_id_of(lane.grant);
}

void LaneSet::shrink(uint32_t lanes, Effects& out) {
  if (lanes_.size() <= lanes) return;
  out.add(ShrinkLanes{.leg = leg_, .lanes = lanes});
  while (lanes_.size() > lanes) lanes_.pop_back();
}

board::FlowConfig LaneSet::config(const Lane& lane, const Agreement& agreement, Role role,
                                  uint16_t peer_port) const {
  board::FlowConfig config;
  config.flow_id = lane.flow_id;
  config.rate_bps = agreement.rate_bps / kRampStart / agreement.lanes;
  config.rate_bps_max = agreement.rate_bps / agreement.lanes;
  config.partition_bytes = agreement.partition_bytes;
  config.session = session_.value();
  config.chunk_bytes = agreement.chunk_bytes;
  config.extent_bytes = agreement.extent_bytes;
  config.credit_extents = lane.credit_extents;
  config.status_interval_ns = kStatusIntervalNs;
  config.local_port = lane.grant.local_port;
  config.peer_port = peer_port;
  std::copy(agreement.local_ip.begin(), agreement.local_ip.end(), config.local_ip);
  std::copy(agreement.peer_ip.begin(), agreement.peer_ip.end(), config.peer_ip);
  config.direction = role == Role::kSource ? board::Direction::kTx : board::Direction::kRx;
  config.crc_kind = static_cast<uint8_t>(agreement.crc_kind);
  config.udp_checksum = agreement.udp_checksum ? 1 : 0;
  config.expected_loss_percent = static_cast<uint8_t>(std::min(agreement.expected_loss_ppm / 10'000, 95U));
  config.reach = agreement.reach;
  config.codes = codes_of(agreement.abilities);
  config.choice.parity = agreement.abilities.has(Ability::kParityDemanded) ? board::Parity::kWhereLost
                                                                           : board::Parity::kWhereItPays;
  config.choice.compress = compress_of(agreement.abilities);
  if (agreement.abilities.has(Ability::kEchoes)) {
    config.echoes = role == Role::kSource ? echoes_ : wire::kEchoesMax;
    config.echo_bytes = static_cast<uint16_t>(std::min(echo_bytes_, agreement.chunk_bytes));
  }
  // All lanes may be one worker's at the peer.
  config.peer_queue_datagrams =
      static_cast<uint16_t>(std::min<uint32_t>(agreement.peer_queue_datagrams / agreement.lanes, UINT16_MAX));
  return config;
}

void LaneSet::open(const Agreement& agreement, Role role, Effects& out) {
  CHECK(agreement.peer_ports.size() == lanes_.size(), "the agreement has a port for each lane");
  for (uint32_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[LaneId(i)];
    CHECK(lane.state == State::kReserved, "a flow is opened once");
    lane.state = State::kOpening;
    out.add(OpenFlow{.leg = leg_,
                     .lane = LaneId(i),
                     .config = config(lane, agreement, role, agreement.peer_ports[i]),
                     .protection = agreement.protection});
  }
}

Status LaneSet::refused() const {
  for (const Lane& lane : lanes_) {
    if (lane.state != State::kRefused) continue;
    return why_refused(static_cast<int>(lane.refusal), lane.grant.local_port);
  }
  return {};
}

bool LaneSet::all_open() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return lane.state == State::kOpen; });
}

void LaneSet::restore(const LegRecord& record) {
  session_ = record.board_session;
  for (const FlowRecord& flow : record.flows) {
    lanes_.push_back({.grant = {.slot = flow.slot, .local_port = flow.local_port},
                      .flow_id = flow.flow_id,
                      .credit_extents = flow.credit_extents,
                      .state = State::kOpen});
  }
}

void LaneSet::close(Effects& out) {
  for (uint32_t i = 0; i < lanes_.size(); ++i) {
    Lane& lane = lanes_[LaneId(i)];
    if (lane.state == State::kReserved) lane.state = State::kClosed;
    if (lane.state == State::kClosing || lane.state == State::kClosed) continue;
    // One that was refused, too: its slot is given back when the worker says that nothing of it is left.
    lane.state = State::kClosing;
    out.add(CloseFlow{.leg = leg_, .lane = LaneId(i)});
  }
}

bool LaneSet::all_closed() const {
  return std::all_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return lane.state == State::kClosed; });
}

void LaneSet::drop() {
  former_.add(std::exchange(figures_, {}));
  former_.unreachable_since_ns = 0;  // of flows that are no more
  lanes_.clear();
}

bool LaneSet::on(const FlowEvent& event) {
  if (!lanes_.contains(event.lane)) return true;
  Lane& lane = lanes_[event.lane];
  if (event.event.kind == board::EventKind::kFlowOpened && lane.state == State::kOpening) {
    lane.state = event.event.value == 0 ? State::kOpen : State::kRefused;
    lane.refusal = event.event.value;
  }
  if (event.event.kind != board::EventKind::kFlowClosed) return true;
  const bool ours = lane.state == State::kClosing;
  lane.state = State::kClosed;
  if (event.state != nullptr) lane.figures.add(*event.state);
  if (all_closed()) {  // the last figures are those of closed flows
    figures_ = {};
    for (const Lane& each : lanes_) figures_.add(each.figures);
  }
  return ours;
}

void LaneSet::read(const Tick& event) {
  board::FlowFigures sum;
  const size_t known = std::min(event.lanes.size(), lanes_.size());
  for (uint32_t i = 0; i < known; ++i) {
    const Lane& lane = lanes_[LaneId(i)];
    if (lane.state == State::kClosed) {
      sum.add(lane.figures);
    } else if (lane.state == State::kOpen || lane.state == State::kClosing) {
      sum.add(event.lanes[i]->state);
    }
  }
  figures_ = sum;
  workers_.clear();
  for (const board::WorkerSlot* const worker : event.workers) workers_.push_back(board::figures_of(*worker));
}

std::vector<uint16_t> LaneSet::local_ports() const {
  std::vector<uint16_t> ports;
  for (const Lane& lane : lanes_) ports.push_back(lane.grant.local_port);
  return ports;
}

std::vector<uint64_t> LaneSet::flow_ids() const {
  std::vector<uint64_t> ids;
  for (const Lane& lane : lanes_) ids.push_back(lane.flow_id);
  return ids;
}

std::vector<uint32_t> LaneSet::credit_extents() const {
  std::vector<uint32_t> credit;
  for (const Lane& lane : lanes_) credit.push_back(lane.credit_extents);
  return credit;
}

bool LaneSet::same_flows(const std::vector<uint64_t>& ids) const {
  return !lanes_.empty() && ids == flow_ids() &&
         std::all_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return lane.state == State::kOpen; });
}

std::vector<FlowRecord> LaneSet::records() const {
  std::vector<FlowRecord> records;
  for (const Lane& lane : lanes_) {
    if (lane.state != State::kOpen) continue;
    records.push_back({.slot = lane.grant.slot,
                       .flow_id = lane.flow_id,
                       .credit_extents = lane.credit_extents,
                       .local_port = lane.grant.local_port});
  }
  return records;
}

board::FlowFigures LaneSet::all_figures() const {
  board::FlowFigures all = former_;
  all.add(figures_);
  return all;
}

}  // namespace sluice::transfer
