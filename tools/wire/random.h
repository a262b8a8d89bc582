// Chance for the path models: a stream of draws for one frame in one stage, a function of the seed, the
// frame's number and the stage alone.
//
// So what happens to the k-th frame that arrives depends neither on time nor on how many draws other
// frames or stages took; changing one stage's settings leaves the decisions of the others as they are.
// Pure. SplitMix64 (Steele, Lea, Flood 2014).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace sluice::emulator {

constexpr uint64_t mix64(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9;
  x ^= x >> 27;
  x *= 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Names a stage's stream; part of what a seed means, so values stay as they are.
enum class Stage : uint64_t {
  kLossProbability = 1,
  kLossBurst = 2,
  kLossLength = 3,
  kCorrupt = 4,
  kDuplicate = 5,
  kDelay = 6,  // plus the copy's number, below 256, times 256
  kReorder = 7,
};

class Draws {
 public:
  Draws(uint64_t seed, uint64_t frame, Stage stage, uint64_t copy = 0)
      : state_(mix64(mix64(seed ^ (frame * kStep)) + (static_cast<uint64_t>(stage) + (copy << 8)) * kStep)) {}

  uint64_t next() { return mix64(state_ += kStep); }
  // [0, 1)
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }
  bool chance(double probability) { return uniform() < probability; }
  // [0, bound); bound > 0. The bias of the multiplication is below 2^-32 for every bound that a frame has.
  uint32_t below(uint32_t bound) {
    return static_cast<uint32_t>((uint64_t{static_cast<uint32_t>(next() >> 32)} * bound) >> 32);
  }
  double exponential() { return -std::log1p(-uniform()); }  // mean 1
  double normal() {                                         // mean 0, standard deviation 1
    const double radius = std::sqrt(2 * exponential());
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
  uint64_t state_;
};

}  // namespace sluice::emulator
