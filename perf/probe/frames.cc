// SPDX-License-Identifier: Apache-2.0
#include "perf/probe/frames.h"

namespace sluice::probe {
namespace {

// Of the benchmarking network (RFC 2544, C.2.2); the discard port.
constexpr net::Address kSource{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 198, 18, 0, 1}};
constexpr net::Address kDestination{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 198, 18, 0, 2}};
constexpr uint16_t kPort = 9;
constexpr uint8_t kSourceMac[6] = {2, 0, 0, 0, 0, 1};
constexpr uint8_t kDestinationMac[6] = {2, 0, 0, 0, 0, 2};

}  // namespace

FrameWriter::FrameWriter(uint32_t frame_bytes) : frame_bytes_(frame_bytes) {
  net::FrameTemplate headers(kSource, kPort, kDestination, kPort);
  headers.set_macs(kSourceMac, kDestinationMac);
  headers.write(front_.data(), frame_bytes - static_cast<uint32_t>(kMarkAt));
  std::memcpy(front_.data() + kMarkAt, &kMark, sizeof kMark);
}

}  // namespace sluice::probe
