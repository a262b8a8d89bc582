// SPDX-License-Identifier: Apache-2.0
#include "control/leg/handshake_phase.h"

namespace sluice::transfer {

const HandshakeWait& handshake_wait(HandshakePhase phase) {
  using P = HandshakePhase;
  // Every wait of a handshake, in the order of the phases.
  static constexpr HandshakeWait kWaits[] = {
      {P::kIdle, "", WaitLimit::kNone, ""},
      {P::kFlows, "flow slots", WaitLimit::kNone, ""},
      {P::kCredit, "extent buffers", WaitLimit::kNone, ""},
      {P::kCalling, "a connection to the peer", WaitLimit::kNone, ""},
      {P::kHello, "peer's hello", WaitLimit::kStall, "Hello"},
      {P::kSpecification, "peer's specification", WaitLimit::kStall, "Specification"},
      {P::kAnswer, "peer's extent buffers", WaitLimit::kNone, "SpecificationSet"},
      {P::kRequest, "peer's transfer request", WaitLimit::kStall, "TransferRequest"},
      {P::kSources, "opening files", WaitLimit::kNone, ""},
      {P::kReadBuffers, "extent buffers", WaitLimit::kNone, ""},
      {P::kReady, "peer's files", WaitLimit::kNone, "TransferReady"},
      {P::kOffer, "peer's files", WaitLimit::kNone, "TransferOffer"},
      {P::kFiles, "creating files", WaitLimit::kNone, ""},
      {P::kJournal, "journal", WaitLimit::kNone, ""},
      {P::kOpening, "sluice-dataplane (opening flows)", WaitLimit::kOpen, ""},
      {P::kDone, "", WaitLimit::kNone, ""},
      {P::kSettled, "", WaitLimit::kNone, ""},
  };
  return kWaits[static_cast<size_t>(phase)];
}

bool allowed(HandshakePhase from, HandshakePhase to) {
  using P = HandshakePhase;
  switch (to) {
    case P::kIdle:
      return true;  // an attempt may end at any point
    case P::kFlows:
      return from == P::kIdle || from == P::kSpecification;
    case P::kCredit:
      return from == P::kFlows;
    case P::kCalling:
      return from == P::kFlows || from == P::kCredit;
    case P::kHello:
      return from == P::kCalling;
    case P::kSpecification:
      return from == P::kIdle;
    case P::kAnswer:
      return from == P::kHello;
    case P::kRequest:
      return from == P::kFlows;
    case P::kSources:
      return from == P::kAnswer || from == P::kRequest || from == P::kHello || from == P::kIdle;
    case P::kReadBuffers:
      return from == P::kSources;
    case P::kReady:
      return from == P::kReadBuffers;
    case P::kOffer:
      return from == P::kAnswer || from == P::kCredit;
    case P::kFiles:
      return from == P::kOffer;
    case P::kJournal:
      return from == P::kReady || from == P::kFiles;
    case P::kOpening:
      return from == P::kJournal;
    case P::kDone:
      return from == P::kOpening;
    case P::kSettled:
      return from == P::kHello || from == P::kSources || from == P::kIdle;
  }
  return false;
}

}  // namespace sluice::transfer
