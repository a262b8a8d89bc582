// The rings of a memif, worked on in place: no driver between a frame and the memory shared with the peer.
//
// DPDK's driver connects, maps and ends the link (link.h); its bursts copy every frame once more, apart
// from the pass that sums it. Layout: memif protocol 2.0 as DPDK 22.11's and libmemif's clients lay it out:
// in region 0 all rings from client to server, then all from server to client, then buffers. The head of a
// ring is always the client's, the tail always the server's. What the peer wrote there is checked before it
// is used.
//
// Pure memory; one thread per ring at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace sluice::memif {

struct Descriptor {
  uint16_t flags = 0;
  uint16_t region = 0;
  uint32_t length = 0;  // bytes: of a frame, or of an empty buffer
  uint32_t offset = 0;
  uint32_t metadata = 0;
};

struct RingHead {
  uint32_t cookie = 0;
  uint16_t flags = 0;
  std::atomic<uint16_t> head{0};
  alignas(64) std::atomic<uint16_t> tail{0};
};

inline constexpr uint32_t kCookie = 0x3E31F20;
inline constexpr uint16_t kMaskInterrupts = 1;  // of a ring: its user polls
inline constexpr uint16_t kChained = 1;         // of a descriptor: the frame goes on in the next
inline constexpr uint64_t kRingHeadBytes = 128;
static_assert(sizeof(Descriptor) == 16 && sizeof(RingHead) == kRingHeadBytes);

// Region 0 of a connected memif, as it is mapped here.
struct Region {
  uint8_t* begin = nullptr;
  uint64_t bytes = 0;
  uint32_t rings = 0;  // of both directions; 0 when it cannot be told
  uint32_t log2_slots = 0;
  uint64_t inode = 0;  // of its memfd: no two connections have the same

  // False: the buffers of this client lie in another region (zero-copy).
  bool has_buffers() const;

  // Counts the rings at `begin`.
  static Region inspect(uint8_t* begin, uint64_t bytes);
};
std::vector<Region> mapped_regions();  // of this process

class Ring {
 public:
  Ring() = default;
  // `client`: the role of this end. `sending`: this end fills the ring. A client that receives offers all its
  // buffers of `buffer_bytes`.
  Ring(const Region& region, uint32_t pair, bool client, bool sending, uint32_t buffer_bytes);

  // A client that has not offered buffers yet may not have said yet whether it polls.
  bool offered() const { return client_ || !sending_ || ring_->head.load(std::memory_order_acquire) != 0; }
  bool polled() const { return (ring_->flags & kMaskInterrupts) != 0; }
  // Slots that are this end's now: frames to take, or buffers to fill. 0 when the peer breaks the rules.
  uint32_t ready() const {
    const uint16_t other = (client_ ? ring_->tail : ring_->head).load(std::memory_order_acquire);
    const auto count = static_cast<uint16_t>(other + (fills_own_buffers() ? slots_ : 0) - at_);
    return count <= slots_ ? count : 0;
  }
  // The i-th of them; read() copies it once, before the peer could change it.
  Descriptor& slot(uint32_t i) const { return descriptors_[(at_ + i) & (slots_ - 1)]; }
  Descriptor read(uint32_t i) const {
    const Descriptor copy = slot(i);
    std::atomic_signal_fence(std::memory_order_acq_rel);  // the compiler must not look again
    return copy;
  }
  // Where `bytes` of its buffer lie; nullptr: not in the region, or the buffer is smaller.
  uint8_t* buffer(const Descriptor& d, uint32_t bytes) const {
    const uint64_t offset = d.offset;
    return d.region == 0 && offset + bytes <= region_bytes_ ? region_ + offset : nullptr;
  }
  // Gives the first `count` slots to the peer: frames it may read, or buffers it may fill again.
  void give(uint32_t count);
  bool fills_own_buffers() const { return client_ && sending_; }

 private:
  bool offers_buffers() const { return client_ && !sending_; }
  void offer(uint32_t count);
  void show();  // our index, to the peer

  RingHead* ring_ = nullptr;
  Descriptor* descriptors_ = nullptr;
  uint8_t* region_ = nullptr;
  uint64_t region_bytes_ = 0;
  uint32_t slots_ = 0;
  uint32_t buffer_bytes_ = 0;
  uint16_t at_ = 0;
  bool client_ = false;
  bool sending_ = false;
};

}  // namespace sluice::memif
