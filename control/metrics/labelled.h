// Which sessions have a label of their own in the metrics, and what all others count together.
//
// Pure; one instance for each exporter, told of every look at the node. A node may have thousands of
// sessions that wait, and every label is a set of time series that somebody keeps for months: so their
// number is bounded. Those that run come first, then those that rest; one that has its label keeps it
// before another of its kind. What the rest counts is told as session="other". That sum only grows,
// whoever joins or leaves it: a session brings into it what it counts while it has no label, not what
// it counted before.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "control/metrics/figures.h"

namespace sluice::metrics {

// Those of a session's figures that only grow.
struct SessionCounts {
  uint64_t payload_bytes = 0;
  uint64_t chunks = 0;
  uint64_t retransmits = 0;
  uint64_t duplicates = 0;
  uint64_t lost_datagrams = 0;
  uint64_t crc_errors = 0;
  uint64_t no_room = 0;
  uint64_t attempts = 0;

  void add_growth(const SessionCounts& before, const SessionCounts& now);
};
SessionCounts counts_of(const transfer::Summary& summary);

class Labelled {
 public:
  explicit Labelled(size_t most) : most_(most) {}

  void update(const std::vector<SessionFigures>& sessions);
  bool has(const std::string& session) const { return labelled_.contains(session); }
  const SessionCounts& others() const { return others_; }
  size_t without() const { return seen_.size(); }

 private:
  const size_t most_;
  std::set<std::string> labelled_;
  std::map<std::string, SessionCounts> seen_;  // of those without a label, at the last look
  SessionCounts others_;
};

}  // namespace sluice::metrics
