// Figures of a session: what its flows counted, how fast it goes, what it waits for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "control/rate/controller.h"
#include "dataplane/board/board.h"
#include "dataplane/core/wire.h"

namespace sluice::board {

// What kept a sender from sending although there was more to send, and for how long.
struct Blocked {
  uint64_t credit_ns = 0;
  uint64_t source_ns = 0;
  uint64_t memory_ns = 0;  // all buffers held what was on its way
  uint64_t pacing_ns = 0;  // it may go no faster

  // What is on its way holds all that the sender may use, here or there.
  uint64_t holding_ns() const { return credit_ns + memory_ns; }
  Blocked since(const Blocked& before) const;
  void add(const Blocked& other);
};

struct Extents {
  uint64_t done = 0;
  uint64_t wanted = 0;  // of credit, for the path to be full
};

// Of the data, as the newest status of each lane says.
struct OneWayDelays {
  bool known = false;
  int64_t min_ns = 0;      // the least of all
  uint64_t spread_ns = 0;  // the widest of a lane
  void add(const OneWayDelays& other);
};

// What erasure codes did.
struct ParityFigures {
  uint64_t symbols = 0;         // repair symbols that were sent, or that came
  uint64_t decoded_chunks = 0;  // of the chunks that came, those that repair symbols replaced
};

// Datagrams of a probe that the peer reflects, at the node that sends them; at the other one `sent` were
// reflected.
struct EchoFigures {
  uint64_t sent = 0;
  uint64_t came = 0;
  uint64_t wrong = 0;        // of these with another payload than was sent
  uint64_t wrong_bytes = 0;  // in these
  uint64_t copies = 0;       // that came once more
  bool over = false;         // none is sent or awaited any more
  void add(const EchoFigures& other);
};

// Extents that travelled compressed: what they hold, and what they were on the wire.
struct CompressionFigures {
  uint64_t bytes = 0;
  uint64_t wire_bytes = 0;
  uint64_t saved_bytes() const { return bytes - std::min(bytes, wire_bytes); }
};

// A flow counts its datagrams that carry no chunks, and what travels compressed.
struct ExtraFigures {
  CompressionFigures compression;
  ParityFigures parity;
  EchoFigures echoes;
};

// The sum over a session's flows of what the board says.
struct FlowFigures {
  uint64_t chunks = 0;
  uint64_t bytes = 0;
  uint64_t retransmitted_chunks = 0;  // for gaps and for NEED
  uint64_t duplicate_chunks = 0;
  uint64_t late_chunks = 0;
  uint64_t crc_errors = 0;    // datagrams dropped at the destination because they were damaged
  uint64_t no_room = 0;       // chunks dropped at the destination for want of a buffer
  uint64_t network_lost = 0;  // datagrams that left and never came
  uint64_t bytes_done = 0;
  uint64_t rtt_ns = 0;        // the longest
  uint64_t last_peer_ns = 0;  // the latest
  Blocked blocked;
  Extents extents;
  uint64_t credit_extents = 0;
  uint64_t opened_extents = 0;
  uint64_t rtt_min_ns = 0;  // the shortest
  uint64_t peer_bytes_received = 0;
  uint64_t peer_received_end = 0;
  uint64_t peer_datagrams = 0;
  uint64_t peer_advice_bps = 0;
  uint64_t statuses = 0;
  OneWayDelays delays;
  uint64_t unreachable_since_ns = 0;  // the next hop of a flow does not answer; 0: all do
  uint8_t next_hop[16] = {};          // and which one that is; all zero: there is no route
  ExtraFigures extra;

  // A source counts here the datagrams that have a tx_seq.
  uint64_t sent() const { return chunks + retransmitted_chunks + extra.parity.symbols; }
  // As `bytes`, of what lies in files: what travels compressed counts there with what it holds, when all of
  // its extent has been sent, or restored.
  uint64_t plain_bytes() const { return bytes + extra.compression.saved_bytes(); }
  void add(const FlowState& state);
  void add(const FlowFigures& other);
  rate::PathReport report() const;  // what a rate controller is told
};

// Bytes over the last second.
class RateMeter {
 public:
  void sample(uint64_t bytes, uint64_t now_ns);
  // Nothing before the first bytes have come, or a second has passed without any.
  std::optional<double> rate_bps() const;

 private:
  struct Sample {
    uint64_t time_ns = 0;
    uint64_t bytes = 0;
  };
  std::deque<Sample> samples_;
};

// The next hop that does not answer, if there is one; empty when all do.
std::string neighbour_wait(const FlowFigures& now, uint64_t now_ns);

// Which node has too little memory for the path, judged by two readings; empty when none has.
std::string memory_wait(const FlowFigures& before, const FlowFigures& now, uint64_t interval_ns);

// What holds a sender up, judged by two readings; empty when nothing does.
std::string sender_wait(const FlowFigures& before, const FlowFigures& now, uint64_t interval_ns,
                        uint64_t now_ns);

std::string digest_hex(wire::CrcKind kind,
                       uint64_t digest);  // 16 digits, or 8; empty for kinds that check nothing

}  // namespace sluice::board
