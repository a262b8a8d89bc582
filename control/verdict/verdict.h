// What holds a session where it is, with the evidence.
//
// Pure: differences of counters over an interval, and the limits that were in force, -> a cause, how much of
// the time it held things up, and lines that say by what that is seen. It judges at the source, which sees
// what it waits for; a destination tells what only it can know, and hears the verdict (docs/WIRE.md,
// "Heartbeat").
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/board/figures.h"
#include "control/board/worker_figures.h"
#include "control/rate/controller.h"

namespace sluice::verdict {

// As on the wire.
enum class Cause : uint8_t {
  kNone,             // nothing did, or nobody can say
  kSourceDisk,       // reading
  kSenderCpu,        // a worker of the source had no time left
  kSenderMemory,     // its buffers hold what is on its way: too few for the path
  kLimit,            // a rate that somebody set, or the law that still feels its way
  kNetwork,          // loss, or a queue on the path
  kReceiverRing,     // it overflows, though its worker had time
  kReceiverCpu,      // a worker of the destination had no time left
  kDestinationDisk,  // writing
  kCredit,           // the destination's memory: its window is smaller than the path
};
inline constexpr std::array<std::string_view, 10> kCauseNames = {
    "none",    "source disk",   "sender CPU",   "sender memory",    "limit",
    "network", "receiver ring", "receiver CPU", "destination disk", "credit"};
std::string_view cause_name(Cause cause);
// kNone for a number that is none.
Cause cause_of(uint64_t number);

inline constexpr size_t kEvidenceMax = 4;  // lines of a verdict

struct Verdict {
  Cause cause = Cause::kNone;
  double share = 0;  // of the time, 0 to 1
  std::vector<std::string> evidence;
};

// Who set the rate that a session may have at most.
enum class LimitOf : uint8_t { kAgreed, kOperator, kPeer };

// An interval at the source.
struct Sight {
  uint64_t interval_ns = 0;
  uint32_t lanes = 1;
  board::Blocked blocked;  // of all lanes, added up
  uint64_t sent = 0;       // chunks, those sent again included
  uint64_t lost = 0;       // of them on the network
  uint64_t no_room = 0;    // of them at the destination, for want of a buffer
  uint64_t refused = 0;    // bursts that the source's device took only in part
  bool all_sent = false;   // it waits for the destination to finish
  // Levels
  struct Window {
    uint64_t granted = 0;  // extents that may be on their way
    uint64_t used = 0;
    uint64_t wanted = 0;  // for the path to be full, twice
  } window;
  struct Rate {
    uint64_t now_bps = 0;
    uint64_t cap_bps = 0;
    LimitOf cap_of = LimitOf::kAgreed;
    uint64_t advice_bps = 0;  // what the destination's disk kept up with; 0: no advice
    rate::Condition condition = rate::Condition::kRunning;
  } rate;
  uint64_t rtt_ns = 0;
  uint64_t rtt_min_ns = 0;
  board::Load here;
  std::optional<board::Load> there;          // as the destination told it
  std::vector<std::string> nothing_arrives;  // of all that was ever sent; the lines that say so
};
Verdict judge(const Sight& sight);

// What a destination sees by itself: its disk, its worker and its ring; whatever else it is it cannot know.
struct ReceiverSight {
  uint64_t came = 0;  // chunks
  uint64_t lost = 0;
  uint64_t no_room = 0;
  board::Load here;
};
Verdict judge(const ReceiverSight& sight);

}  // namespace sluice::verdict
