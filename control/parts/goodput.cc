// SPDX-License-Identifier: Apache-2.0
#include "control/parts/goodput.h"

#include <algorithm>

namespace sluice::parts {
namespace {

constexpr uint64_t kLeastNs = 5'000'000;  // shorter intervals say little
constexpr double kRecentS = 0.05;         // at least, of an average over a round trip

}  // namespace

void Goodput::begin(uint64_t now_ns, uint64_t rtt_ns) {
  if (busy_) return;
  busy_ = true;
  flowing_ = false;
  since_ns_ = now_ns + rtt_ns;
  bytes_ = 0;
}

void Goodput::tick(uint64_t now_ns, uint64_t rtt_ns) {
  if (!busy_ || (!flowing_ && bytes_ == 0)) return;
  // The round trip may have become shorter than it was thought to be.
  if (!flowing_) since_ns_ = std::min(since_ns_, now_ns - std::min(now_ns, kLeastNs));
  flowing_ = true;
  if (now_ns < since_ns_ + kLeastNs) return;
  const double seconds = static_cast<double>(now_ns - since_ns_) * 1e-9;
  const double now = static_cast<double>(bytes_) / seconds;
  since_ns_ = now_ns;
  bytes_ = 0;
  age_s_ += seconds;
  // From the beginning on a plain mean, until there is a second of it.
  const double weight = std::max(seconds / (seconds + kAverageS), seconds / age_s_);
  rate_ += (now - rate_) * weight;
  const double recent_s = std::max(kRecentS, static_cast<double>(rtt_ns) * 1e-9);
  recent_ += (now - recent_) * std::max(seconds / (seconds + recent_s), seconds / age_s_);
}

}  // namespace sluice::parts
