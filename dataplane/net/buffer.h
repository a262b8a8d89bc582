// The memory that payloads are sent from and received into, as everything that sends them sees it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::net {

// One extent buffer, aligned to 4096. Where a device reads it, it is contiguous for that device.
struct Buffer {
  uint8_t* data = nullptr;
  uint32_t bytes = 0;
  void* share = nullptr;  // how the queue counts who still reads it; nobody else looks inside
};

// Most frames or datagrams that move in one call.
inline constexpr uint32_t kBurst = 32;

}  // namespace sluice::net
