// The places of a simulated node: a transfer waits for its turn.
// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/session.h"

namespace sluice::sim {

// Other sessions, of which there are none here, may have all places for a while.
void Session::perform(const transfer::AskPlace& e) {
  const transfer::PlaceTold waits{.ticket = e.ticket, .place = 1, .places = 1};
  if (!runs_ && ticket_ == e.ticket) return answer(waits);
  ticket_ = e.ticket;
  if (runs_ || !host_.places.chance(host_.plan.full_per_million)) {
    runs_ = true;
    return answer(transfer::PlaceTold{.ticket = e.ticket});
  }
  ++host_.trace.reached.queued;
  answer(waits);
  const uint64_t wait_ns = host_.places.below(host_.plan.full_ns);
  host_.scheduler.after(wait_ns, [weak = weak_from_this(), ticket = e.ticket] {
    const auto self = weak.lock();
    if (!self || self->ticket_ != ticket) return;
    self->runs_ = true;
    self->post(transfer::PlaceTold{.ticket = ticket});
  });
}

void Session::perform(const transfer::LeavePlace&) {
  runs_ = false;
  ticket_ = UINT32_MAX;
}

}  // namespace sluice::sim
