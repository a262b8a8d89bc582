// The phases of a handshake: in which order they come, what each waits for, and for how long.
//
// Pure tables.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace sluice::transfer {

// What is being waited for. Each phase has a name for the operator, and a limit unless the peer itself waits
// there for something that may take its time; then the stream's heartbeats are the limit.
enum class HandshakePhase : uint8_t {
  kIdle,
  kFlows,          // slots of this node
  kCredit,         // a destination's extent buffers
  kCalling,        // initiator
  kHello,          // initiator
  kSpecification,  // the other node
  kAnswer,         // initiator: SpecificationSet
  kRequest,        // a source that was called: which files?
  kSources,        // opened, or opened again
  kReadBuffers,    // a source's extent buffers
  kReady,          // a source: TransferReady
  kOffer,          // a destination
  kFiles,          // a destination's, created or found again
  kJournal,        // is told what was agreed upon; flows are opened meanwhile
  kOpening,        // flows that are not open yet
  kDone,
  kSettled,  // the session has ended at the other node, which will say how
};
bool allowed(HandshakePhase from, HandshakePhase to);

enum class WaitLimit : uint8_t {
  kNone,   // the peer's heartbeats, or this node's own work, are the limit
  kStall,  // stall_timeout_s of the node
  kOpen,   // what a dataplane may take to open flows
};

struct HandshakeWait {
  HandshakePhase phase;
  std::string_view name;  // for the operator; empty: there is nothing to say
  WaitLimit limit;
  std::string_view message;  // that ends it, if one does
};
const HandshakeWait& handshake_wait(HandshakePhase phase);

}  // namespace sluice::transfer
