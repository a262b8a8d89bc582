// The simulator's chance: one seed, split into named streams, so that a draw in one part changes no other.
//
// Pure, integers only: the same on every machine. SplitMix64 (Steele, Lea, Flood 2014).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace sluice::sim {

constexpr uint64_t mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ULL;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0) : state_(mix(seed ^ mix(stream + 1))) {}

  uint64_t next() { return mix(state_ += 0x9E3779B97F4A7C15ULL); }
  // [0, bound), bound > 0.
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<__uint128_t>(next()) * bound) >> 64);
  }
  uint64_t between(uint64_t low, uint64_t high) { return low + below(high - low + 1); }
  // Small and large numbers alike: the size in bits is uniform.
  uint64_t scale(uint64_t low, uint64_t high) {
    const auto from = static_cast<uint64_t>(std::bit_width(low));
    const auto to = static_cast<uint64_t>(std::bit_width(high));
    const uint64_t bits = between(from, to);
    const uint64_t first = bits == 0 ? 0 : uint64_t{1} << (bits - 1);
    const uint64_t last = bits == 0 ? 0 : first + (first - 1);
    return between(first < low ? low : first, last > high ? high : last);
  }
  bool chance(uint64_t per_million) { return below(1'000'000) < per_million; }
  bool flip() { return (next() & 1) != 0; }

 private:
  uint64_t state_;
};

}  // namespace sluice::sim
