// Capabilities and Landlock are a thread's own, and a daemon has threads before it knows that it needs them
// no more: a signal makes each give up its own.
//
// Cold; the main thread, once. A thread that blocks SIGRTMIN + 6, which carries the order, cannot be reached.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dataplane/base/error.h"

namespace sluice::sandbox {

// Of every thread: no new privileges ever, an empty bounding set (as far as it may change that), and of its
// capabilities only these; then the rules of Landlock, unless `ruleset` is -1. kDevice when a thread does
// not.
Status give_up_in_every_thread(uint64_t capabilities, int ruleset);

}  // namespace sluice::sandbox
