// What a memif asks of the driver that connects it: DPDK's net_memif, for which dataplane/dpdk implements
// this.
//
// The driver speaks memif's handshake, maps the shared memory and owns packet buffers and extents. Its own
// bursts do the work where the rings cannot be used in place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "dataplane/net/frame_queue.h"

namespace sluice::memif {

// One device. The link's thread only.
class Driver {
 public:
  virtual ~Driver() = default;
  virtual bool start() = 0;            // a server listens, a client connects; false: the driver refuses
  virtual void stop() = 0;             // ends the connection and unmaps its memory
  virtual bool connected() const = 0;  // to a peer, handshake done
};

// The one thread of the process on which every driver handles what happens to its connections: peers that
// come and go, on which it maps and unmaps memory without regard to workers. So it is held while any link is
// in use. The link's thread only.
class HandlerThread {
 public:
  virtual ~HandlerThread() = default;
  // Returns when the thread stands still; every event handled before is done with.
  virtual void hold() = 0;
  virtual void let_go() = 0;
  // While held: gives the thread time to handle what is ready, and holds it again. What it did not get to
  // is still ready afterwards.
  virtual void handle_ready() = 0;
};

// The driver's end of one queue pair. As net::FrameQueue, by one worker.
class DriverQueue : public net::FrameQueue {
 public:
  // Frames that were begun and have not been flushed are never sent.
  virtual void drop_pending() = 0;
};

}  // namespace sluice::memif
