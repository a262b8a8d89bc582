// When a sender makes repair symbols before it is asked for any, how many, and by which code: `auto`.
//
// Pure. In steady state a bulk transfer gains nothing from coding: a lost chunk is repaired beside new data,
// and what a code sends ahead is sent in vain where nothing is lost (M. Ghaderi and D. Towsley, arXiv
// 1307.7164, for the throughput of both; P. Michel et al., QUIC-FEC, arXiv 1904.11326, for what fixed parity
// costs). So repair symbols are sent ahead only where waiting for a repair costs time:
//
//   at the end, when nothing else is left to be sent: what was lost would be repaired a round trip later; on
//   a path whose losses keep more extents open than there is memory for: the sender would stand still; on a
//   channel that loses a fifth and more: there a repair is lost as well, again and again.
//
// What it costs to send ahead is compared with what is waited for otherwise, both in time. At the end repair
// symbols come behind all that is new. So they delay nothing of their own file, and the sender knows all that
// the path has told until then.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dataplane/coding/block_code.h"

namespace sluice::coding {

// What the sender knows of its path. Shares are 0 to 1.
struct PathState {
  uint64_t rate_bps = 0;     // what the flow may send, on the wire
  uint64_t rtt_ns = 0;       // 0: not known yet
  double loss = 0;           // of datagrams, as far as it is known or to be expected
  double loss_run_mean = 1;  // datagrams that are lost one behind the other, on the average; 1: single ones
};

// What is to be sent over it.
struct WorkState {
  uint64_t memory_bytes = 0;  // of extents that may be open at once: what the peer grants, or what is here
  uint32_t chunk_bytes = 0;
  uint32_t extent_bytes = 0;
};

// What this build and the peer can do.
struct CodesAtHand {
  bool reed_solomon = false;
  bool raptorq = false;
};

enum class ParityUse : uint8_t {
  kNone,   // repair symbols are not sent ahead
  kAtEnd,  // of the blocks that are left
  kForMemory,
  kForLoss,
  kWhereLost,  // of every block, since an operator wants it
};

struct ParityChoice {
  ParityUse use = ParityUse::kNone;
  Scheme scheme = Scheme::kReedSolomon;
  uint32_t repair_symbols = 0;  // of each block, behind its source symbols

  bool operator==(const ParityChoice&) const = default;
};

// Behind each extent, while more is to be sent.
ParityChoice choose_parity(const PathState& path, const WorkState& work, const CodesAtHand& codes);

// Of the extents that the peer may not have yet, when nothing else is left to be sent.
ParityChoice choose_parity_at_end(const PathState& path, const WorkState& work, const CodesAtHand& codes);

// Whether so much parity is worth it at the end.
struct EndState {
  uint64_t open_chunks = 0;    // of these extents
  uint64_t parity_chunks = 0;  // that would be sent for them
  uint32_t wire_bytes = 0;     // of a datagram with one
};
bool pays_at_end(const PathState& path, const EndState& end);

// What is sent ahead where an operator wants a code whatever it costs: as much as the path's loss calls for.
ParityChoice parity_where_lost(const PathState& path, const WorkState& work, const CodesAtHand& codes);

// The fewest repair symbols m with which K of the K + m symbols of a block arrive, but for a chance of
// `deviations` standard deviations: (K + m)(1 - p) - deviations * sqrt((K + m) p (1 - p) r) >= K. With few
// losses that is Kp + deviations * sqrt(Kp). `loss_run`: how many symbols of one block a burst takes on the
// average.
struct BlockLoss {
  uint32_t source_symbols = 0;
  double loss = 0;  // 0 to below 1
  double loss_run = 1;
};
uint32_t repair_symbols_for(const BlockLoss& block, double deviations, uint32_t repair_symbols_max);

}  // namespace sluice::coding
