// What keeps a leg from going faster. Both nodes look while data moves, and tell each other.
//
// Pure. The source judges, since it sees what it waits for. A destination says with each Heartbeat what only
// it can know, and hears the source's verdict. If the source tells none, the destination judges by what it
// sees itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "control/leg/arrival.h"
#include "control/leg/job.h"
#include "control/leg/lanes.h"
#include "control/verdict/history.h"
#include "control/verdict/tally.h"

namespace sluice::transfer {

class Bottleneck {
 public:
  static constexpr uint64_t kIntervalNs = 500'000'000;
  static constexpr uint64_t kShortestNs = 50'000'000;  // a shorter interval at the end tells nothing

  // Data begins to move.
  void start(const LaneSet& lanes, uint64_t now_ns);
  // Judges the time since the last look, if it is time.
  void look(const Job& job, const LaneSet& lanes, uint64_t now_ns);
  // Data moves no more.
  void conclude(const Job& job, const LaneSet& lanes, uint64_t now_ns);

  void hear(const Heartbeat& word, uint64_t now_ns);
  // What the next Heartbeat says; `last`: nothing will follow.
  Heartbeat word(const Job& job, const LaneSet& lanes, bool last, uint64_t now_ns);

  Arrival& arrival() { return arrival_; }
  const verdict::Verdict& now() const { return now_; }
  const verdict::Tally& tally() const { return tally_; }
  const verdict::History& history() const { return history_; }

 private:
  struct Mark {
    uint64_t time_ns = 0;
    board::FlowFigures figures;
    std::vector<board::WorkerFigures> workers;
  };
  static Mark mark(const LaneSet& lanes, uint64_t now_ns);
  void judge(const Job& job, const LaneSet& lanes, uint64_t now_ns);
  verdict::Sight sight(const SourceEnd& source, const LaneSet& lanes, uint64_t now_ns) const;

  bool moving_ = false;
  Arrival arrival_;
  Mark before_;               // at the last look
  Mark told_;                 // at the last word
  bool sent_before_ = false;  // all had been sent by then
  uint64_t advice_bps_ = 0;   // of the peer's disk, the last since then
  verdict::Verdict now_;
  verdict::Tally tally_;
  verdict::History history_;
  uint64_t heard_ns_ = 0;
  std::optional<board::Load> peer_load_;
  std::optional<verdict::Verdict> peer_verdict_;
};

}  // namespace sluice::transfer
