// Gives up what the dataplane no longer needs once its port is open.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/base/error.h"

namespace sluice::dpdk {

// For every thread of the process: no new privileges ever, and no capabilities, except CAP_NET_RAW if
// asked for. A process that is not root only gets the former. Call after Port::open and before any
// thread that blocks the signal SIGRTMIN + 6, which carries the order to the other threads. kDevice when
// a thread keeps a capability.
Status drop_privileges(bool keep_net_raw);

// Of this thread, now: may it open sockets that see whole frames?
bool may_open_raw_sockets();

}  // namespace sluice::dpdk
