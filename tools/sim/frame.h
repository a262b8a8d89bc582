// Frames of the simulated wire: Ethernet, IPv4, UDP.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace sluice::sim {

inline constexpr size_t kIpAt = 14;
inline constexpr size_t kUdpAt = kIpAt + 20;
inline constexpr size_t kSluiceAt = kUdpAt + 8;  // docs/WIRE.md 1.1

}  // namespace sluice::sim
