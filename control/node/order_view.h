// How a session stands, in the words by which its source tells whoever ordered it (docs/WIRE.md, 2.13), and
// back.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "control/transfer/view.h"
#include "control/words/orders.h"

namespace sluice::node {

transfer::OrderState state_of(const transfer::View& view);

// At the node that ordered it. `record`: what it knows itself; `said`: by the source, last.
transfer::View view_of_order(const transfer::Record& record, const transfer::OrderState& said);

// An order that is refused so is given again: time mends it.
bool order_waits(ErrorCode code);

// A state of the wire; nothing: one that is not known here.
std::optional<transfer::ViewState> view_state_of(uint32_t number);

}  // namespace sluice::node
