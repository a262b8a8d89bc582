// What the planner knows of one leg: what it is asked for, how fast it is, and when it will be done with it.
//
// Pure. Times are seconds and rates are bytes per second, since they are estimates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "control/parts/goodput.h"
#include "control/parts/outstanding.h"
#include "control/parts/words.h"

namespace sluice::parts {

struct LegState {
  enum class Phase : uint8_t {
    kActive,
    kSilent,   // nothing came for too long: it is asked for nothing
    kOnTrial,  // it is asked for one extent, and is active once that is there
  };

  LegFacts facts;
  Phase phase = Phase::kActive;
  Goodput goodput;
  Outstanding outstanding;
  uint64_t bytes = 0;           // of what is outstanding
  uint64_t received = 0;        // of these, about: they have come, and no extent is confirmed yet
  std::optional<Place> next;    // where it would go on
  uint64_t quiet_ns = 0;        // since a byte came, as long as somebody looked
  uint64_t unconfirmed_ns = 0;  // likewise, since an extent was confirmed
  uint64_t trial_at_ns = 0;
  uint64_t trial_wait_ns = 0;
  std::optional<uint64_t> found_nothing_at;  // Planner::changes_ then

  double rtt_s() const { return static_cast<double>(facts.rtt_ns) * 1e-9; }
  // Outstanding, and not received.
  uint64_t remaining() const { return bytes - std::min(bytes, received); }
  // Whether its rate was measured or is expected. If not, `guess` stands in for it.
  bool rate_known() const { return goodput.known() || facts.expected_rate_bps != 0; }
  double rate(double guess) const;
  // How long it needs for all it is asked for.
  double needs_s(double guess) const { return static_cast<double>(remaining()) / rate(guess); }
  // When the first byte could come of so many that it would be asked for now, with the time that its start
  // costs.
  double free_in_s(double guess, uint64_t more_bytes) const;
  double done_in_s(double guess, uint64_t more_bytes) const {
    return free_in_s(guess, more_bytes) + static_cast<double>(more_bytes) / rate(guess);
  }
  // How much it may have outstanding. `refill_s`: the time between two refills.
  uint64_t window_bytes(double guess, double refill_s, uint64_t extent_bytes) const;
  // Of what is outstanding, in order, it may have begun so much.
  uint64_t begun_bytes(double guess, uint64_t extent_bytes) const;
};

// For a leg of which nothing is known, where nothing is known of the others either: 100 Mbit/s.
inline constexpr double kGuessedRate = 12.5e6;

}  // namespace sluice::parts
