// memif's control socket, as seen from outside the driver: is anybody serving there, and which of this
// process's descriptors belong to it.
//
// Cold.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::memif {

// Where the two ends of a memif meet, as the operator named it.
struct SocketConfig {
  std::string device;  // for messages: "net_memif0"
  std::string path;    // of the socket; a name in the abstract namespace if `is_abstract`
  bool is_abstract = true;
  bool server = false;  // this end listens
};

// A connection to the server, without waiting; empty (errno set) when nobody serves there.
// Close it only after `greeted`: DPDK 22.11's server aborts its process when a client is gone before the
// greeting could be sent.
UniqueFd connect_to_server(const SocketConfig& config);
// Waits for the server's greeting: 1 it came, 0 not yet, -1 the server is gone.
int greeted(const UniqueFd& connection, int timeout_ms);

// Checks the socket's directory, and for a server removes the socket file that a killed one left behind.
// kDevice when another process serves there.
Status prepare_socket(const SocketConfig& config);

// Descriptors of this process, the driver's, that listen on or are connected through the socket.
std::vector<int> socket_descriptors(const SocketConfig& config);

}  // namespace sluice::memif
