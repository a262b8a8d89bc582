// Whether the path to the peer carries the chunks of an attempt, and what is done if it does not.
//
// Pure. Each lane is watched by itself, since lanes may take different paths. A lane whose long datagrams do
// not arrive has its worker send probes, one lane at a time; what they show ends the attempt and is
// remembered for the node (rate::PathSizes), so that the next attempt offers chunks that are carried.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "control/rate/path_size.h"
#include "control/words/effects.h"
#include "control/words/events.h"

namespace sluice::transfer {

class PathWatch {
 public:
  void begin(std::string peer_name, const Agreement& agreement, size_t lanes, const rate::PathSizes& sizes,
             uint64_t now_ns);
  // kStalled when the path does not carry what is sent, or shorter chunks bring more: they are next.
  Status step(const Tick& event, rate::PathSizes& sizes, uint64_t now_ns, Effects& out);
  // The lane whose probes wait to be sent: it is to have the rate of all lanes. Where all is lost the law
  // leaves so little that its own share would send them more slowly than the peer waits.
  std::optional<LaneId> sending(uint64_t now_ns) const;
  uint32_t datagram_bytes() const { return datagram_bytes_; }  // of a whole chunk, on an Ethernet wire

 private:
  std::optional<LaneId> searching() const;
  Status measure(const Tick& event, rate::PathSizes& sizes, uint64_t now_ns, Effects& out);
  Status shorter(uint32_t chunk_bytes, rate::PathSizes& sizes, uint64_t now_ns) const;

  std::string peer_name_;
  bool ip4_ = false;
  uint32_t chunk_bytes_ = 0;
  uint32_t datagram_bytes_ = 0;
  Indexed<LaneId, rate::SizeSearch> searches_;
  std::optional<rate::SizeMeasure> measure_;  // under way
};

}  // namespace sluice::transfer
