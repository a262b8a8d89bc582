// The rate of a simulated transfer, as its law sets it.
// SPDX-License-Identifier: Apache-2.0
#include "control/rate/silence.h"
#include "tools/sim/session.h"

namespace sluice::sim {

void Session::perform(const transfer::SetRate& e) {
  const board::FlowSet& flows = leg(e.leg).flows;
  if (board() == nullptr || !flows.contains(e.lane)) return;
  const uint64_t rate_bps = broken(Break::kDoubleRate) ? 2 * e.rate_bps
                            : broken(Break::kMute)     ? 0
                                                       : e.rate_bps;
  board::FlowControl& control = board()->flow(flows.slot(e.lane)).control;
  control.rate_ramps.store(e.ramps ? 1 : 0);
  const uint64_t before_bps = control.rate_bps.exchange(rate_bps);
  const uint64_t change_bps = rate_bps > before_bps ? rate_bps - before_bps : before_bps - rate_bps;
  const uint64_t heard_ns = board()->flow(flows.slot(e.lane)).state.last_peer_ns.load();
  if (rate_bps == 0 && host_.now_ns() < heard_ns + rate::Silence::kStopNs)
    host_.oracle.fail("a source falls silent though its peer is heard");
  // What it owes, and what it may catch up, is of its old share.
  if ((flows.size() > 1 || legs_.size() > 1) && change_bps > before_bps / 20)
    host_.oracle.share_changed(host_.node);
}

}  // namespace sluice::sim
