// SPDX-License-Identifier: Apache-2.0
#include "dataplane/memif/rings.h"

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <string>

#include "dataplane/memif/process_files.h"

namespace sluice::memif {
namespace {

constexpr uint32_t kLog2SlotsMax = 14;  // memif's own limit

uint64_t ring_bytes(uint32_t log2_slots) { return kRingHeadBytes + (sizeof(Descriptor) << log2_slots); }

}  // namespace

// Rings stand one after the other, each with its cookie first.
Region Region::inspect(uint8_t* begin, uint64_t bytes) {
  Region region{.begin = begin, .bytes = bytes};
  const auto cookie_at = [&](uint64_t offset) {
    uint32_t cookie = 0;
    if (offset + sizeof cookie > bytes) return false;
    std::memcpy(&cookie, begin + offset, sizeof cookie);
    return cookie == kCookie;
  };
  // From four slots up every ring begins at a cache line, as its head needs. Smaller ones are left to the
  // driver.
  for (uint32_t log2 = 2; log2 <= kLog2SlotsMax; ++log2) {
    if (!cookie_at(0) || !cookie_at(ring_bytes(log2))) continue;
    region.rings = 2;
    while (cookie_at(region.rings * ring_bytes(log2))) ++region.rings;
    if (region.rings * ring_bytes(log2) > bytes) region.rings = 0;  // the last one is cut off
    region.log2_slots = log2;
    break;
  }
  return region;
}

bool Region::has_buffers() const {
  constexpr uint64_t kBufferBytesMin = 256;
  return rings > 0 && bytes >= rings * (ring_bytes(log2_slots) + (kBufferBytesMin << log2_slots));
}

std::vector<Region> mapped_regions() {
  std::vector<Region> regions;
  for (const std::string& line : own_maps()) {
    if (line.find("/memfd:memif_region_0") == std::string::npos) continue;
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t inode = 0;
    const bool read =
        sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %" SCNu64, &begin, &end, &inode) == 3;
    regions.push_back(read ? Region::inspect(reinterpret_cast<uint8_t*>(begin), end - begin) : Region());
    regions.back().inode = inode;
  }
  return regions;
}

Ring::Ring(const Region& region, uint32_t pair, bool client, bool sending, uint32_t buffer_bytes)
    : region_(region.begin),
      region_bytes_(region.bytes),
      slots_(1U << region.log2_slots),
      buffer_bytes_(buffer_bytes),
      client_(client),
      sending_(sending) {
  const uint32_t to_client = client != sending ? region.rings / 2 : 0;
  uint8_t* const ring = region.begin + (to_client + pair) * ring_bytes(region.log2_slots);
  ring_ = reinterpret_cast<RingHead*>(ring);
  descriptors_ = reinterpret_cast<Descriptor*>(ring + kRingHeadBytes);
  // Nobody has moved our index of a new ring yet, while the peer may have moved its own.
  at_ = (client ? ring_->head : ring_->tail).load(std::memory_order_relaxed);
  if (offers_buffers()) {
    offer(slots_);
    show();
  }
}

void Ring::give(uint32_t count) {
  if (offers_buffers()) offer(count);
  at_ = static_cast<uint16_t>(at_ + count);
  show();
}

// Whole again: the peer wrote the length of its frame there.
void Ring::offer(uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    slot(i).length = buffer_bytes_;
    slot(i).flags = 0;
  }
}

void Ring::show() {
  const auto shown = static_cast<uint16_t>(at_ + (offers_buffers() ? slots_ : 0));
  (client_ ? ring_->head : ring_->tail).store(shown, std::memory_order_release);
}

}  // namespace sluice::memif
