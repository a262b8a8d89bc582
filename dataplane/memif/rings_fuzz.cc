// Any memory as the region that a peer shares: nothing outside it is touched, whatever its rings say.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <memory>

#include "dataplane/base/input_for_fuzz.h"
#include "dataplane/memif/rings.h"

namespace {

constexpr uint64_t kLine = 64;

struct Free {
  void operator()(uint8_t* p) const { std::free(p); }
};

}  // namespace

// Two bytes choose the sizes and the role, two for each turn what is done; the rest is the region, whose
// cookies are mostly set.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  fuzz::Input input(data, size);
  const bool client = input.flag();
  const uint32_t log2_slots = 1 + input.below(4);
  const uint32_t turns = input.below(32);
  uint8_t chosen[64];
  for (uint32_t i = 0; i < 2 * turns; ++i) chosen[i] = input.take<uint8_t>();
  const auto rest = input.rest();
  const uint64_t bytes = (rest.size() + kLine) / kLine * kLine;
  const std::unique_ptr<uint8_t, Free> memory(static_cast<uint8_t*>(std::aligned_alloc(kLine, bytes)));
  std::memset(memory.get(), 0, bytes);
  if (!rest.empty()) std::memcpy(memory.get(), rest.data(), rest.size());
  const uint64_t ring_bytes = memif::kRingHeadBytes + (sizeof(memif::Descriptor) << log2_slots);
  for (const uint64_t at : {uint64_t{0}, ring_bytes}) {
    if (turns % 8 != 0 && at + 4 <= bytes) std::memcpy(memory.get() + at, &memif::kCookie, 4);
  }

  const auto region = memif::Region::inspect(memory.get(), bytes);
  if (region.rings < 2) return 0;
  memif::Ring rings[2];
  for (const bool sending : {false, true}) {
    rings[sending ? 1 : 0] = memif::Ring(region, region.rings / 2 - 1, client, sending, 256);
  }
  for (uint32_t turn = 0; turn < turns; ++turn) {
    memif::Ring& ring = rings[chosen[2 * turn] & 1];
    const uint32_t ready = ring.ready();
    fuzz::require(ready <= 1U << region.log2_slots, "no more slots than there are");
    const uint32_t used = ready == 0 ? 0 : chosen[2 * turn + 1] % (ready + 1);
    for (uint32_t i = 0; i < used; ++i) {
      const memif::Descriptor slot = ring.read(i);
      uint8_t* const frame = ring.buffer(slot, slot.length);
      if (frame == nullptr || slot.length == 0) continue;
      frame[0] ^= 1;
      frame[slot.length - 1] ^= 2;
    }
    if (used > 0) ring.give(used);
  }
  return 0;
}
