// One worker's queue pair on a memif, its frames read and written where the peer sees them.
//
// Received frames lie in the shared ring until release; sent payloads are copied into it by the caller, in
// the same pass as their sum (Queue::caller_copies). Where the rings are not laid out as expected (another
// implementation as peer, zero-copy=yes), the driver's bursts do the work, as for any other device.
// With addresses in the region a worker acknowledges a closed gate in rx alone: there it holds none.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "dataplane/dpdk/memif_rings.h"
#include "dataplane/dpdk/queue.h"

namespace sluice::dpdk {

class MemifQueue final : public Queue {
 public:
  MemifQueue(const QueueSetup& setup, bool client, uint32_t buffer_bytes)
      : Queue(setup), client_(client), buffer_bytes_(buffer_bytes), too_long_(setup.frame_bytes_max) {}

  // Link's thread, at a closed gate: a connection was made. Without a region the driver does the work.
  void attach(const MemifRegion* region);

  uint32_t rx(net::RxFrame* frames, uint32_t capacity, uint32_t* oversize) override;
  void release(const net::RxFrame* frames, uint32_t count) override;
  bool keep(net::RxFrame* frame) override;
  uint8_t* tx_begin(uint32_t header_bytes, const uint8_t* payload, uint32_t payload_bytes,
                    const net::Buffer* owner, bool checksum_l4) override;
  uint32_t tx_flush() override;
  uint32_t tx_pending() const override { return direct_ ? written_ : Queue::tx_pending(); }
  bool device_holds(const net::Buffer& buffer) override { return !direct_ && Queue::device_holds(buffer); }

 private:
  bool adopt();
  // The gate is open, and rx has seen what changed behind it.
  bool usable() const { return gate_.state() == Gate::State::kOpen && !attached_; }

  const bool client_;
  const uint32_t buffer_bytes_;
  // Written at a closed gate, read behind an open one; all else is the worker's.
  bool attached_ = false;
  MemifRegion region_;

  bool direct_ = false;
  bool in_chain_ = false;  // what comes next belongs to a frame of several buffers, which is dropped
  MemifRing rx_ring_;
  MemifRing tx_ring_;
  uint32_t taken_ = 0;             // slots of rx_ring_ whose frames the worker has
  uint32_t written_ = 0;           // slots of tx_ring_ filled and not yet given
  uint32_t room_ = 0;              // slots of tx_ring_ known to be free, the written ones among them
  std::vector<uint8_t> too_long_;  // takes frames that no buffer of the peer holds: lost, as on any wire
};

}  // namespace sluice::dpdk
