// What a former control left in the journal: sessions that go on, and ended ones to remember.
//
// Before the loop runs and anybody is listened to: it blocks. An error is final.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "control/node/orders.h"
#include "control/node/sessions.h"

namespace sluice::node {

Status restore(const std::shared_ptr<runtime::Services>& services, Sessions& sessions, Orders& orders);

}  // namespace sluice::node
