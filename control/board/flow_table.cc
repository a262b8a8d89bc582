// SPDX-License-Identifier: Apache-2.0
#include "control/board/flow_table.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "dataplane/base/check.h"

namespace sluice::board {

void FlowTable::reset(const PortInfo& port) {
  *this = FlowTable();
  port_ = port;
  for (uint32_t worker = 0; worker < port.workers; ++worker) {
    rx_free_[worker] = port.rx_extents > kRepairExtents ? port.rx_extents - kRepairExtents : 0;
    tx_free_[worker] = port.tx_extents;
  }
}

std::optional<SessionSlotId> FlowTable::take_session() {
  for (uint32_t session = 0; session < kSessionsMax; ++session) {
    if (sessions_[session]) continue;
    sessions_[session] = true;
    return SessionSlotId(session);
  }
  return std::nullopt;
}

void FlowTable::release_session(SessionSlotId session) { sessions_[session.value()] = false; }

std::optional<std::vector<FlowGrant>> FlowTable::take_flows(uint32_t lanes) {
  std::vector<FlowSlotId> slots;
  std::set<uint16_t> ports;
  std::array<uint32_t, kWorkersMax> load{};
  for (uint32_t slot = 0; slot < kFlowsMax; ++slot) {
    if (flows_[slot].taken) {
      ports.insert(flows_[slot].grant.local_port);
      ++load[flows_[slot].grant.worker];
    } else if (slots.size() < lanes) {
      slots.emplace_back(slot);
    }
  }
  if (port_.workers == 0 || slots.size() < lanes) return std::nullopt;
  std::vector<FlowGrant> grants;
  for (const FlowSlotId slot : slots) {
    const auto worker =
        static_cast<uint32_t>(std::min_element(load.begin(), load.begin() + port_.workers) - load.begin());
    uint32_t port = port_.udp_port_base + worker;
    while (port <= UINT16_MAX && ports.count(static_cast<uint16_t>(port)) != 0) port += port_.workers;
    if (port > UINT16_MAX) return std::nullopt;
    ports.insert(static_cast<uint16_t>(port));
    ++load[worker];
    grants.push_back({.slot = slot, .worker = worker, .local_port = static_cast<uint16_t>(port)});
  }
  for (const FlowGrant& grant : grants) flow(grant.slot) = {.taken = true, .grant = grant};
  check_invariants();
  return grants;
}

std::vector<uint32_t> FlowTable::flows_per_worker(const std::vector<FlowGrant>& flows) const {
  std::vector<uint32_t> count(kWorkersMax, 0);
  for (const FlowGrant& flow : flows) ++count[flow.worker];
  return count;
}

std::optional<std::vector<uint32_t>> FlowTable::take_credit(const std::vector<FlowGrant>& flows) {
  const std::vector<uint32_t> count = flows_per_worker(flows);
  std::array<uint32_t, kWorkersMax> share{};
  for (uint32_t worker = 0; worker < kWorkersMax; ++worker) {
    if (count[worker] == 0) continue;
    share[worker] = std::clamp(rx_free_[worker] / 2 / count[worker], kCreditMin, kCreditStart);
    if (share[worker] * count[worker] > rx_free_[worker]) return std::nullopt;
  }
  std::vector<uint32_t> credit;
  for (const FlowGrant& grant : flows) {
    flow(grant.slot).credit = flow(grant.slot).window = share[grant.worker];
    rx_free_[grant.worker] -= share[grant.worker];
    credit.push_back(share[grant.worker]);
  }
  check_invariants();
  return credit;
}

void FlowTable::give_credit(uint32_t worker, uint32_t extents) {
  const uint32_t paid = std::min(extents, rx_owed_[worker]);
  rx_owed_[worker] -= paid;
  rx_free_[worker] += extents - paid;
}

void FlowTable::lend_credit(FlowSlotId slot) {
  Flow& its = flow(slot);
  if (!its.taken || its.lent != 0) return;
  its.lent = std::exchange(its.credit, 0);
  its.window = 0;
  give_credit(its.grant.worker, its.lent);
  check_invariants();
}

void FlowTable::take_back_credit(FlowSlotId slot) {
  Flow& its = flow(slot);
  if (!its.taken || its.lent == 0) return;
  const uint32_t worker = its.grant.worker;
  const uint32_t there = std::min(its.lent, rx_free_[worker]);
  rx_free_[worker] -= there;
  rx_owed_[worker] += its.lent - there;
  its.credit = its.window = std::exchange(its.lent, 0);
  check_invariants();
}

std::array<uint32_t, kWorkersMax> FlowTable::shares_for(const std::vector<FlowGrant>& flows) const {
  const std::vector<uint32_t> count = flows_per_worker(flows);
  std::array<uint32_t, kWorkersMax> holders{};
  for (const Flow& each : flows_) holders[each.grant.worker] += each.credit != 0 ? 1 : 0;
  std::array<uint32_t, kWorkersMax> shares{};
  for (uint32_t worker = 0; worker < kWorkersMax; ++worker) {
    if (rx_free_[worker] >= count[worker] * kCreditMin) continue;
    const uint32_t all = port_.rx_extents - std::min(port_.rx_extents, kRepairExtents);
    shares[worker] = std::max(kCreditMin, all / (holders[worker] + count[worker]));
  }
  return shares;
}

uint32_t FlowTable::cut_credit(FlowSlotId slot, uint32_t share) {
  Flow& its = flow(slot);
  its.window = std::min(its.window, std::max(share, kCreditMin));
  return its.window;
}

bool FlowTable::give_back(FlowSlotId slot, uint64_t outstanding) {
  Flow& its = flow(slot);
  const auto keeps = static_cast<uint32_t>(std::clamp<uint64_t>(outstanding, its.window, its.credit));
  if (keeps == its.credit) return false;
  give_credit(its.grant.worker, its.credit - keeps);
  its.credit = keeps;
  check_invariants();
  return true;
}

uint32_t FlowTable::grow_credit(FlowSlotId slot, uint32_t wanted) {
  Flow& its = flow(slot);
  if (!its.taken || its.credit == 0 || gives_back(slot)) return its.window;
  if (wanted <= its.credit) return its.credit;
  uint32_t& free = rx_free_[its.grant.worker];
  const uint32_t spare = port_.rx_extents / kCreditSpareShare;
  const uint32_t left = free - std::min(free, spare);
  const uint32_t more = std::min({wanted - its.credit, its.credit, (left + 1) / 2});
  its.credit += more;
  its.window = its.credit;
  free -= more;
  check_invariants();
  return its.credit;
}

bool FlowTable::take_buffers(const std::vector<FlowGrant>& flows) {
  const std::vector<uint32_t> count = flows_per_worker(flows);
  for (uint32_t worker = 0; worker < kWorkersMax; ++worker) {
    if (count[worker] * kTxExtentsPerFlow > tx_free_[worker]) return false;
  }
  for (const FlowGrant& grant : flows) {
    flow(grant.slot).buffers = kTxExtentsPerFlow;
    tx_free_[grant.worker] -= kTxExtentsPerFlow;
  }
  check_invariants();
  return true;
}

void FlowTable::release_flow(FlowSlotId slot) {
  Flow& freed = flow(slot);
  if (!freed.taken) return;
  give_credit(freed.grant.worker, freed.credit);
  tx_free_[freed.grant.worker] += freed.buffers;
  freed = Flow();
  check_invariants();
}

void FlowTable::hold(const FlowGrant& grant) { flow(grant.slot) = {.taken = true, .grant = grant}; }

bool FlowTable::adopt(SessionSlotId session, const std::vector<FlowGrant>& flows,
                      const std::vector<uint32_t>& credit) {
  if (session.value() >= kSessionsMax || session_taken(session) || flows.size() != credit.size())
    return false;
  const bool receives =
      std::any_of(credit.begin(), credit.end(), [](uint32_t extents) { return extents != 0; });
  FlowTable before = *this;
  for (size_t i = 0; i < flows.size(); ++i) {
    const FlowGrant& grant = flows[i];
    if (grant.slot.value() >= kFlowsMax || flow(grant.slot).taken || grant.worker >= port_.workers) {
      *this = before;
      return false;
    }
    Flow taken{.taken = true, .grant = grant};
    uint32_t& free = receives ? rx_free_[grant.worker] : tx_free_[grant.worker];
    const uint32_t wanted = receives ? credit[i] : kTxExtentsPerFlow;
    if (wanted > free) {
      *this = before;
      return false;
    }
    free -= wanted;
    (receives ? taken.credit : taken.buffers) = wanted;
    taken.window = taken.credit;
    flow(grant.slot) = taken;
  }
  sessions_[session.value()] = true;
  check_invariants();
  return true;
}

// Each extent of a worker is free or somebody's, but for those that were taken back and were not free.
void FlowTable::check_invariants() const {
  if (!base::dchecks_enabled) return;
  std::array<uint64_t, kWorkersMax> credit{};
  std::array<uint64_t, kWorkersMax> buffers{};
  std::set<uint16_t> ports;
  for (const Flow& each : flows_) {
    DCHECK(each.window <= each.credit, "a flow keeps a part of its credit, or all");
    DCHECK(each.taken || each.credit + each.lent + each.buffers == 0, "a free slot holds nothing");
    DCHECK(each.lent == 0 || each.credit == 0, "credit is lent as a whole");
    DCHECK(!each.taken || ports.insert(each.grant.local_port).second, "a port has one flow");
    credit[each.grant.worker] += each.credit;
    buffers[each.grant.worker] += each.buffers;
  }
  for (uint32_t worker = 0; worker < port_.workers; ++worker) {
    const uint32_t all = port_.rx_extents - std::min(port_.rx_extents, kRepairExtents);
    DCHECK(rx_free_[worker] + credit[worker] == uint64_t{all} + rx_owed_[worker], "no extent is lost");
    DCHECK(rx_free_[worker] == 0 || rx_owed_[worker] == 0, "what is owed is paid before any is free");
    DCHECK(tx_free_[worker] + buffers[worker] == port_.tx_extents, "no buffer is lost");
  }
}

uint32_t FlowTable::lanes_max(Direction direction) const {
  const uint32_t per_worker =
      direction == Direction::kRx
          ? (port_.rx_extents > kRepairExtents ? port_.rx_extents - kRepairExtents : 0) / kCreditMin
          : port_.tx_extents / kTxExtentsPerFlow;
  return std::min(kLanesMax, per_worker * port_.workers);
}

}  // namespace sluice::board
