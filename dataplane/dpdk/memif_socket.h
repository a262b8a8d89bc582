// memif's control socket, as seen from outside the driver: is anybody serving there, and which of this
// process's descriptors belong to it.
//
// Cold.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/dpdk/device_args.h"

namespace sluice::dpdk {

// A connection to the device's server, without waiting; empty (errno set) when nobody serves there.
// Close it only after `greeted`: DPDK 22.11's server aborts its process when a client is gone before the
// greeting could be sent.
UniqueFd connect_to_server(const Device& device);
// Waits for the server's greeting: 1 it came, 0 not yet, -1 the server is gone.
int greeted(const UniqueFd& connection, int timeout_ms);

// Checks the socket's directory, and for a server removes the socket file that a killed one left behind.
// kDevice when another process serves there.
Status prepare_socket(const Device& device);

// Descriptors of this process, the driver's, that listen on or are connected through the socket.
std::vector<int> socket_descriptors(const Device& device);

}  // namespace sluice::dpdk
