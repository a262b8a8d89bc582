// When to ask the source for bytes by position (NEED), for one object.
//
// Pure. Ranges whose first pass left the source are remembered with their flow. When some extent of them is
// missing and no extent of the object was completed for a while, the workers are asked which bytes are
// missing. Each round without progress waits longer than the one before. On a slow path an extent takes
// longer than that while: as long as bytes come, the wait is as long as some extents take there. What the
// source is sending again anyway would otherwise be sent twice. What is remembered lies in the object.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "control/recovery/extent_map.h"
#include "control/recovery/flow_ref.h"
#include "dataplane/base/number.h"

namespace sluice::recovery {

struct Query {
  FlowRef flow;
  Range range;
};

// Bytes that flows accept, whatever they belong to.
struct Arrivals {
  uint64_t last_ns = 0;           // when some came
  uint64_t best_bytes_per_s = 0;  // so far; 0: not known
};

class NeedPlanner {
 public:
  static constexpr uint64_t kQuietNs = 200'000'000;  // long, since a receiver does not know the round trip
  static constexpr uint64_t kQuietMaxNs = 5'000'000'000;
  static constexpr uint64_t kQuietExtents = 4;
  static constexpr size_t kQueriesMax = 16;
  static constexpr size_t kRangesMax = 1024;  // of one NEED message
  static constexpr size_t kSentRangesMax = 65536;

  // The first pass of this range left the source on `flow`. False when that cannot be.
  bool note_sent(const ExtentMap& done, FlowRef flow, Range range, uint64_t now_ns);
  // Any byte of the object may have been sent, by what the source reported to a control that is gone.
  void note_all_maybe_sent(uint64_t now_ns);
  void note_progress(uint64_t now_ns);  // an extent was completed
  // The flows of a leg have ended. Its source gives what did not arrive to others, and reports that anew.
  void drop(LegId leg);

  // The questions of a new round, which counts as asked then; none when it is not the time.
  std::vector<Query> take_due(const ExtentMap& done, uint64_t now_ns, const Arrivals& arrivals = {});
  // The flow that carried the byte at `offset`; FlowRef() when that is unknown.
  FlowRef flow_of(uint64_t offset) const;
  void check_invariants(const ExtentMap& done, std::span<const FlowRef> flows) const;  // where DCHECKs are on

 private:
  struct Sent {
    uint64_t end = 0;
    FlowRef flow;
  };
  using SentRanges = std::map<uint64_t, Sent>;  // by offset

  static Range range_of(const SentRanges::value_type& sent);
  void prune(const ExtentMap& done);
  bool quiet(const ExtentMap& done, uint64_t now_ns, const Arrivals& arrivals) const;

  SentRanges sent_;       // without those that are complete
  bool unknown_ = false;  // any byte may have been sent
  uint64_t quiet_since_ns_ = 0;
  uint64_t wait_ns_ = kQuietNs;
};

}  // namespace sluice::recovery
