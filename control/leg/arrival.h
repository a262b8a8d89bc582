// Whether anything at all of a session's data comes to the destination: a firewall that drops UDP lets the
// two nodes agree on everything, and then nothing arrives.
//
// Pure. A source knows: its peer's statuses say how many datagrams came. A destination knows that it got
// none, and believes the source's verdict that some were sent.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/board/figures.h"

namespace sluice::transfer {

class Arrival {
 public:
  // Data may be in flight for so long before it is missed.
  static constexpr uint64_t kMissedNs = 2'000'000'000;

  struct Ends {
    std::string peer;
    std::vector<uint16_t> peer_ports;
    std::vector<uint16_t> own_ports;
  };
  void begin(Ends ends);
  void look_at_source(const board::FlowFigures& figures, uint64_t bytes_done, uint64_t now_ns);
  void look_at_destination(const board::FlowFigures& figures, bool source_blames_network, uint64_t now_ns);

  // What the session waits for; empty: data arrive, or are not missed yet.
  std::string waiting_for() const;
  // At a source: the evidence for a verdict that nothing arrives. Empty: data arrive, or are not missed yet.
  std::vector<std::string> evidence() const;

 private:
  void look(bool missed, uint64_t now_ns);

  Ends ends_;
  bool receives_ = false;
  uint64_t sent_ = 0;  // datagrams
  bool answered_ = false;
  uint64_t since_ns_ = 0;
  bool none_ = false;
};

// Whether the peer of a source says that something came, or has something.
bool any_arrived(const board::FlowFigures& figures, uint64_t bytes_done);

}  // namespace sluice::transfer
