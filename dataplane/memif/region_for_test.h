// Region 0 of a memif as a client's driver lays it out: rings, then a buffer for each slot of each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "dataplane/memif/rings.h"

namespace sluice::memif {

class SharedRegionForTest {
 public:
  SharedRegionForTest(uint32_t pairs, uint32_t log2_slots, uint32_t buffer_bytes) {
    const uint64_t ring_bytes = kRingHeadBytes + (sizeof(Descriptor) << log2_slots);
    const uint32_t slots = 1U << log2_slots;
    const uint64_t buffers_at = 2 * pairs * ring_bytes;
    bytes_ = buffers_at + uint64_t{2} * pairs * slots * buffer_bytes;
    memory_.reset(static_cast<uint8_t*>(std::aligned_alloc(64, (bytes_ + 63) / 64 * 64)));
    std::memset(memory_.get(), 0, bytes_);
    for (uint32_t r = 0; r < 2 * pairs; ++r) {
      uint8_t* const at = memory_.get() + r * ring_bytes;
      // Byte by byte, since a ring of few slots does not begin where its types want to.
      std::memcpy(at + offsetof(RingHead, cookie), &kCookie, sizeof kCookie);
      std::memcpy(at + offsetof(RingHead, flags), &kMaskInterrupts, sizeof kMaskInterrupts);
      for (uint32_t i = 0; i < slots; ++i) {
        const auto offset = static_cast<uint32_t>(buffers_at + (uint64_t{r} * slots + i) * buffer_bytes);
        std::memcpy(at + kRingHeadBytes + i * sizeof(Descriptor) + offsetof(Descriptor, offset), &offset,
                    sizeof offset);
      }
    }
    region = Region::inspect(memory_.get(), bytes_);
  }
  uint8_t* begin() { return memory_.get(); }
  uint64_t bytes() const { return bytes_; }

  Region region;

 private:
  struct Free {
    void operator()(uint8_t* p) const { std::free(p); }
  };
  uint64_t bytes_ = 0;
  std::unique_ptr<uint8_t, Free> memory_;
};

}  // namespace sluice::memif
