// How a leg gets on: its rate, what it waits for, and whether it stands still.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "control/board/figures.h"
#include "control/leg/bottleneck.h"
#include "control/leg/job.h"

namespace sluice::transfer {

class Watch {
 public:
  static constexpr uint64_t kIntervalNs = 100'000'000;

  // Data begins to move, on new flows or on those of an earlier life of this control.
  void start(const Job& job, const board::FlowFigures& figures, uint64_t now_ns);
  // Looks, if it is time. True: something moved since the last look.
  bool look(const Job& job, const board::FlowFigures& figures, uint64_t now_ns);
  uint64_t due_ns() const { return looked_ns_ + kIntervalNs; }  // of the next look
  // For so long nothing has moved.
  uint64_t still_ns(uint64_t now_ns) const { return now_ns - moved_ns_; }

  std::optional<double> rate_bps() const { return meter_.rate_bps(); }          // of all legs together
  std::optional<double> leg_rate_bps() const { return leg_meter_.rate_bps(); }  // of this one
  const std::string& waiting_for() const { return waiting_for_; }
  // That a node has too little memory for the path: once, empty otherwise.
  std::string take_warning() { return std::exchange(warning_, {}); }
  Bottleneck& bottleneck() { return bottleneck_; }
  const Bottleneck& bottleneck() const { return bottleneck_; }

 private:
  board::RateMeter meter_;
  board::RateMeter leg_meter_;
  board::FlowFigures before_;
  Bottleneck bottleneck_;
  std::string waiting_for_;
  std::string warning_;
  bool warned_ = false;
  uint64_t mark_ = 0;
  uint64_t moved_ns_ = 0;
  uint64_t looked_ns_ = 0;
};

}  // namespace sluice::transfer
