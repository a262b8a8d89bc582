// One worker's queue pair on a memif, its frames read and written where the peer sees them.
//
// Received frames lie in the shared ring until release; sent payloads are copied into it by the caller, in
// the same pass as their sum (FrameQueue::caller_copies). Where the rings are not laid out as expected
// (another implementation as peer, zero-copy=yes), the driver's bursts do the work.
//
// A worker that has addresses in the region must not let go of it unawares: it acknowledges a closed gate in
// rx alone, where the last burst has been released and what was begun has been filled in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "dataplane/memif/driver.h"
#include "dataplane/memif/gate.h"
#include "dataplane/memif/rings.h"

namespace sluice::memif {

struct QueueSetup {
  uint32_t pair = 0;  // number of its rings
  bool client = false;
  uint32_t buffer_bytes = 0;     // of a slot, as both ends agreed
  uint32_t frame_bytes_max = 0;  // longest frame that may be sent
};

class Queue final : public net::FrameQueue {
 public:
  // `driver` has the same rings; both outlive this. `gate` is the driver's, too.
  Queue(const QueueSetup& setup, DriverQueue& driver, Gate& gate)
      : setup_(setup), driver_(driver), gate_(gate), too_long_(setup.frame_bytes_max) {}

  // Link's thread, at a closed gate: a connection was made. Without a region the driver does the work.
  void attach(const Region* region);

  uint32_t rx(net::RxFrame* frames, uint32_t capacity, net::RxSegmented* segmented) override;
  void release(const net::RxFrame* frames, uint32_t count) override;
  // A frame in the ring goes back with its burst, so the driver copies it into packet memory.
  bool keep(net::RxFrame* frame) override { return driver_.keep(frame); }
  uint8_t* tx_begin(uint32_t header_bytes, const uint8_t* payload, uint32_t payload_bytes,
                    const net::Buffer* owner, bool checksum_l4) override;
  uint32_t tx_flush() override;
  uint32_t tx_pending() const override { return direct_ ? written_ : driver_.tx_pending(); }
  bool device_holds(const net::Buffer& buffer) override { return !direct_ && driver_.device_holds(buffer); }
  std::span<const net::Buffer> buffers() const override { return driver_.buffers(); }
  std::span<uint8_t> buffer_memory() const override { return driver_.buffer_memory(); }

 private:
  bool adopt();
  // The gate is open, and rx has seen what changed behind it.
  bool usable() const { return gate_.state() == Gate::State::kOpen && !attached_; }

  const QueueSetup setup_;
  DriverQueue& driver_;
  Gate& gate_;
  // Written at a closed gate, read behind an open one; all else is the worker's.
  bool attached_ = false;
  Region region_;

  bool direct_ = false;    // the rings are used in place
  bool in_chain_ = false;  // what comes next belongs to a frame of several buffers, which is dropped
  Ring rx_ring_;
  Ring tx_ring_;
  uint32_t taken_ = 0;             // slots of rx_ring_ whose frames the worker has
  uint32_t written_ = 0;           // slots of tx_ring_ filled and not yet given
  uint32_t room_ = 0;              // slots of tx_ring_ known to be free, the written ones among them
  std::vector<uint8_t> too_long_;  // takes frames that no buffer of the peer holds: lost, as on any wire
};

}  // namespace sluice::memif
