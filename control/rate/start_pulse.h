// A few milliseconds at a higher rate: does the path carry it?
//
// Pure. A rate that is raised for good shows a round trip later that it was too much, when a round trip of it
// waits in the queue or is lost. A pulse asks the same and costs a few milliseconds of queue. What came of
// its datagrams, and by how much their delay grew from the first to the last, is what the path carries.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "control/rate/controller.h"

namespace sluice::rate {

class StartPulse {
 public:
  static constexpr uint64_t kLengthNs = 5'000'000;

  // At `rate_bps`, from the datagram after the `sent`-th on.
  void begin(double rate_bps, uint64_t sent);
  void abort() { phase_ = Phase::kNone; }
  bool running() const { return phase_ != Phase::kNone; }
  bool sending() const { return phase_ == Phase::kSending; }
  double rate_bps() const { return rate_bps_; }
  // With every report, whether there is a new status in it or not.
  void take(const PathReport& report, bool news, uint64_t now_ns);
  // Once all of it was reported, or so long a queue that the rest does not matter. Ends it.
  struct Outcome {
    double carried_bps = 0;  // by the path
    bool whole =
        false;  // as much as was sent, which may be less than the rate: no limit of the path has shown
  };
  std::optional<Outcome> outcome();

 private:
  enum class Phase : uint8_t { kNone, kSending, kAwaited, kReported };

  void send(const PathReport& report, uint64_t now_ns);
  void hear(const PathReport& report);
  double grew_s() const { return std::max(0.0, delay_most_ns_ - delay_least_ns_) * 1e-9; }

  Phase phase_ = Phase::kNone;
  double rate_bps_ = 0;
  uint64_t first_ = 0;    // its datagrams: from this
  uint64_t end_ = 0;      // to before this; known when they are sent
  uint64_t idle_ns_ = 0;  // when none of them was sent yet
  double length_s_ = 0;   // likewise
  // As the last status told before it told of the pulse.
  uint64_t received_ = 0;
  uint64_t received_end_ = 0;
  uint64_t arrived_ = 0;   // since then
  uint64_t reported_ = 0;  // likewise, with what was lost
  // Of the least delays of its statuses, and of those before: a datagram that alone is late is no queue.
  double delay_least_ns_ = std::numeric_limits<double>::max();
  double delay_most_ns_ = std::numeric_limits<double>::lowest();
};

}  // namespace sluice::rate
