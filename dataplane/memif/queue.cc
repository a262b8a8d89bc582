// Hot, except attach. See queue.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memif/queue.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "dataplane/base/check.h"

namespace sluice::memif {

using net::kBurst;

void Queue::attach(const Region* region) {
  region_ = region != nullptr ? *region : Region();
  attached_ = true;
}

// False: it is too early to tell whether the peer polls.
bool Queue::adopt() {
  direct_ = false;
  in_chain_ = false;
  taken_ = written_ = room_ = 0;
  if (region_.rings > 0) {
    rx_ring_ = Ring(region_, setup_.pair, setup_.client, false, setup_.buffer_bytes);
    tx_ring_ = Ring(region_, setup_.pair, setup_.client, true, setup_.buffer_bytes);
    if (!tx_ring_.offered()) return false;
    direct_ = rx_ring_.polled() && tx_ring_.polled();
  }
  // From now on the driver does not send any more, so what it has would hold its extents for ever.
  if (direct_) driver_.drop_pending();
  caller_copies_ = direct_;
  attached_ = false;
  return true;
}

uint32_t Queue::rx(net::RxFrame* frames, uint32_t capacity, net::RxSegmented* segmented) {
  *segmented = {};
  if (gate_.pass() != Gate::State::kOpen) [[unlikely]]
    return 0;
  if (attached_ && !adopt()) [[unlikely]]
    return 0;
  if (!direct_) return driver_.rx(frames, capacity, segmented);
  DCHECK(taken_ == 0, "a burst is released before the next one is taken");
  const uint32_t count = std::min({capacity, kBurst, rx_ring_.ready()});
  uint32_t out = 0;
  for (uint32_t i = 0; i < count; ++i) {
    const Descriptor slot = rx_ring_.read(i);
    const uint8_t* const data = rx_ring_.buffer(slot, slot.length);
    const bool chained = (slot.flags & kChained) != 0;
    const bool rest = std::exchange(in_chain_, chained);
    if (data == nullptr || chained || rest) [[unlikely]] {
      segmented->dropped += rest ? 0 : 1;
      continue;
    }
    __builtin_prefetch(data);
    frames[out++] = {.data = data, .length = slot.length, .udp_checksum_good = false, .handle = nullptr};
  }
  taken_ = count;
  return out;
}

// In the shared ring frames go back all at once, with the burst they came in. Those with a handle are kept
// ones, which lie in the driver's memory.
void Queue::release(const net::RxFrame* frames, uint32_t count) {
  if (!direct_) return driver_.release(frames, count);
  if (taken_ > 0) {
    rx_ring_.give(taken_);
    taken_ = 0;
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (frames[i].handle != nullptr) driver_.release(&frames[i], 1);
  }
}

uint8_t* Queue::tx_begin(uint32_t header_bytes, const uint8_t* payload, uint32_t payload_bytes,
                         const net::Buffer* owner, bool checksum_l4) {
  if (!usable()) [[unlikely]]
    return nullptr;
  if (!direct_) return driver_.tx_begin(header_bytes, payload, payload_bytes, owner, checksum_l4);
  const uint32_t bytes = header_bytes + payload_bytes;
  if (written_ == kBurst || bytes > setup_.frame_bytes_max) return nullptr;
  if (written_ == room_) {
    room_ = tx_ring_.ready();
    if (written_ >= room_) return nullptr;
  }
  const Descriptor offered = tx_ring_.read(written_);
  if (!tx_ring_.fills_own_buffers() && offered.length < bytes) [[unlikely]]
    return too_long_.data();
  uint8_t* const frame = tx_ring_.buffer(offered, bytes);
  if (frame == nullptr) [[unlikely]]
    return nullptr;
  Descriptor& slot = tx_ring_.slot(written_);
  slot.length = bytes;
  slot.flags = 0;
  if (owner == nullptr && payload_bytes > 0) memcpy(frame + header_bytes, payload, payload_bytes);
  ++written_;
  return frame;
}

uint32_t Queue::tx_flush() {
  if (!direct_) return driver_.tx_flush();
  if (written_ == 0) return 0;
  if (!usable()) [[unlikely]] {
    const uint32_t not_taken = written_;
    // The link is down for good: what was written goes with its memory.
    if (gate_.state() == Gate::State::kOffline) written_ = 0;
    return not_taken;
  }
  tx_ring_.give(written_);
  room_ -= written_;
  written_ = 0;
  return 0;
}

}  // namespace sluice::memif
