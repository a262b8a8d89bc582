// One peer of a transfer: attempts to move data with it, the stream beside them, and how each attempt ends.
//
// An attempt needs the dataplane of this node. It makes a handshake, or adopts the flows of an earlier life
// of this control, and moves data. Whatever happens, it ends its flows and gives back all that it took. While
// data moves the stream may be lost and is renewed. Between attempts the leg is idle: the transfer decides
// whether there is another (transfer.h).
//
// A transfer may have several legs. They share the data end (words/data_end.h): the first begins its attempt,
// others join, and the last closes it (siblings.h). A leg that ends while others go on leaves it, and may
// come back.
//
// Pure. Whatever is asked for is answered, and no attempt is over before that.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "control/leg/backoff.h"
#include "control/leg/early_speed.h"
#include "control/leg/handshake.h"
#include "control/leg/watch.h"

namespace sluice::transfer {

enum class LegPhase : uint8_t {
  kIdle,
  kDataplane,   // of this node
  kPeer,        // until it calls
  kForgetting,  // it knows nothing of what was agreed upon
  kHandshake,
  kAdopting,  // going on with the flows of an earlier life of this control
  kMoving,
  kFarewell,   // everything is done; the peer's last word
  kClosing,    // flows end, and what was under way
  kSettling,   // what they have brought becomes durable
  kReleasing,  // slots and buffers are given back
  kParting,    // the transfer has ended, and the peer is told
  kInquiring,  // between attempts: does the peer still know of the transfer?
};
bool allowed(LegPhase from, LegPhase to);

enum class LastWord : uint8_t { kNone, kFailure, kPause, kTurn };

// How an attempt ended.
struct AttemptEnd {
  std::optional<Error> error;
  bool paused = false;       // by an operator of this node
  bool peer_paused = false;  // by its operator, or because it is full:
  uint32_t place = 0;        // then the place in its queue
  uint32_t places = 0;       // of so many
  bool peer_failed = false;  // the error is its word
  bool peer_ended = false;   // the transfer has ended there, with this error or none
  bool peer_forgot = false;  // what was agreed upon: what is here is worth nothing
  bool contacted = false;    // the peer has said hello, or fell over before it could
  bool board_lost = false;
};

class Leg {
 public:
  static constexpr uint64_t kCloseTimeoutNs = 5 * kSecondNs;
  static constexpr uint64_t kAdoptTimeoutNs = 5 * kSecondNs;
  static constexpr uint64_t kFarewellNs = 5 * kSecondNs;
  // The last word of one source of several is awaited so long from when it was heard last. That holds up
  // nobody: the source is called again after that (part()).
  static constexpr uint64_t kFarewellQuietNs = 2 * kSecondNs;
  static constexpr uint64_t kInquireNs = 30 * kSecondNs;  // after which a peer that does not call is asked
  static constexpr uint64_t kInquireMaxNs = 300 * kSecondNs;  // then ever more rarely, down to this

  // `number`: of the legs to this peer, which one.
  Leg(LegId id, std::string peer_name, uint32_t number, const ThisNode& settings, Job& job);
  Leg(const Leg&) = delete;
  Leg& operator=(const Leg&) = delete;
  // From the journal. Flows that it names are claimed, if wanted.
  void restore(const LegRecord& record, bool claim, Effects& out);

  // ---- attempts ----
  void begin_attempt(uint64_t now_ns, Effects& out);
  void stop(Error error, LastWord word, uint64_t now_ns, Effects& out);
  bool goes_on() const { return phase_ != LegPhase::kIdle && phase_ < LegPhase::kClosing; }
  // Others go on without it for good: before stop().
  void leave_out(const std::string& why) { job_.legs.leave_out(id_, why); }
  const std::string& left_out() const { return job_.legs.left_out(id_); }
  // This control stops: the attempt ends, and its flows go on without it.
  void detach(uint64_t now_ns);
  // Tells the peer that the transfer has ended, again and again until the peer knows or `until_ns` has come.
  // `words` begin with a Hello.
  void part(std::vector<Message> words, uint64_t until_ns, uint64_t now_ns, Effects& out);
  // Between attempts, at the node that was called: from now on the peer should call. If it does not, the leg
  // asks whether the peer still knows the transfer. An answer that it has ended there waits as a call does.
  void expect_call(uint64_t now_ns);
  // Asks if that is due. `wanted`: nothing else is to be done. True: the question is under way.
  bool inquiring(bool wanted, uint64_t now_ns, Effects& out);
  void forgotten(uint64_t now_ns, Effects& out);  // take_forgetting() was done
  // While the journal takes what take_agreed() told of.
  void open_flows(Effects& out) { handshake_.open_flows(out); }
  void journal_agreed(uint64_t now_ns) { handshake_.journal_agreed(now_ns); }  // it has taken that
  void completion_noted(uint64_t now_ns, Effects& out);  // what take_completion() told of is in the journal
  // Goes on if what it waited for has happened, or time is over.
  void advance(uint64_t now_ns, Effects& out);

  // ---- what is told ----
  void on(const BoardAttached& event, uint64_t now_ns);
  void on(const BoardLost& event, uint64_t now_ns, Effects& out);
  void on(const FlowsClaimed& event, Effects& out);
  void on(const CallEnded& event, uint64_t now_ns, Effects& out);
  void on(const PeerCalled& event, uint64_t now_ns, Effects& out);
  void on(const PeerInquires&) { backoff_.hurry(); }
  void on(const CallLost&) { waiting_call_.reset(); }
  void on(const Received& event, uint64_t now_ns, Effects& out);
  void on(const StreamEnded& event, uint64_t now_ns, Effects& out);
  void on(const FlowsReserved& event, uint64_t now_ns, Effects& out);
  void on(const BuffersReserved& event, uint64_t now_ns, Effects& out);
  void on(const SourcesOpened& event, uint64_t now_ns, Effects& out);
  void on(const FlowEvent& event, uint64_t now_ns, Effects& out);
  void on(const EventsDrained& event, uint64_t now_ns, Effects& out);
  void on(const FlowsReleased& event);
  void on(const Tick& event, uint64_t now_ns, Effects& out);

  // ---- what the transfer asks ----
  bool idle() const { return phase_ == LegPhase::kIdle; }
  LegPhase phase() const { return phase_; }
  HandshakePhase handshake_phase() const { return handshake_.phase(); }
  std::optional<AttemptEnd> take_end() { return std::exchange(end_, std::nullopt); }
  bool take_agreed() { return handshake_.take_agreed(); }
  bool take_flows_changed() { return std::exchange(wants_.flows_changed, false); }
  // Everything stands at the peer. It must not hear that before this node's journal has it.
  bool take_completion() { return std::exchange(completion_, false); }
  bool take_forgetting() { return std::exchange(wants_.forget, false); }
  // What went wrong concerns all legs, not this one.
  std::optional<Error> take_failure() { return std::exchange(wants_.failure, std::nullopt); }
  // Its peer knows nothing of what was agreed upon: no other leg may go on.
  bool take_anew() { return std::exchange(wants_.anew, false); }
  bool take_parted() { return std::exchange(parting_.over, false); }
  bool peer_aware() const { return parting_.aware; }         // of the end: it has said so after the attempt
  double early_bps() const { return attempt_.early.bps(); }  // of its last attempt; 0: not known
  // That there is a transfer: it was told so in this attempt, whether or not it answered.
  bool peer_may_know() const { return handshake_.contacted() || attempt_.heard; }
  bool call_waits() const { return waiting_call_.has_value(); }
  bool told_of_end() const { return waiting_call_ && waiting_call_->hello.ended; }  // at the peer
  void refuse_call(Message word, uint64_t now_ns, Effects& out);
  Backoff& backoff() { return backoff_; }
  const Backoff& backoff() const { return backoff_; }
  // At its node an operator has to continue it, as it said when it was asked.
  bool take_peer_pauses() { return std::exchange(peer_pauses_, false); }
  uint32_t caller_share() const { return waiting_call_ ? waiting_call_->hello.share : 0; }
  LegId id() const { return id_; }
  uint32_t number() const { return number_; }                   // of the legs to this peer
  bool agreed() const { return agreement_.extent_bytes != 0; }  // with its peer, in any attempt
  const std::string& peer_name() const { return peer_name_; }
  const Agreement& agreement() const { return agreement_; }
  const LaneSet& lanes() const { return lanes_; }
  const ControlStream& stream() const { return stream_; }
  const Watch& watch() const { return watch_; }
  bool moving() const { return phase_ == LegPhase::kMoving || phase_ == LegPhase::kFarewell; }
  bool queued() const { return phase_ == LegPhase::kHandshake && handshake_.queued(); }
  std::string waiting_for() const;
  uint64_t due_ns() const;
  uint64_t inquiry_due_ns() const;  // between attempts
  LegRecord record(bool with_flows) const;
  bool claims_flows() const { return claim_ != Claim::kNone; }  // of an earlier life of this control
  bool attached() const { return dataplane_.has_value(); }
  const std::optional<Dataplane>& dataplane() const { return dataplane_; }

  void check_invariants() const;  // leg_checks.cc, where DCHECKs are on

 private:
  using P = LegPhase;
  enum class Claim : uint8_t { kNone, kAsked, kAdopted };
  struct WaitingCall {
    Hello hello;
    bool ours = false;  // on the stream by which this node asked
  };
  struct Parting {
    std::vector<Message> words;
    uint64_t until_ns = 0;
    bool over = false;
    // All has arrived, and the stream is there still: the peer's last word is awaited on it, through the end
    // of the attempt and beyond. 0: it is not.
    uint64_t awaited_until_ns = 0;
    bool aware = false;  // it has come
  };
  struct Attempt {
    std::optional<Error> error;
    bool paused = false;
    std::optional<Pause> peer_paused;
    bool told_of_end = false;  // by a Hello: what the peer says next is how it ended
    bool peer_ended = false;
    uint32_t failed_there = 0;  // objects, of a session that has ended there and not begun here
    bool heard = false;         // the peer may have heard this node's first words
    bool peer_failed = false;   // the error is the peer's word
    bool fell = false;          // the connection was lost before the handshake was over
    bool board_lost = false;
    bool detached = false;
    bool work_asked = false;  // adopting: the workers are asked
    bool released = false;
    bool completion_asked = false;
    bool last = false;  // it ends: so does the attempt of the data end
    EarlySpeed early = {};
  };

  void enter(LegPhase phase, uint64_t now_ns);
  Siblings::Stage stage() const;
  void judge(const Status& status, uint64_t now_ns, Effects& out);
  void judge_end(const Status& status, uint64_t now_ns, Effects& out);
  void end_failed(const Error& error, uint64_t now_ns, Effects& out);
  void close(uint64_t now_ns, Effects& out);
  bool step(uint64_t now_ns, Effects& out);  // true: the phase has changed
  void leave_dataplane(uint64_t now_ns, Effects& out);
  void adopt(uint64_t now_ns, Effects& out);
  void start_moving(uint64_t now_ns);
  void keep_moving(uint64_t now_ns, Effects& out);
  void keep_stream(uint64_t now_ns, Effects& out);
  void take_call(uint64_t now_ns, Effects& out);
  void hear(const Message& message, uint64_t now_ns, Effects& out);
  void deliver(const Message& message, uint64_t now_ns, Effects& out);
  void greet(const Hello& hello, uint64_t now_ns, Effects& out);
  void stream_renewed(uint64_t now_ns, Effects& out);
  void bid_farewell(uint64_t now_ns, Effects& out);
  void hear_last_word(const Message& message, uint64_t now_ns, Effects& out);
  uint64_t farewell_due_ns() const;
  void say_done(uint64_t now_ns, Effects& out);
  void finish_closing(uint64_t now_ns, Effects& out);
  void attempt_over(uint64_t now_ns, Effects& out);
  void keep_parting(uint64_t now_ns, Effects& out);
  void parted(uint64_t now_ns, Effects& out);
  // The node that began the transfer calls by itself, and hears the end then. So the other node calls it as
  // rarely as it inquires.
  Backoff& parting_waits() { return job_.initiator ? backoff_ : inquiries_; }
  const Backoff& parting_waits() const { return job_.initiator ? backoff_ : inquiries_; }
  Hello question() const;
  void hear_answer(const Message& message, uint64_t now_ns, Effects& out);
  void asked(uint64_t now_ns);
  Hello hello() const;
  DataEnd::Way way() {
    return {.peer_name = peer_name_, .stream = stream_, .agreement = agreement_, .lanes = lanes_.size()};
  }
  Error unreachable(std::string what) const;

  const LegId id_;
  const std::string peer_name_;
  const uint32_t number_;  // of the legs to this peer
  const ThisNode& settings_;
  Job& job_;
  ControlStream stream_;
  LaneSet lanes_;
  Agreement agreement_;
  Handshake handshake_;
  Watch watch_;
  Backoff backoff_;
  Backoff inquiries_;
  Phase<LegPhase> phase_{LegPhase::kIdle};
  std::optional<Dataplane> dataplane_;
  std::optional<WaitingCall> waiting_call_;
  Attempt attempt_;
  std::optional<AttemptEnd> end_;
  Claim claim_ = Claim::kNone;
  uint32_t work_tag_ = 0;
  uint64_t entered_ns_ = 0;  // the phase
  Parting parting_;
  bool forgetting_ = false;  // that was asked for, and is not done
  bool completion_ = false;
  bool peer_pauses_ = false;
  struct Wants {  // of the transfer, which takes each once
    bool flows_changed = false;
    bool forget = false;
    bool anew = false;
    std::optional<Error> failure = std::nullopt;
  } wants_;
};

}  // namespace sluice::transfer
