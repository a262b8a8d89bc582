// What this thread may do, before the port opens.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sluice::dpdk {

// Of this thread, now: may it open sockets that see whole frames?
bool may_open_raw_sockets();

}  // namespace sluice::dpdk
