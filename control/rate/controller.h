// What decides how fast a session may send: one interface, whatever the law behind it.
//
// Pure: (what the paths reported, now) -> bit/s. One instance per session, stepped about once a millisecond
// by the source's control. Fields are those that a status datagram carries (docs/WIRE.md 1.6), all lanes
// together; a law takes what it needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::rate {

struct PathReport {
  uint64_t sent = 0;            // chunks, retransmissions included; cumulative, as all that follow but one
  uint64_t lost = 0;            // of them learned as lost
  uint64_t bytes_received = 0;  // payload that the peer has accepted
  uint64_t credit_extents = 0;  // that the peer has granted, absolute
  uint64_t opened_extents = 0;  // of them used
  uint64_t last_peer_ns = 0;    // when the peer was last heard; 0: not yet
  // Levels: of the newest status of each lane.
  uint64_t rtt_ns = 0;      // the longest; 0: not known
  uint64_t rtt_min_ns = 0;  // the shortest ever; 0: not known
  // Receiver's clock minus sender's, of the data since the status before: only differences mean anything.
  int64_t delay_min_ns = 0;
  int64_t delay_max_ns = 0;
  bool delay_known = false;
};

// How it goes, for an operator; a change of it is worth a line in the log.
enum class Condition : uint8_t {
  kRamping,   // towards the rate, at the beginning
  kRunning,   // at the rate
  kYielding,  // below it, because of loss
  kCrawling,  // the peer is silent
  kStopped,   // the peer has been silent for long
};
std::string_view condition_name(Condition condition);

class Controller {
 public:
  virtual ~Controller() = default;
  virtual uint64_t step(const PathReport& report, uint64_t now_ns) = 0;  // the rate from now on, bit/s
  virtual Condition condition() const = 0;
  virtual uint64_t rate_bps() const = 0;
  // Never above this, bit/s: what was agreed upon.
  virtual uint64_t cap_bps() const = 0;
};

}  // namespace sluice::rate
