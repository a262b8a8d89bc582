// One worker's queue pair of a device, as bursts of whole Ethernet frames.
//
// Hot; one worker thread each: no allocation, lock, system call or log in rx, release, tx_begin, tx_flush.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/net/buffer.h"

namespace sluice::net {

struct RxFrame {
  const uint8_t* data = nullptr;  // whole Ethernet frame, contiguous, without FCS
  uint32_t length = 0;
  bool udp_checksum_good = false;  // the device has checked it
  void* handle = nullptr;          // the queue's own
};

inline constexpr uint32_t kHeaderRoomBytes = 128;

// Of one call of rx: frames that the device delivered in several buffers, since its driver takes smaller ones
// than a frame.
struct RxSegmented {
  uint32_t joined = 0;   // put together, and among the frames
  uint32_t dropped = 0;  // not
};

class FrameQueue {
 public:
  virtual ~FrameQueue() = default;
  // Up to kBurst frames; each must be given back with release, soon. `segmented`: for the caller to count.
  virtual uint32_t rx(RxFrame* frames, uint32_t capacity, RxSegmented* segmented) = 0;
  // All frames of one rx call that were not kept, or one that was.
  virtual void release(const RxFrame* frames, uint32_t count) = 0;
  // Another worker will release this frame, later and on its own queue. The frame may be moved to other
  // memory. False: no room to keep it.
  virtual bool keep(RxFrame* frame) = 0;

  // Appends a frame to the burst being built: `header_bytes` (<= kHeaderRoomBytes) to be filled by
  // the caller before tx_flush at the returned address, then `payload_bytes` at `payload`, which lies
  // in `owner` and is not copied. With owner == nullptr the frame is one piece of memory up to the frame
  // limit, all of which may be header; a payload is copied into it. `checksum_l4`: ask the device for
  // the UDP checksum (only if the port offers it). nullptr: no room in the burst, or no packet buffer:
  // flush, try later.
  virtual uint8_t* tx_begin(uint32_t header_bytes, const uint8_t* payload, uint32_t payload_bytes,
                            const Buffer* owner, bool checksum_l4) = 0;
  // True: a payload with an owner has not been taken by tx_begin; the caller copies it behind the header, in
  // the pass that sums it. May change from frame to frame.
  bool caller_copies() const { return caller_copies_; }
  // True: the device itself sends a frame at the time that send_at was told before tx_begin, in nanoseconds
  // of the clock that keep_time is told; 0: at once. Frames of a queue leave in the order in which they were
  // begun.
  bool sends_at_times() const { return sends_at_times_; }
  void send_at(uint64_t ns) { send_at_ns_ = ns; }
  // `now_ns` was read just now: the device's clock is compared with it, now and then. Once per loop.
  virtual void keep_time(uint64_t) {}
  // Hands the burst to the device. Returns frames that it did not take: they stay first in line, except
  // while the link is known to be down: then they are dropped, and tx_pending is 0.
  virtual uint32_t tx_flush() = 0;
  virtual uint32_t tx_pending() const = 0;  // frames appended or left over
  // True while a frame of this buffer is queued here or in the device. May let the device reclaim.
  virtual bool device_holds(const Buffer& buffer) = 0;
  virtual std::span<const Buffer> buffers() const = 0;  // this worker's extents
  // The memory that holds all extents of this worker, for io_uring registration.
  virtual std::span<uint8_t> buffer_memory() const = 0;

 protected:
  bool caller_copies_ = false;
  bool sends_at_times_ = false;
  uint64_t send_at_ns_ = 0;
};

}  // namespace sluice::net
