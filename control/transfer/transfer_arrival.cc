// A session of whose data nothing ever arrives ends after a while, like a call that nobody answers.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "control/transfer/transfer.h"

namespace sluice::transfer {

namespace {

// This control may stand still meanwhile: that is no time in which something could have arrived.
constexpr uint64_t kOneLookNs = kSecondNs;

}  // namespace

// The source judges, since it knows whether it had anything to send. Only time in which data could move
// counts.
void Transfer::watch_arrival(uint64_t now_ns) {
  const uint64_t since_ns = std::exchange(patience_.unheard.looked_ns, 0);
  if (settings_.connect_timeout_ns == 0 || job_.source() == nullptr || !moving()) return;
  const board::FlowFigures figures = all_figures();
  const bool tried = figures.chunks != 0 || figures.unreachable_since_ns != 0;
  if (any_arrived(figures, shown_.bytes_done)) patience_.unheard.heard = true;
  if (patience_.unheard.heard || !tried) return;
  patience_.unheard.looked_ns = now_ns;
  if (since_ns == 0) return;
  patience_.unheard.for_ns += std::min(now_ns - since_ns, kOneLookNs);
  if (patience_.unheard.for_ns < settings_.connect_timeout_ns) return;
  const std::string what = waiting_for();
  give_up(Error{ErrorCode::kPeerUnreachable,
                fmt::format("no data has reached node {} for {} s: {}", peers(),
                            settings_.connect_timeout_ns / kSecondNs,
                            what.empty() ? "see that UDP passes the firewalls" : what)},
          now_ns);
}

}  // namespace sluice::transfer
