// See bottleneck.h.
// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/bottleneck.h"

namespace sluice::emulator {
namespace {

constexpr uint64_t kBitNsPerByte = 8'000'000'000;  // bits of a byte times nanoseconds of a second

}  // namespace

uint64_t Bottleneck::waiting_bytes(uint64_t now_ns) const {
  if (settings_.bits_per_s == 0 || busy_until_ns_ <= now_ns) return 0;
  const auto waiting = static_cast<unsigned __int128>(busy_until_ns_ - now_ns) * settings_.bits_per_s;
  return static_cast<uint64_t>(waiting / kBitNsPerByte);
}

bool Bottleneck::enter(uint32_t bytes, uint64_t now_ns, uint64_t* leaves_ns) {
  const uint64_t rate_bps = settings_.bits_per_s;
  const uint64_t link_bytes = uint64_t{bytes} + settings_.overhead_bytes;
  const uint64_t waiting = waiting_bytes(now_ns);
  if (busy_until_ns_ <= now_ns) {
    busy_until_ns_ = now_ns;
    remainder_ = 0;
  }
  // An idle link takes a frame of any length.
  if (rate_bps != 0 && settings_.queue_bytes != 0 && waiting != 0 &&
      waiting + link_bytes > settings_.queue_bytes) {
    return false;
  }
  if (rate_bps != 0) {
    queue_bytes_ = waiting + link_bytes;
    const auto ticks = static_cast<unsigned __int128>(link_bytes) * kBitNsPerByte + remainder_;
    busy_until_ns_ += static_cast<uint64_t>(ticks / rate_bps);
    remainder_ = static_cast<uint64_t>(ticks % rate_bps);
  }
  *leaves_ns = busy_until_ns_;
  return true;
}

}  // namespace sluice::emulator
