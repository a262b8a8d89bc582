// What a sender or a receiver wants of the worker of one of its lanes: the caller puts it on the board.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "control/recovery/extent_map.h"
#include "control/recovery/flow_ref.h"
#include "dataplane/base/number.h"
#include "dataplane/board/board.h"

namespace sluice::recovery {

struct LaneCommand {
  board::CommandKind kind{};
  FlowRef flow;
  ObjectId object;
  Range range;
  uint32_t tag = 0;
};

}  // namespace sluice::recovery
