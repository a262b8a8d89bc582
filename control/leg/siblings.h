// What the legs of one transfer know of each other: who begins, who moves data, who ends.
//
// One leg at a time reserves its flows, agrees upon the files and opens them, or adopts flows: what is
// reserved, agreed upon, found and opened there concerns all. Between its reservation and its turn to agree a
// leg to one of several peers speaks with that peer beside the others (handshake.h). The data end has one
// attempt, to which legs come and from which they go. The last one to go closes it, and nobody comes
// meanwhile.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/leg/lanes.h"

namespace sluice::transfer {

class Siblings {
 public:
  enum class Stage : uint8_t {
    kAway,
    kWaits,   // for its dataplane, its peer, or another leg
    kCalls,   // its peer, which concerns no other leg; it holds flows
    kDue,     // likewise; its peer has said what concerns all, and it waits for its turn
    kBegins,  // its handshake, or the flows of an earlier life of this control
    kMoves,
    kCloses,     // and others go on
    kClosesEnd,  // and the attempt of the data end with it
  };

  // A leg, in the order of their numbers. Its lanes outlive this.
  void add(const LaneSet& lanes) { legs_.push_back({.lanes = &lanes}); }
  Stage stage(LegId leg) const { return legs_[leg].stage; }
  void set(LegId leg, Stage stage) {
    if (std::exchange(legs_[leg].stage, stage) != stage) ++changes_;
    if (stage == Stage::kMoves) legs_[leg].heard = true;
  }
  uint64_t changes() const { return changes_; }  // so often some leg came to another stage

  // No other leg begins, or is about to close the data end.
  bool may_begin(LegId leg) const;
  // No other leg needs the data end, and none is there already to close it.
  bool is_last(LegId leg) const;
  // Nor has one flows that are still to end.
  bool alone(LegId leg) const;
  bool some_go_on() const;  // or wait
  bool some_come() const;   // are on their way, however long their peers take to answer
  bool some_join() const;   // soon: nothing but their turn keeps them from moving data
  // One of these may be faster than this leg is expected to be: more is expected of it, or nothing is known.
  bool faster_joins(LegId leg) const;
  // One that is known to be faster still speaks with its peer.
  bool faster_calls(LegId leg) const;
  void expect(LegId leg, uint64_t bps) { legs_[leg].expected_bps = bps; }  // 0: not known
  // This one's peer is there, so far away.
  void reached(LegId leg, uint64_t rtt_ns) { legs_[leg].rtt_ns = rtt_ns; }
  // One that is on its way has never agreed upon the files: its peer is there, and near enough to be waited
  // for; or nobody knows yet whether it is.
  static constexpr uint64_t kNearNs = 50'000'000;
  bool near_unheard() const;
  bool some_unreached() const;
  // Those of which most is expected first: they call first, and have their turn first.
  std::vector<LegId> in_order() const;
  bool all_away() const;
  // Others go on without it for good; empty: they do not.
  void leave_out(LegId leg, const std::string& why) { legs_[leg].left_out = why; }
  const std::string& left_out(LegId leg) const { return legs_[leg].left_out; }
  // Of the flows of all legs, in this attempt.
  board::FlowFigures figures() const;
  void check_invariants() const;  // between two steps, where DCHECKs are on

 private:
  struct Each {
    const LaneSet* lanes = nullptr;
    Stage stage = Stage::kAway;
    uint64_t expected_bps = 0;
    bool heard = false;  // in this life of control, it has agreed upon the files
    std::optional<uint64_t> rtt_ns = {};
    std::string left_out = {};
  };
  Indexed<LegId, Each> legs_;
  uint64_t changes_ = 0;
};

}  // namespace sluice::transfer
