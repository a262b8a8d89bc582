// How an attempt comes to open flows (docs/WIRE.md 2.1). The nodes agree on what both can do and on the
// files, and each reserves what these need. The two steps follow MCDTP, section 3.1.1: first specification,
// then transfer.
//
// Legs to several peers that have the same data make theirs side by side, since each step takes a round trip.
// A leg waits for its turn twice (siblings.h). First until it has its flows: all legs share a session's slot
// of the board, which the first one takes. Then with what concerns all legs: the first offer of files, or the
// word that the session has ended. What it agreed upon with its peer until then is compared with what others
// agreed upon in its turn. Whichever peer offers first is the first.
//
// Pure. Messages that come before their turn wait. An error that a function returns ends the attempt.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <string>

#include "control/leg/control_stream.h"
#include "control/leg/handshake_phase.h"
#include "control/leg/job.h"
#include "control/leg/lanes.h"
#include "control/leg/negotiation.h"
#include "control/words/pending.h"

namespace sluice::transfer {

class Handshake {
 public:
  static constexpr size_t kInboxBytesMax = 8U << 20;
  static constexpr uint64_t kOpenTimeoutNs = 5 * kSecondNs;
  // Of a message that a call carries: before the Hellos a peer takes 64 KiB.
  static constexpr size_t kCarriedBytesMax = 32U << 10;

  // What it works upon; all of it outlives it.
  struct Around {
    const ThisNode& settings;
    const std::string& peer_name;
    uint32_t number = 0;  // of the leg, of those to this peer
    Job& job;
    ControlStream& stream;
    LaneSet& lanes;
    Agreement& agreement;
  };
  Handshake(LegId leg, Around around) : leg_(leg), around_(around) {}

  // The Hello of this leg, before flows have numbers.
  Hello first_word() const;
  // The initiator calls; the other node has been called, and has taken the call.
  Status call(const Dataplane& dataplane, uint64_t now_ns, Effects& out);
  Status answer_call(const Dataplane& dataplane, uint64_t now_ns, Effects& out);
  // The peer says, on a stream that is open, that the session has ended there.
  void hear_of_end(uint64_t now_ns, Effects& out);
  // The attempt ends: what is under way ends, and nothing new is begun.
  void halt() { halted_ = true; }
  void end();

  Status on_message(Message message, uint64_t now_ns, Effects& out);
  Status on(const FlowsReserved& event, uint64_t now_ns, Effects& out);
  Status on(const BuffersReserved& event, uint64_t now_ns, Effects& out);
  Status on(const SourcesOpened& event, uint64_t now_ns, Effects& out);
  // Workers open the flows while the journal takes what take_agreed() told of.
  void open_flows(Effects& out);
  void journal_agreed(uint64_t now_ns);                                // it has taken that
  Status stream_open(uint64_t rtt_ns, uint64_t now_ns, Effects& out);  // the call was taken
  // Goes on if what it waited for has happened: flows are open, files are prepared, or time is over.
  Status go_on(uint64_t now_ns, Effects& out);

  HandshakePhase phase() const { return phase_; }
  bool done() const { return phase_ == HandshakePhase::kDone || phase_ == HandshakePhase::kSettled; }
  bool settled() const { return phase_ == HandshakePhase::kSettled; }
  bool settling() const { return settling_; }
  bool apart() const { return apart_; }  // nothing it does concerns another leg
  bool waits_for_turn() const { return apart_ && !inbox_.empty(); }
  bool contacted() const { return contacted_; }  // the peer has said hello
  // The source never came to know what was agreed upon: no data was sent, and its list will be another.
  bool peer_forgot() const { return peer_forgot_; }
  // The peer says that it fails. Until this node has begun, a stall may only mean that it waits for the data
  // of an offer that the call brought: no failure of the session, which calls again and brings none.
  Error meant_by(Error failure) const;
  bool queued() const;  // for something of this node
  std::string waiting_for() const;
  uint64_t due_ns() const;
  // Effects that were asked for and are not answered.
  uint32_t pending() const { return pending_.count(); }
  std::deque<Message> take_inbox() {
    inbox_bytes_ = 0;
    return std::exchange(inbox_, {});
  }
  // Files were agreed upon, and the journal must know before data moves.
  bool take_agreed() { return std::exchange(agreed_, false); }
  // What the peer has sent to this node of late; 0: not known.
  uint64_t expected_bps(uint64_t now_ns) const;

 private:
  using P = HandshakePhase;
  void enter(HandshakePhase phase, uint64_t now_ns);
  Status read_inbox(uint64_t now_ns, Effects& out);
  Status handle(Message message, uint64_t now_ns, Effects& out);
  TransferRequest wanted() const;
  std::optional<TransferOffer> take_offer_ahead();
  Status call_now(uint64_t now_ns, Effects& out);
  Status specify(uint64_t now_ns);
  Status hello(const Hello& hello, uint64_t now_ns, Effects& out);
  Status specification(const Specification& specification, uint64_t now_ns, Effects& out);
  Status answer_specification(uint64_t now_ns, Effects& out);
  bool forgets_with_peer() const;
  Status take_answer(const SpecificationSet& set, uint64_t now_ns, Effects& out);
  bool takes_turn(const Message& message, uint64_t now_ns);
  Status join_terms(Agreement agreement);
  void tell_fec(const Agreement& agreement, Effects& out) const;
  Status agree_upon(const Specification& specification, const SpecificationSet& set, uint64_t now_ns,
                    Effects& out);
  void reserve(uint32_t lanes, bool may_wait, uint64_t now_ns, Effects& out);
  Status reserved(uint64_t now_ns, Effects& out);  // flows, and credit where that comes first
  Status find_sources(const std::vector<std::string>& paths, const selection::Selection& selection,
                      uint64_t now_ns, Effects& out);
  Status make_source(const std::vector<catalog::File>& files);
  Status list_whole(Effects& out);
  Status offer(Effects& out);
  void settle(uint64_t now_ns, Effects& out);
  void start(uint64_t now_ns, Effects& out);
  void make_destination();
  void await_offer(uint64_t now_ns, Effects& out);
  Status take_offer(const TransferOffer& offer, uint64_t now_ns, Effects& out);
  Abilities abilities(uint64_t now_ns) const;

  const LegId leg_;
  const Around around_;
  Phase<HandshakePhase> phase_{HandshakePhase::kIdle};
  Dataplane dataplane_;
  Specification specification_;  // the initiator's
  std::deque<Message> inbox_;
  size_t inbox_bytes_ = 0;
  uint64_t entered_ns_ = 0;  // the phase
  uint64_t rtt_ns_ = 0;      // the initiator's, of its call
  Pending pending_;
  bool contacted_ = false;
  bool specified_ = false;                // the call carried the specification
  bool requested_ = false;                // and what is wanted
  std::optional<TransferOffer> offered_;  // and what this node has
  bool peer_forgot_ = false;
  bool agreed_ = false;
  bool settling_ = false;  // towards kSettled
  bool halted_ = false;
  bool apart_ = false;
  std::optional<Agreement> agreed_apart_;  // until its turn
  Reflecting::Place reflects_;             // of a probe, at the node that reflects it
  bool wished_freely_ = false;             // when nobody had agreed upon how the data is cut and checked
};

}  // namespace sluice::transfer
