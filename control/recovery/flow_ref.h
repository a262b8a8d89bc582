// Which flow of a transfer is meant: a lane, by its place in the handshake of its leg.
//
// A transfer may have several legs (control/leg/leg.h), and each has lanes from 0 on. Sender and Receiver
// share one object out among the flows of all of them. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

#include "dataplane/base/number.h"

namespace sluice::recovery {

using LegId = Number<struct LegTag, uint32_t>;

struct FlowRef {
  LegId leg;
  LaneId lane;

  auto operator<=>(const FlowRef&) const = default;
};

}  // namespace sluice::recovery
