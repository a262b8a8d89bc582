// The way of one flow over its own socket.
//
// One thread: the worker.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/base/unique_fd.h"
#include "dataplane/net/datagram_queue.h"
#include "dataplane/udp/socket.h"

namespace sluice::udp {

class Queue;

struct SocketPath final : net::Path {
  SocketPath(Queue& owner, const net::PathConfig& config, UniqueFd opened)
      : Path(config), queue(owner), socket(std::move(opened)) {}
  ~SocketPath() override;

  Queue& queue;
  UniqueFd socket;
  SocketAddress to;           // of a peer that is learnt: the socket is not connected. Empty: it is
  bool joins = true;          // the kernel cuts datagrams of one size out of one piece (UDP_SEGMENT)
  bool full = false;          // the socket took no more in this flush
  uint32_t drops = 0;         // of the socket, as counted so far
  uint64_t pause_end_ns = 0;  // until when nothing is sent, since the kernel refused the last datagrams
};

}  // namespace sluice::udp
