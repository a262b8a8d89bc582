// A made list of files with lognormal sizes, the same on every machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

namespace sluice::fleet {

class LognormalSizes {
 public:
  // The median, and the standard deviation of the logarithm.
  LognormalSizes(double median_bytes, double sigma, uint64_t seed)
      : median_bytes_(median_bytes), sigma_(sigma), state_(seed) {}
  uint64_t next() {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    return static_cast<uint64_t>(median_bytes_ *
                                 std::exp(sigma_ * radius * std::cos(2 * std::numbers::pi * uniform())));
  }

 private:
  // splitmix64; in (0, 1].
  double uniform() {
    uint64_t value = state_ += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return (static_cast<double>((value ^ (value >> 31)) >> 11) + 1) * 0x1p-53;
  }

  const double median_bytes_;
  const double sigma_;
  uint64_t state_;
};

}  // namespace sluice::fleet
