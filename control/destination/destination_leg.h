// What a receiving end has of one leg: the stream to its source, what was lost on its lanes, and the limit
// that its source was told.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "control/recovery/loss_detector.h"
#include "control/words/data_end.h"
#include "control/words/end_stream.h"

namespace sluice::transfer {

class DestinationLeg : public EndStream {
 public:
  // ---- an attempt ----
  void begin(const DataEnd::Way& way);
  // On flows of an earlier life of this control, of which the board knows what is settled.
  void adopt(const DataEnd::Way& way, std::span<const board::FlowSlot* const> lanes);
  void end() { close(); }
  bool has_lane(LaneId lane) const { return detectors_.contains(lane); }

  // Tells the workers of its lanes what did not arrive.
  void settle_losses(const Tick& event, uint64_t now_ns, Effects& out);

  // Of `bytes`, which its lanes have accepted since they were opened, those since the last call.
  uint64_t take_arrived(uint64_t bytes) {
    const uint64_t before = std::exchange(arrived_bytes_, bytes);
    return bytes - std::min(bytes, before);
  }

  // The most that the source may send; 0: as agreed upon. The source hears it on each stream.
  void limit_source(uint64_t limit_bps, Effects& out);
  void say_limit(Effects& out) const {
    if (limit_was_set_) say(RateLimit{.rate_bps = limit_bps_}, out);
  }

 private:
  Indexed<LaneId, recovery::LossDetector> detectors_;
  uint64_t arrived_bytes_ = 0;
  uint64_t limit_bps_ = 0;  // by an operator of this node
  bool limit_was_set_ = false;
};

}  // namespace sluice::transfer
