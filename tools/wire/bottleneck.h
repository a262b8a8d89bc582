// A link of a given rate behind a queue that drops at its tail. Pure.
//
// Frames leave one after the other, each taking its length at the rate; times are exact on average (the
// fraction of a nanosecond is carried on), so the rate holds over any number of frames.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tools/wire/settings.h"

namespace sluice::emulator {

class Bottleneck {
 public:
  explicit Bottleneck(const RateSettings& settings) : settings_(settings) {}
  // What waits keeps its place; later frames go at the new rate.
  void set(const RateSettings& settings) { settings_ = settings; }

  // False: the queue is full. Otherwise *leaves_ns is when the frame has passed the link.
  bool enter(uint32_t bytes, uint64_t now_ns, uint64_t* leaves_ns);
  // Bytes waiting at the last frame's entry, itself included.
  uint64_t queue_bytes() const { return queue_bytes_; }
  // Bytes that have not passed the link yet; 0 without a rate.
  uint64_t waiting_bytes(uint64_t now_ns) const;

 private:
  RateSettings settings_;
  uint64_t busy_until_ns_ = 0;
  uint64_t remainder_ = 0;  // of busy_until, in 1/rate nanoseconds
  uint64_t queue_bytes_ = 0;
};

}  // namespace sluice::emulator
