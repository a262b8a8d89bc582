// See delay.h.
// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/delay.h"

#include <algorithm>
#include <cmath>

namespace sluice::emulator {

double Delay::exponential_mean_us(uint32_t length) const {
  double mean_us = settings_.exponential_us + settings_.exponential_us_per_byte * length;
  if (settings_.exponential_us_over_ln > 0) {
    // ln(1) is 0 and ln(0) nothing: frames without payload are as slow as those of two bytes.
    mean_us += settings_.exponential_us_over_ln / std::log(std::max(length, 2U));
  }
  return mean_us;
}

uint64_t Delay::arrives_ns(Draws draws, uint32_t length, uint64_t start_ns) {
  double delay_us = settings_.fixed_us;
  // Each part draws always when it is on, in this order.
  if (const double mean_us = exponential_mean_us(length); mean_us > 0) {
    delay_us += mean_us * draws.exponential();
  }
  if (settings_.uniform_us > 0) delay_us += settings_.uniform_us * (2 * draws.uniform() - 1);
  if (settings_.normal_us > 0) delay_us += settings_.normal_us * draws.normal();
  delay_us = std::clamp(delay_us, 0.0, kDelayUsMax);
  uint64_t arrives_ns = start_ns + static_cast<uint64_t>(std::llround(delay_us * 1000));
  if (settings_.keep_order) arrives_ns = std::max(arrives_ns, last_ns_);
  last_ns_ = std::max(last_ns_, arrives_ns);
  return arrives_ns;
}

}  // namespace sluice::emulator
