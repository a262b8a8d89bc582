// How long a frame is on its way. Pure.
//
// The exponential part with mean 1024/ln(L) ms is HIPSTER's channel (docs/SOURCES.md; section 3).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tools/wire/random.h"
#include "tools/wire/settings.h"

namespace sluice::emulator {

class Delay {
 public:
  explicit Delay(const DelaySettings& settings) : settings_(settings) {}
  void set(const DelaySettings& settings) { settings_ = settings; }

  // Of a frame with length L that starts its way at `start_ns`: when it arrives.
  uint64_t arrives_ns(Draws draws, uint32_t length, uint64_t start_ns);

 private:
  double exponential_mean_us(uint32_t length) const;

  DelaySettings settings_;
  uint64_t last_ns_ = 0;
};

}  // namespace sluice::emulator
