// What decides how fast a session may send: one interface, whatever the law behind it.
//
// Pure: (what the paths reported, now) -> bit/s. One instance per session, stepped about once a millisecond
// by the source's control. Fields are those that a status datagram carries (docs/WIRE.md 1.6), all lanes
// together; a law takes what it needs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

namespace sluice::rate {

struct PathReport {
  uint64_t sent = 0;  // chunks, retransmissions included; cumulative, as all that follow but one
  // What the peer says of the datagrams that left. Differences of these two tell of loss on the network
  // however many statuses are lost; what is only late counts as missing until it comes.
  uint64_t received_end = 0;    // 1 + highest tx_seq that came
  uint64_t received = 0;        // that came, whatever became of them
  uint64_t lost = 0;            // lost on the network: what is missing, clamped so that it only grows
  uint64_t no_room = 0;         // came, and were dropped for want of a buffer: the peer's disk is slow
  uint64_t crc_errors = 0;      // came damaged: neither received nor lost
  uint64_t statuses = 0;        // of the peer that came
  uint64_t bytes_received = 0;  // payload that the peer has accepted
  uint64_t credit_extents = 0;  // that the peer has granted, absolute
  uint64_t opened_extents = 0;  // of them used
  uint64_t last_peer_ns = 0;    // when the peer was last heard; 0: not yet
  // Levels: of the newest status of each lane.
  uint64_t advice_bps = 0;  // what the peer's disk keeps up with, of all lanes together; 0: no advice
  uint64_t rtt_ns = 0;      // the longest; 0: not known
  uint64_t rtt_min_ns = 0;  // the shortest ever; 0: not known
  // Receiver's clock minus sender's, of the data since the status before: only differences mean anything.
  int64_t delay_min_ns = 0;
  uint64_t delay_spread_ns = 0;  // between the least and the longest
  bool delay_known = false;
  uint32_t datagram_bytes = 0;  // on the wire, of a chunk and all that goes with it; on average
};

// How it goes, for an operator; a change of it is worth a line in the log.
enum class Condition : uint8_t {
  kRamping,           // towards the rate, at the beginning
  kRunning,           // at the rate
  kYielding,          // below it, because of loss
  kYieldingToOthers,  // below it, because others fill the path's queue
  kCrawling,          // the peer is silent
  kStopped,           // the peer has been silent for long
};
std::string_view condition_name(Condition condition);

class Controller {
 public:
  virtual ~Controller() = default;
  virtual uint64_t step(const PathReport& report, uint64_t now_ns) = 0;  // the rate from now on, bit/s
  Condition condition() const { return condition_; }
  uint64_t rate_bps() const { return rate_bps_; }
  // Never above this, bit/s: what was agreed upon, or set since.
  uint64_t cap_bps() const { return cap_bps_; }
  void set_cap(uint64_t cap_bps) {
    cap_bps_ = cap_bps;
    rate_bps_ = std::min(rate_bps_, cap_bps);
  }

 protected:
  Controller(uint64_t cap_bps, uint64_t rate_bps) : cap_bps_(cap_bps), rate_bps_(rate_bps) {}

  uint64_t cap_bps_;
  uint64_t rate_bps_;
  Condition condition_ = Condition::kRamping;
};

}  // namespace sluice::rate
