// The data port: what the workers send and receive through, and the threads that they run on.
//
// Opening one is cold, may block, and belongs to whoever drives the device (dataplane/dpdk). No type of a
// driver is seen here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "dataplane/base/error.h"
#include "dataplane/board/board.h"
#include "dataplane/board/counters.h"
#include "dataplane/net/datagram_queue.h"

namespace sluice::net {

// What may arrive while nobody looks.
struct ReceiveQueue {
  uint32_t datagrams = 0;  // so many have room; 0: an arrival wakes the worker
  bool loses = true;       // false: what has no room waits at the sender
};

class Port {
 public:
  virtual ~Port() = default;

  virtual board::PortInfo info() const = 0;
  // What this worker sends and receives through; once for each worker. It counts into `counters`, and ends
  // before the port does.
  virtual std::unique_ptr<DatagramQueue> datagrams(uint32_t worker, board::CounterWriter counters) = 0;
  // One more extent buffer of the port, shared by all queues: the caller fills it once, before launch.
  virtual const Buffer* pattern() const = 0;
  // Of each worker.
  virtual ReceiveQueue receive_queue() const { return {}; }
  // The device's driver copies what it sends: a payload may lie outside of the port's memory, in a Buffer
  // that has the `share` of one of its own.
  virtual bool sends_any_memory() const = 0;
  // Runs `body(worker)` on each worker's pinned core; returns at once.
  virtual Status launch(std::function<void(uint32_t worker)> body) = 0;
  virtual void join() = 0;  // waits until every body has returned
  // Called about once a second by the main thread, which is told what is new of the link.
  virtual void maintain() = 0;
  // Of the device, now. Main thread.
  virtual board::Link link() const { return board::Link::kUnknown; }
  // Why there is no device any more, nor ever will be for this port: "interface data0 was deleted". Empty: it
  // is there, be its link up or down. Main thread, often.
  virtual std::string gone() const { return {}; }
  // Frames that the device had no room for since it started; 0 where queues count them (rx_missed). Main
  // thread.
  virtual uint64_t missed_frames() const { return 0; }
  virtual int core_of(uint32_t worker) const = 0;  // CPU number
};

}  // namespace sluice::net
