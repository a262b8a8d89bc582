// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/lanes.h"

#include <algorithm>
#include <cstring>

namespace sluice::sim {

void Lanes::attach() {
  drop();
  generation_ = host_.dataplane->generation();
  const board::Board& b = host_.dataplane->board();
  for (uint32_t slot = 0; slot < board::kFlowsMax; ++slot) {
    const board::FlowConfig& c = b.flows[slot].config;
    if (c.flow_id == 0 || c.direction != direction_) continue;
    const uint32_t worker = (c.local_port - kPortBase) % host_.plan.workers[host_.node];
    lanes_.push_back({.slot = slot, .worker = worker, .flow_id = c.flow_id, .open = true});
    slots_ = slot / kLanesMax * kLanesMax;
  }
}

void Lanes::open(const std::vector<uint64_t>& flow_ids) {
  slots_ = next_slots();
  const Plan& p = host_.plan;
  for (uint32_t lane = 0; lane < flow_ids.size(); ++lane) {
    const uint32_t slot = slots_ + lane;
    board::FlowConfig c;
    c.flow_id = flow_ids[lane];
    c.rate_bps = p.rate_bps / 10 / p.lanes;
    c.partition_bytes = p.partition_bytes;
    c.chunk_bytes = p.chunk_bytes;
    c.extent_bytes = p.extent_bytes;
    c.credit_extents = p.credit;
    c.status_interval_ns = p.status_interval_ns;
    c.local_port = c.peer_port = static_cast<uint16_t>(kPortBase + lane);
    node_address(host_.node, c.local_ip);
    node_address(1 - host_.node, c.peer_ip);
    c.direction = direction_;
    c.crc_kind = static_cast<uint8_t>(p.crc);
    c.udp_checksum = p.udp_checksum ? 1 : 0;
    board::FlowSlot& at = host_.dataplane->board().flows[slot];
    at.config = c;
    at.control.rate_bps = c.rate_bps;
    at.control.settled_below = 0;
    at.gaps.reset();
    lanes_.push_back({.slot = slot, .worker = lane % p.workers[host_.node], .flow_id = flow_ids[lane]});
    command(board::CommandKind::kOpenFlow, lane, 0, {}, 0);
    host_.dataplane->flows(1);
    if (host_.node == kSource) host_.oracle.share_changed();
  }
}

bool Lanes::all_open() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.open; });
}

bool Lanes::any_closed() const {
  return std::any_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.closed; });
}

void Lanes::close() {
  backlog_.clear();
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    command(board::CommandKind::kCloseFlow, lane, 0, {}, 0);
  }
}

bool Lanes::all_closed() {
  const bool all = std::all_of(lanes_.begin(), lanes_.end(), [](const Lane& lane) { return lane.closed; });
  if (all) drop();
  return all;
}

void Lanes::command(board::CommandKind kind, uint32_t lane, uint32_t object, recovery::Range range,
                    uint32_t tag) {
  if (lane >= lanes_.size()) return;
  backlog_.push_back({lanes_[lane].worker,
                      {.kind = kind,
                       .flow = lanes_[lane].slot,
                       .object = object,
                       .tag = tag,
                       .offset = range.offset,
                       .length = range.length}});
  push();
}

// A worker's ring that is full holds up the others behind it: order counts more than speed here.
void Lanes::push() {
  if (!attached()) return;
  while (!backlog_.empty() && host_.dataplane->command(backlog_.front().worker, backlog_.front().command)) {
    backlog_.pop_front();
  }
}

void Lanes::poll(const std::function<void(const board::Event&, uint32_t)>& take) {
  board::Board& b = host_.dataplane->board();
  for (uint32_t worker = 0; worker < host_.plan.workers[host_.node]; ++worker) {
    board::Event event;
    while (b.workers[worker].events.pop(&event)) {
      host_.trace.add(host_.now_ns(), host_.node, "event", static_cast<uint64_t>(event.kind), event.offset,
                      event.length);
      const auto at = std::find_if(lanes_.begin(), lanes_.end(),
                                   [&](const Lane& lane) { return lane.slot == event.flow; });
      if (at == lanes_.end()) continue;
      if (event.kind == board::EventKind::kFlowOpened) {
        at->open = true;
        if (event.value != 0) host_.oracle.fail("a flow was refused");
      }
      if (event.kind == board::EventKind::kFlowClosed && !at->closed) {
        at->closed = true;
        b.flows[at->slot].config.flow_id = 0;
        host_.dataplane->flows(-1);
      }
      take(event, static_cast<uint32_t>(at - lanes_.begin()));
    }
  }
  push();
}

std::vector<uint64_t> Lanes::flow_ids() const {
  std::vector<uint64_t> ids;
  for (const Lane& lane : lanes_) ids.push_back(lane.flow_id);
  return ids;
}

}  // namespace sluice::sim
