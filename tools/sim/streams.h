// The control connections between the nodes.
//
// Pure. A connection is ordered and reliable while it lives; cut, it loses what is on its way, and its ends
// learn of it later. A process that dies takes its connections with it; a machine that dies says nothing at
// all.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "control/words/flow_secret.h"
#include "control/words/messages.h"
#include "tools/sim/plan.h"
#include "tools/sim/random.h"
#include "tools/sim/scheduler.h"
#include "tools/sim/trace.h"

namespace sluice::sim {

class Streams {
 public:
  using Id = uint64_t;
  struct Ends {
    std::function<bool(uint32_t node)> alive;
    std::function<bool(uint32_t node)> serves;  // with its dataplane
    // Where it failed: `said` tells whether the other node may have heard its words.
    std::function<void(uint32_t node, Id id, bool open, bool said)> call_ended;
    std::function<void(uint32_t node, Id id, const transfer::Message& message)> message;
    std::function<void(uint32_t node, Id id)> ended;
  };
  Streams(const Plan& plan, Scheduler& scheduler, Trace& trace, Ends ends);

  // call_ended() comes later: when the other node has said that it takes the call. `words` have been on their
  // way for a round trip by then.
  Id call(uint32_t node, uint32_t to, std::vector<transfer::Message> words);
  uint64_t rtt_ns(Id id) const;  // at the least
  uint32_t caller(Id id) const;  // of a connection that is there
  bool said(Id id) const;        // the words of that call may have been heard
  void send(uint32_t node, Id id, transfer::Message message);
  void hang_up(uint32_t node, Id id);  // what was sent still arrives
  void cut();                          // all of them: both ends learn of it after a while
  void died(uint32_t node, bool silently);
  void started(uint32_t /*node*/) { disturbed_ns_ = scheduler_.now_ns(); }
  // The last time when something happened for which a connection may be missing: both nodes serve since then.
  uint64_t disturbed_ns(uint32_t one, uint32_t other) const {
    return ends_.serves(one) && ends_.serves(other) ? disturbed_ns_ : UINT64_MAX;
  }
  void heal() { healed_ = true; }
  // What both ends of a connection have, and of each other connection another one; nothing once this end is
  // over.
  std::optional<transfer::FlowSecret> export_secret(uint32_t node, Id id,
                                                    std::span<const uint8_t> context) const;
  uint64_t cuts() const { return cuts_; }

 private:
  struct Connection {
    uint32_t caller = 0;
    uint32_t called = 0;
    bool cut = false;
    bool said = false;                             // the caller's first words
    bool taken = false;                            // and the caller knows that it is
    std::array<bool, kNodesMax> open{};            // as that node sees it
    std::array<uint64_t, kNodesMax> arrives_ns{};  // its last message
    uint32_t other(uint32_t node) const { return node == caller ? called : caller; }
  };
  uint64_t far_ns(uint32_t one, uint32_t other) const;  // without jitter
  uint64_t latency_ns(uint32_t one, uint32_t other);
  void end(uint32_t node, Id id);
  void take(uint32_t caller, Id id);
  void miss(uint32_t caller, Id id, uint64_t until_ns);

  const Plan& plan_;
  Scheduler& scheduler_;
  Trace& trace_;
  Ends ends_;
  Random random_;
  std::map<Id, Connection> connections_;
  Id next_ = 1;
  uint64_t cuts_ = 0;
  uint64_t disturbed_ns_ = 0;
  bool healed_ = false;
};

}  // namespace sluice::sim
