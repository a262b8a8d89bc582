// How many extents a sender could make use of at once: what its rate puts on the path in a round trip.
//
// Pure; one owner: a sending flow. The receiver knows neither the rate nor the round trip, so it is told, and
// grants what its memory allows. An extent with holes stays open for as many round trips more as its repair
// takes, which the loss of the path tells.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "dataplane/core/recent_loss.h"
#include "dataplane/core/repair_rounds.h"

namespace sluice {

class CreditWish {
 public:
  static constexpr uint32_t kMost = 1U << 20;           // extents; a peer grants no more
  static constexpr uint64_t kIntervalNs = 10'000'000;   // between two changes
  static constexpr uint64_t kTurnaroundNs = 5'000'000;  // statuses, a turn of control, a write
  static constexpr uint64_t kSpare = 4;                 // extents that are begun or end
  // A window of two round trips: the rate may double in one, before more credit can come.
  static constexpr double kRoundTrips = 2;

  struct Path {
    uint64_t rate_bps = 0;
    uint64_t rtt_ns = 0;  // 0: not known
    uint64_t sent = 0;    // transmissions, and those that were lost on the way; in all
    uint64_t lost = 0;
    uint32_t chunk_bytes = 0;
    uint32_t extent_bytes = 0;
  };

  void update(const Path& path, uint64_t now_ns) {
    if (path.rtt_ns == 0 || now_ns - updated_ns_ < kIntervalNs) return;
    updated_ns_ = now_ns;
    loss_.update(path.sent, path.lost);
    const double extents_per_trip = static_cast<double>(path.rate_bps) / 8e9 *
                                    static_cast<double>(path.rtt_ns + kTurnaroundNs) /
                                    static_cast<double>(path.extent_bytes);
    const double trips =
        kRoundTrips + kRepairRoundTrips * repair_rounds(path.extent_bytes / path.chunk_bytes, loss());
    extents_ = static_cast<uint32_t>(std::min<double>(std::ceil(extents_per_trip * trips) + kSpare, kMost));
  }
  // 0: not known yet.
  uint32_t extents() const { return extents_; }
  double loss() const { return loss_.share(); }  // of the path, lately

 private:
  uint32_t extents_ = 0;
  uint64_t updated_ns_ = 0;
  RecentLoss loss_;
};

}  // namespace sluice
