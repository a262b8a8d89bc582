// Keeps the data port of a node that names a fallback: runs the dataplane on the device, or, while that is
// gone, on sockets.
//
// A process of its own above the dataplane: each turn on the device or on sockets is one child, started with
// the rights that a dataplane starts with and confined as any other. What the keeper reads are its child's
// status and the presence of the device; nothing of the network reaches it. Why a process, and why a
// change of port is a restart: docs/decisions/0021-the-port-changes-by-a-restart.md.
//
// One thread, which must be the process's only one. The child dies with the keeper.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "dataplane/base/config/config.h"
#include "dataplane/base/daemon/service.h"
#include "dataplane/board/board.h"

namespace sluice::keeper {

// What a child is to serve.
struct Turn {
  config::Node node;   // as configured, or with sockets and the addresses of the fallback
  bool fell = false;   // on sockets, in place of the device
  std::string device;  // as configured, without its arguments
  std::string reason;  // why it fell
  uint64_t since_unix_ns = 0;
  uint32_t falls = 0;

  void note(board::PortInfo* info) const;  // for control
};

// Serves until it is told to end, or its device is gone; -> the exit status. Runs in a process of its own.
using Serve = std::function<int(const Turn& turn, daemon::Service& service)>;

// The node with what its fallback needs in place of its device. Pure.
config::Node on_sockets(const config::Node& node);

// -> the exit status of the daemon.
int keep(const config::Node& node, daemon::Service& service, const Serve& serve);

}  // namespace sluice::keeper
