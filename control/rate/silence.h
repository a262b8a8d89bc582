// What every law does when the peer is silent: a crawl, then nothing. The dataplane does the same by itself
// (dataplane/core/safe_rate.h).
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "control/rate/controller.h"
#include "dataplane/core/safe_rate.h"

namespace sluice::rate {

class Silence {
 public:
  static constexpr uint64_t kSilenceMinNs = kPeerSilentNsMin;
  static constexpr uint64_t kStopNs = kPeerGoneNs;
  static constexpr double kCrawlFraction = 0.01;

  enum class State : uint8_t { kHeard, kCrawling, kStopped };

  explicit Silence(uint64_t began_ns) : began_ns_(began_ns) {}

  State look(const PathReport& report, uint64_t now_ns) const {
    const uint64_t heard_ns = std::max(report.last_peer_ns, began_ns_);
    const uint64_t silent_ns = now_ns > heard_ns ? now_ns - heard_ns : 0;
    if (silent_ns >= kStopNs) return State::kStopped;
    const uint64_t rtt_ns = std::min(report.rtt_ns, kStopNs);
    return silent_ns > std::max(4 * rtt_ns, kSilenceMinNs) ? State::kCrawling : State::kHeard;
  }

 private:
  uint64_t began_ns_;
};

// As much of a rate as a fraction between 0 and 1 says. A limit has more digits than a double: rounded up, it
// would be above the limit, or no number at all.
inline uint64_t fraction_of(uint64_t rate_bps, double fraction) {
  if (fraction >= 1.0) return rate_bps;
  return std::min(rate_bps, static_cast<uint64_t>(static_cast<double>(rate_bps) * std::max(0.0, fraction)));
}
inline uint64_t at_most(double rate_bps, uint64_t cap_bps) {
  if (rate_bps >= static_cast<double>(cap_bps)) return cap_bps;
  return std::min(cap_bps, static_cast<uint64_t>(std::max(0.0, rate_bps)));
}

}  // namespace sluice::rate
