// SPDX-License-Identifier: Apache-2.0
#include "control/board/admission.h"

#include <algorithm>
#include <string>

#include "dataplane/base/check.h"
#include "dataplane/base/counted.h"

namespace sluice::board {

void Admission::ask_flows(Waiter waiter, uint32_t lanes, bool may_wait,
                          std::optional<SessionSlotId> session) {
  DCHECK(!waits(waiter), "whoever waits asks for one thing at a time");
  DCHECK(!session || table_.session_taken(*session), "a further leg has the slot of its transfer");
  for_flows_.push_back({.waiter = waiter, .lanes = lanes, .may_wait = may_wait, .session = session});
}

void Admission::ask_buffers(Waiter waiter, Direction direction, std::vector<FlowGrant> flows) {
  DCHECK(!waits(waiter), "whoever waits asks for one thing at a time");
  DCHECK(!flows.empty(), "flows come before buffers");
  queue(direction).push_back({.waiter = waiter, .flows = std::move(flows)});
}

std::vector<Admitted> Admission::grant() {
  std::vector<Admitted> out;
  while (grant_flows(&out)) {
  }
  while (grant_buffers(Direction::kRx, &out)) {
  }
  while (grant_buffers(Direction::kTx, &out)) {
  }
  return out;
}

// Who may not wait is answered at once, whoever waits before.
bool Admission::grant_flows(std::vector<Admitted>* out) {
  for (auto at = for_flows_.begin(); at != for_flows_.end(); ++at) {
    const bool first = at == for_flows_.begin();
    if (at->may_wait && !first) continue;
    const std::optional<SessionSlotId> session = at->session ? at->session : table_.take_session();
    const auto flows = session ? table_.take_flows(at->lanes) : std::nullopt;
    if (session && !flows && !at->session) table_.release_session(*session);
    if (!flows && at->may_wait) continue;
    if (flows) {
      out->push_back({.waiter = at->waiter, .what = FlowsGranted{.session = *session, .flows = *flows}});
    } else {
      out->push_back({.waiter = at->waiter,
                      .what = Error{ErrorCode::kResources, "this node has no " +
                                                               base::counted(at->lanes, "free flow slot") +
                                                               " until another session ends"}});
    }
    for_flows_.erase(at);
    return true;
  }
  return false;
}

bool Admission::grant_buffers(Direction direction, std::vector<Admitted>* out) {
  std::deque<ForBuffers>& waiting = queue(direction);
  if (waiting.empty()) return false;
  const ForBuffers& first = waiting.front();
  BuffersGranted granted;
  if (direction == Direction::kRx) {
    std::optional<std::vector<uint32_t>> credit = table_.take_credit(first.flows);
    if (!credit) return false;
    granted.credit_extents = std::move(*credit);
  } else if (!table_.take_buffers(first.flows)) {
    return false;
  }
  out->push_back({.waiter = first.waiter, .what = std::move(granted)});
  waiting.pop_front();
  return true;
}

void Admission::give_up(Waiter waiter) {
  const auto of_waiter = [waiter](const auto& each) { return each.waiter == waiter; };
  std::erase_if(for_flows_, of_waiter);
  std::erase_if(for_credit_, of_waiter);
  std::erase_if(for_read_buffers_, of_waiter);
}

void Admission::clear() {
  for_flows_.clear();
  for_credit_.clear();
  for_read_buffers_.clear();
}

bool Admission::waits(Waiter waiter) const {
  const auto of_waiter = [waiter](const auto& each) { return each.waiter == waiter; };
  return std::any_of(for_flows_.begin(), for_flows_.end(), of_waiter) ||
         std::any_of(for_credit_.begin(), for_credit_.end(), of_waiter) ||
         std::any_of(for_read_buffers_.begin(), for_read_buffers_.end(), of_waiter);
}

}  // namespace sluice::board
