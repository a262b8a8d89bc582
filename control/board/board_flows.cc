// SPDX-License-Identifier: Apache-2.0
#include "control/board/board_flows.h"

#include <algorithm>

#include "dataplane/base/check.h"

namespace sluice::board {
namespace {

Waiter waiter_of(BoardUser* user) { return reinterpret_cast<uintptr_t>(user); }
BoardUser* user_of(Waiter waiter) { return reinterpret_cast<BoardUser*>(static_cast<uintptr_t>(waiter)); }

}  // namespace

BoardFlows::BoardFlows(Board& board, const PortInfo& port, std::function<void(uint32_t worker)> doorbell)
    : board_(board), port_(port), doorbell_(std::move(doorbell)) {
  table_.reset(port);
}

// ---- slots and buffers -------------------------------------------------------------------------

void BoardFlows::ask_flows(BoardUser* user, uint32_t lanes, bool may_wait,
                           std::optional<SessionSlotId> session) {
  admission_.ask_flows(waiter_of(user), lanes, may_wait, session);
  grant();
}

void BoardFlows::ask_buffers(BoardUser* user, Direction direction, std::vector<FlowGrant> flows) {
  admission_.ask_buffers(waiter_of(user), direction, std::move(flows));
  grant();
}

void BoardFlows::give_up(BoardUser* user) {
  admission_.give_up(waiter_of(user));
  grant();
}

void BoardFlows::release_session(SessionSlotId session) {
  DCHECK(!session_has_flows(session), "its flows have ended");
  table_.release_session(session);
  grant();
}

bool BoardFlows::session_has_flows(SessionSlotId session) {
  for (uint32_t slot = 0; slot < kFlowsMax; ++slot) {
    const Flow& its = flows_[slot];
    if (its.open && !its.left && flow(FlowSlotId(slot)).config.session == session.value()) return true;
  }
  return false;
}

void BoardFlows::grant() {
  for (const Admitted& admitted : admission_.grant()) user_of(admitted.waiter)->on_admitted(admitted);
}

bool BoardFlows::adopt(BoardUser* user, SessionSlotId session, std::vector<FlowGrant> flows,
                       const std::vector<uint64_t>& flow_ids, const std::vector<uint32_t>& credit_extents) {
  if (flows.empty() || flows.size() != flow_ids.size() || port_.workers == 0) return false;
  for (size_t i = 0; i < flows.size(); ++i) {
    if (flows[i].slot.value() >= kFlowsMax) return false;
    const FlowConfig& config = flow(flows[i].slot).config;
    if (config.flow_id == 0 || config.flow_id != flow_ids[i] || config.session != session.value() ||
        config.local_port != flows[i].local_port) {
      return false;
    }
    flows[i].worker = worker_of(config.local_port);
  }
  // As at first; it may have grown since, or been cut.
  std::vector<uint32_t> credit = credit_extents;
  for (size_t i = 0; i < std::min(credit.size(), flows.size()); ++i) {
    const FlowSlot& its = flow(flows[i].slot);
    const uint64_t granted = its.control.credit_extents.load(std::memory_order_acquire);
    const uint64_t done = its.state.extents_done.load(std::memory_order_acquire);
    const uint64_t told = its.state.credit_extents.load(std::memory_order_acquire);
    const uint64_t outstanding = told == 0 ? credit[i] : told - std::min(told, done);
    if (credit[i] != 0 && std::max(granted, outstanding) <= port_.rx_extents)
      credit[i] = static_cast<uint32_t>(std::max(granted, outstanding));
  }
  if (!table_.adopt(session, flows, credit)) return false;
  for (const FlowGrant& grant : flows)
    flows_[grant.slot.value()] = {.user = user, .open = true, .answered = true};
  return true;
}

// ---- flows -------------------------------------------------------------------------------------

std::vector<const WorkerSlot*> BoardFlows::workers(const std::vector<FlowGrant>& flows) const {
  std::vector<const WorkerSlot*> workers;
  for (const FlowGrant& grant : flows) {
    const WorkerSlot* const worker = &board_.workers[worker_of(grant.local_port)];
    if (std::find(workers.begin(), workers.end(), worker) == workers.end()) workers.push_back(worker);
  }
  return workers;
}

uint32_t BoardFlows::worker_of(uint16_t local_port) const {
  return static_cast<uint32_t>(local_port - port_.udp_port_base) % port_.workers;
}

void BoardFlows::open_flow(FlowSlotId slot, const FlowConfig& config, BoardUser* user) {
  DCHECK(table_.flow_taken(slot), "a flow is opened in a slot that its user has");
  DCHECK(!flows_[slot.value()].open, "a slot has one flow at a time");
  DCHECK(config.flow_id != 0, "0 stands for no flow");
  FlowSlot& flow_slot = flow(slot);
  const uint32_t tag = next_tag(slot);
  flow_slot.config = config;
  flow_slot.config.tag = tag;
  flow_slot.control.rate_bps.store(config.rate_bps, std::memory_order_release);
  flow_slot.control.rate_ramps.store(1, std::memory_order_release);
  flow_slot.control.settled_below.store(0, std::memory_order_release);
  // Control may grant less later, but never less than the configuration says.
  if (config.direction == Direction::kRx)
    flow_slot.config.credit_extents = std::min(config.credit_extents, kCreditMin);
  flow_slot.control.credit_extents.store(config.credit_extents, std::memory_order_release);
  flow_slot.control.log_level.store(static_cast<uint64_t>(config.log_level), std::memory_order_release);
  flow_slot.gaps.reset();
  flow_slot.log.reset();
  flows_[slot.value()] = {.user = user, .open = true};
  command({.kind = CommandKind::kOpenFlow, .flow = slot.value(), .tag = flow_slot.config.tag});
}

void BoardFlows::close_flow(FlowSlotId slot) {
  if (!flows_[slot.value()].open) return;
  command({.kind = CommandKind::kCloseFlow, .flow = slot.value(), .tag = flow(slot).config.tag});
}

void BoardFlows::release_flow(FlowSlotId slot) {
  Flow& released = flows_[slot.value()];
  released.user = nullptr;
  released.released = true;
  if (released.open) return;
  released = Flow();
  table_.release_flow(slot);
  grant();
}

void BoardFlows::handle(const Event& event) {
  const FlowSlotId slot(event.flow);
  Flow& its = flows_[event.flow];
  const bool opened = event.kind == EventKind::kFlowOpened;
  const bool closed = event.kind == EventKind::kFlowClosed;
  // Of a flow that had the slot before: what a former control asked for may be answered this late.
  if ((opened || closed) && event.tag != flow(slot).config.tag) return;
  its.answered |= opened && event.value == 0;
  if (!opened && !closed && !its.answered) return;
  if (closed) {
    // First: the user may give the slot back within the call, and somebody else open a flow in it.
    its.open = false;
    flow(slot).config.flow_id = 0;
    if (its.released) return release_flow(slot);
  }
  if (its.user != nullptr) its.user->on_event(event, flow(slot).state);
}

bool BoardFlows::drain() {
  bool more = false;
  for (uint32_t worker = 0; worker < port_.workers; ++worker) {
    Event event;
    uint32_t taken = 0;
    while (taken < kEventsPerTurn && board_.workers[worker].events.pop(&event)) {
      ++taken;
      if (event.flow < kFlowsMax) handle(event);
    }
    more |= taken == kEventsPerTurn;
  }
  return more;
}

void BoardFlows::command(const Command& command) {
  const uint32_t worker = worker_of(flow(FlowSlotId(command.flow)).config.local_port);
  DCHECK(worker < port_.workers, "the port of a flow tells its worker");
  backlog_[worker].push_back(command);
  push_commands();
}

void BoardFlows::push_commands() {
  for (uint32_t worker = 0; worker < port_.workers; ++worker) {
    std::deque<Command>& queue = backlog_[worker];
    bool pushed = false;
    while (!queue.empty() && board_.workers[worker].commands.push(queue.front())) {
      queue.pop_front();
      pushed = true;
    }
    if (pushed) doorbell_(worker);
  }
}

void BoardFlows::settle(FlowSlotId slot, const std::vector<Gap>& gaps, uint64_t settled_below) {
  FlowSlot& its = flow(slot);
  for (const Gap& gap : gaps) its.gaps.push(gap);
  its.control.settled_below.store(settled_below, std::memory_order_release);
}

bool BoardFlows::receives(FlowSlotId slot) const {
  const Flow& its = flows_[slot.value()];
  return its.open && !its.released && board_.flows[slot.value()].config.direction == Direction::kRx;
}

void BoardFlows::tend_credit() {
  if (take_what_comes_back()) grant();
  if (admission_.waits_for_credit()) return ask_back();
  for (uint32_t slot = 0; slot < kFlowsMax; ++slot) {
    if (!receives(FlowSlotId(slot))) continue;
    FlowSlot& its = flow(FlowSlotId(slot));
    const uint64_t wanted = its.state.wanted_extents.load(std::memory_order_acquire);
    const uint32_t credit =
        table_.grow_credit(FlowSlotId(slot), static_cast<uint32_t>(std::min<uint64_t>(wanted, UINT32_MAX)));
    if (credit > its.control.credit_extents.load(std::memory_order_relaxed))
      its.control.credit_extents.store(credit, std::memory_order_release);
  }
}

void BoardFlows::ask_back() {
  const std::array<uint32_t, kWorkersMax> shares = table_.shares_for(admission_.next_for_credit());
  for (uint32_t slot = 0; slot < kFlowsMax; ++slot) {
    const FlowSlotId id(slot);
    if (!receives(id)) continue;
    const uint32_t share = shares[table_.worker_of(id)];
    if (share == 0 || table_.credit(id) <= share) continue;
    flow(id).control.credit_extents.store(table_.cut_credit(id, share), std::memory_order_release);
    flows_[slot].was_cut = true;
  }
}

bool BoardFlows::take_what_comes_back() {
  bool some = false;
  for (uint32_t slot = 0; slot < kFlowsMax; ++slot) {
    Flow& its = flows_[slot];
    const FlowSlotId id(slot);
    if (!its.was_cut || !receives(id)) continue;
    const uint64_t done = flow(id).state.extents_done.load(std::memory_order_acquire);
    if (!its.granted_end) its.granted_end = done + table_.credit(id);
    some |= table_.give_back(id, *its.granted_end - std::min(done, *its.granted_end));
    if (!table_.gives_back(id)) {
      its.was_cut = false;
      its.granted_end.reset();
    }
  }
  return some;
}

size_t BoardFlows::backlog() const {
  size_t waiting = 0;
  for (const auto& queue : backlog_) waiting += queue.size();
  return waiting;
}

void BoardFlows::forget(BoardUser* user) {
  admission_.give_up(waiter_of(user));
  for (Flow& each : flows_) {
    if (each.user == user) each.user = nullptr;
  }
  grant();  // it may have been the first of those who wait
}

// ---- what a former control left ----------------------------------------------------------------

uint32_t BoardFlows::close_leftovers() {
  uint32_t left = 0;
  for (uint32_t slot = 0; slot < kFlowsMax; ++slot) {
    const FlowConfig& config = flow(FlowSlotId(slot)).config;
    if (config.flow_id == 0 || config.local_port < port_.udp_port_base || flows_[slot].user != nullptr)
      continue;
    ++left;
    flows_[slot] = {.open = true, .left = true};
    close_flow(FlowSlotId(slot));
  }
  return left;
}

uint32_t BoardFlows::leftovers() const {
  return static_cast<uint32_t>(
      std::count_if(flows_.begin(), flows_.end(), [](const Flow& flow) { return flow.open && flow.left; }));
}

// Whose worker does not say that it has ended keeps its slot and port until it does.
void BoardFlows::forget_leftovers() {
  for (uint32_t slot = 0; slot < kFlowsMax; ++slot) {
    Flow& its = flows_[slot];
    if (its.open && its.left) {
      const FlowConfig& config = flow(FlowSlotId(slot)).config;
      table_.hold({.slot = FlowSlotId(slot),
                   .worker = worker_of(config.local_port),
                   .local_port = config.local_port});
      its.released = true;
    } else if (!its.open) {
      flow(FlowSlotId(slot)).config.flow_id = 0;
    }
  }
}

}  // namespace sluice::board
