// One transfer at one node: what an operator asked for, until it is done, given up or cancelled.
//
// Pure: `step` takes an event and the time and answers with effects. It is what sluice-control runs
// (control/runtime performs its effects on sockets, files and the board) and what the simulator runs
// (tools/sim performs them in its virtual world); there is no other. A transfer has one leg or several, and
// one data end that all legs share. It is under way while one of them is (leg.h); between them it rests, is
// paused, or ends. What it must not forget is in the journal before anything builds on it.
//
// One thread. The caller steps it with every event, with TimerDue at due_ns(), and performs the effects in
// order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/leg/job.h"
#include "control/leg/leg.h"
#include "control/source/offer.h"
#include "control/transfer/pace.h"
#include "control/transfer/view.h"
#include "control/words/events.h"

namespace sluice::transfer {

enum class TransferPhase : uint8_t {
  kNew,
  kNoting,      // the journal is told what was asked for
  kRecovering,  // after a restart, a pause, or a rest without its files: what is there of them?
  kQueued,      // until it has a place of this node
  kActive,      // an attempt is under way
  kResting,     // between two attempts
  kForgetting,  // nothing was moved: files go, the next attempt begins with a handshake
  kPaused,      // until an operator continues it
  kEnding,      // the journal is told how
  kReleasing,   // unfinished files are removed
  kCleaning,    // the journal is told that they are
  kParting,     // a peer that does not know of the end is told
  kAware,       // the journal is told that it knows
  kLeaving,     // this control stops: descriptors are let go of
  kOver,
};
bool allowed(TransferPhase from, TransferPhase to);

class Transfer {
 public:
  // A caller that was told its place calls again within 5 s (Backoff::kMaxNs), if its own node has room. Who
  // does not holds up nobody, and is forgotten later.
  static constexpr uint64_t kCallerAwayNs = 10 * kSecondNs;
  static constexpr uint64_t kCallerForgottenNs = 60 * kSecondNs;

  // An operator of this node asked for it. `sources`: what is to be sent, if the caller has opened it
  // already.
  Transfer(const ThisNode& settings, std::string id, std::string peer, Role role, Request request,
           std::optional<std::vector<catalog::File>> sources, int64_t started_unix_ns, uint64_t now_ns);
  // A peer asked for it; PeerCalled follows.
  Transfer(const ThisNode& settings, std::string id, std::string peer, int64_t started_unix_ns,
           uint64_t now_ns);
  // From the journal. `trouble`: why it cannot go on, as far as the caller knows. `unix_now_ns` tells how
  // long ago it began; without it only the time that it was seen to run counts.
  Transfer(const ThisNode& settings, const Saved& saved, std::optional<Error> trouble, uint64_t now_ns,
           int64_t unix_now_ns = 0);
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer();

  // One more leg, before Begin: to another node that has the same data, or another way to the same one.
  // Whoever began the transfer may have several peers; whoever was called has one.
  void add_leg(std::string peer);
  // Of all legs together, before Begin: as if an operator had asked for it then.
  void begin_limited(uint64_t limit_bps) { job_.limit_bps = limit_bps; }
  // Before Begin, or before PeerCalled: a third node has ordered it.
  void begin_granted(Granted granted) { job_.granted = std::move(granted); }

  // Before Begin, or before PeerCalled.
  void begin_leased(std::optional<Lease> lease) { job_.lease = std::move(lease); }
  // Before Begin, of a source whose files were found and are to be opened again: its call may bring an offer
  // of them.
  void begin_foreseen(const std::vector<catalog::File>& files) {
    job_.foreseen = offer_ahead(files, *job_.request);
  }
  // Before PeerCalled.
  void begin_mapped(std::optional<Mapped> mapped) { job_.mapped = std::move(mapped); }

  std::vector<Effect> step(const Event& event, uint64_t now_ns);
  // TimerDue is due then; events may come earlier. UINT64_MAX: never.
  uint64_t due_ns() const;

  // What an operator may ask for now; otherwise kUsage says why not.
  Status may_pause() const;
  Status may_continue() const;
  Status may_limit() const;
  Status may_prioritize() const;
  bool pausing() const { return paused_; }

  // May files of this node change through it still? Not once it has ended, and its unfinished files are gone.
  bool may_write() const { return phase_ < P::kParting || phase_ == P::kLeaving; }
  // Paused, and nothing of it is open.
  bool at_rest() const { return phase_ == P::kPaused && release_ == Release::kNone; }

  View view(uint64_t now_ns) const;
  View overview(uint64_t now_ns) const;  // the same without its files, which may be thousands
  const std::string& id() const { return job_.id; }
  const std::string& peer() const { return leg(LegId(0)).peer_name(); }  // of the first leg
  bool initiator() const { return job_.initiator; }
  Role role() const { return job_.role; }
  const Job& job() const { return job_; }
  TransferPhase phase() const { return phase_; }
  bool ended() const { return outcome_.has_value(); }  // the journal knows, files are let go of
  const std::optional<Error>& error() const { return error_; }
  const Leg& leg(LegId leg) const { return *legs_[leg]; }
  size_t legs() const { return legs_.size(); }
  std::vector<std::string> leg_peers() const;  // the peer of each leg
  // The leg by which this peer calls with this number, of those to it.
  std::optional<LegId> leg_to(const std::string& peer, uint32_t number) const;
  std::string log_name() const;

 private:
  using P = TransferPhase;
  static constexpr uint64_t kLeastRateNs = 60 * kSecondNs;
  enum class Release : uint8_t { kNone, kForget, kEnd, kLeave, kPause };
  enum class Place : uint8_t { kNone, kAside, kAsked, kWaiting, kHeld };

  // What happens to it
  void on(const Begin& event, uint64_t now_ns);
  void on(const Cancel& event, uint64_t now_ns);
  void on(const GrantRenewed& event, uint64_t now_ns);
  void on(const HandOver& event, uint64_t now_ns);
  void on(const PauseAsked& event, uint64_t now_ns);
  void on(const ContinueAsked& event, uint64_t now_ns);
  void on(const LimitAsked& event, uint64_t now_ns);
  void on(const CeilingTold& event, uint64_t now_ns);
  void on(const PriorityAsked& event, uint64_t now_ns);
  void on(const Detach& event, uint64_t now_ns);
  void on(const JournalWritten& event, uint64_t now_ns);
  void on(const FilesRecovered& event, uint64_t now_ns);
  void on(const FilesReleased& event, uint64_t now_ns);
  void on(const ListRead& event, uint64_t now_ns);
  void on(const PlaceTold& event, uint64_t now_ns);
  void recovered(uint64_t now_ns);
  void fail_attempt(const Error& error, uint64_t now_ns);
  void give_up(Error error, uint64_t now_ns);

  // Where it goes from there
  void advance(uint64_t now_ns);
  void follow_legs(uint64_t now_ns);
  void follow(Leg& leg, uint64_t now_ns);
  void count_bytes_done();
  void watch_rate(uint64_t now_ns);
  void watch_arrival(uint64_t now_ns);
  void watch_stillness(uint64_t now_ns);
  void begin_attempts(uint64_t now_ns);
  // transfer_legs.cc: legs that end while others go on, and come back
  void leg_ended(Leg& leg, const AttemptEnd& end, uint64_t now_ns);
  void rest_leg(Leg& leg, const AttemptEnd& end, uint64_t now_ns);
  void stop_others(const Leg& leg, const Error& error, uint64_t now_ns);
  void stop(Leg& leg, const Error& error, LastWord word, uint64_t now_ns);
  void leave_out_differing(uint64_t now_ns);
  void stop_beginners(uint64_t now_ns);
  void stop_callers(uint64_t now_ns);
  void revive_legs(uint64_t now_ns);
  bool may_revive() const;
  bool comes_back(const Leg& leg) const;
  uint64_t revival_due_ns() const;
  const AttemptEnd& telling_end() const;
  std::string peers() const;
  std::set<std::string> peers_without_end() const;
  Leg& speaker() const { return *legs_[LegId(0)]; }
  const Leg& shown_leg() const;
  template <typename Is>
  bool any_leg(Is is) const {
    for (const auto& leg : legs_)
      if (is(*leg)) return true;
    return false;
  }
  bool moving() const {
    return any_leg([](const Leg& leg) { return leg.moving(); });
  }
  bool call_waits() const {
    return any_leg([](const Leg& leg) { return leg.call_waits(); });
  }
  bool told_of_end() const {
    return any_leg([](const Leg& leg) { return leg.told_of_end(); });
  }
  bool attached() const {
    return any_leg([](const Leg& leg) { return leg.attached(); });
  }
  void refuse_calls(const Message& word, uint64_t now_ns);
  uint64_t next_attempt_ns() const;
  uint64_t in_vain_since_ns() const;  // no attempt of any leg got anywhere since; 0: data moves
  board::FlowFigures all_figures() const;
  // transfer_pace.cc: how fast it gets on, and its deadline
  void keep_pace(uint64_t now_ns);
  Pace::Stage pace_stage() const;
  uint64_t cap_bps() const;  // agreed upon or asked for, and the node's own limit; 0: none is known
  struct RateSum {           // of all legs that send
    bool known = false;
    uint64_t rate_bps = 0;
    uint64_t cap_bps = 0;
  };
  RateSum rate_sum() const;
  Pace::Sight sight(uint64_t now_ns) const;
  deadline::Limit limit_now(double cap_bps);
  int64_t unix_ns(uint64_t now_ns) const;
  std::optional<DeadlineView> deadline_view(uint64_t now_ns) const;
  // transfer_turn.cc: its place among the sessions of this node
  void want_attempts(uint64_t now_ns);
  void keep_queued(uint64_t now_ns);
  void ask_for_place();
  void take_place();
  void give_up_place();
  void step_aside();
  uint64_t queued_until_ns() const;
  void attempt_ended(const AttemptEnd& end, uint64_t now_ns);
  void follow_remedy(const Error& error, const AttemptEnd& end, uint64_t now_ns);
  void rest(const Error& error, const AttemptEnd& end, uint64_t now_ns);
  void keep_resting(uint64_t now_ns);
  void hold(const std::optional<Error>& error, uint64_t now_ns);
  bool fails_at_once() const;
  Error held_by(const Error& error) const;
  void enter_pause(uint64_t now_ns);
  void let_go_of_files();
  void take_files_again(uint64_t now_ns);
  void keep_paused(uint64_t now_ns);
  void forget();
  void forgotten(uint64_t now_ns);
  void foresee_failure(bool unheard);
  bool gone_elsewhere() const;
  void end_with(std::optional<Error> error, uint64_t now_ns);
  void release_ended(uint64_t now_ns);
  void report_end(uint64_t now_ns);
  void note_sources(uint64_t now_ns);
  void note_brief(const Leg& leg, uint64_t now_ns);
  void note_whole(uint64_t now_ns);
  void part_or_over(uint64_t now_ns);
  void part(uint64_t now_ns);
  void leave();
  void over();

  // The journal
  Record record(uint64_t now_ns, RecordState state) const;
  RecordState record_state() const;
  void write(Entry entry, Batch batch, Durability durability, LegId of_leg = {});
  void write_record(Entry entry, Durability durability, uint64_t now_ns);
  std::vector<FileRow> file_rows() const;
  void restore_legs(const Record& record);

  void check_invariants() const;  // transfer_checks.cc, where DCHECKs are on

  // What others see
  Summary summary(const board::FlowFigures& all, uint64_t now_ns) const;
  void take_over(const Record& record, int64_t unix_now_ns);
  ViewState view_state() const;
  std::string waiting_for() const;
  std::vector<FileView> file_views() const;
  std::vector<LegView> leg_views() const;

  const ThisNode& settings_;
  Job job_;
  Indexed<LegId, std::unique_ptr<Leg>> legs_;
  struct Ends {  // of legs, in the attempts that are under way
    std::map<LegId, AttemptEnd> how;
    std::optional<LegId> last;
    // It ended with an error of this node, which concerns those that were away too.
    std::optional<LegId> of_all;
    std::set<LegId> rested;   // they wait by themselves, while others go on
    std::set<LegId> stopped;  // by the transfer: why is nothing about their peers
    std::set<LegId> parting;  // their peers have not said that they know of the end
  } ends_;
  Phase<TransferPhase> phase_{TransferPhase::kNew};
  Effects out_;
  std::optional<Error> error_;  // why it ends; nothing: success
  std::optional<Error> held_;   // why it is paused, or rests until its peer's operator acts
  struct Rest {
    Error error;
    AttemptEnd end;
    std::string name;  // for the operator
  };
  std::optional<Rest> rest_;  // why there is no attempt just now
  std::optional<RecordState> outcome_;
  Release release_ = Release::kNone;
  struct Turn {
    Place place = Place::kNone;
    uint32_t ticket = 0;    // tells answers to this wish from those to one that was given up
    uint64_t since_ns = 0;  // it is queued, or its caller was heard of
    bool waited = false;    // whoever began it has been told so, and stands by no more
  } turn_;
  bool paused_ = false;     // by an operator of this node, or held by an error
  bool cancelled_ = false;  // by an operator, or by its deadline
  bool detached_ = false;
  struct Peer {
    bool contacted = false;              // it was there once: worth another attempt
    std::set<std::string> unaware = {};  // those that may not know of the end
  } peer_;
  struct Unfinished {
    bool left = false;  // to be removed
    bool away = false;  // nothing is open: somebody may be mending their file system
  } files_;
  bool complete_noted_ = false;  // the journal has every file as it is at the end
  struct Times {
    int64_t started_unix_ns = 0;
    uint64_t started_ns = 0;
    uint64_t ended_ns = 0;
    uint64_t data_started_ns = 0;
    uint64_t data_ended_ns = 0;
    uint64_t before_ns = 0;       // of former lives of this control, and of the time between them
    uint64_t data_before_ns = 0;  // of that, since data began to move
  } times_;
  struct Least {  // the rate below which it fails is watched for so long at a time
    uint64_t since_ns = 0;
    uint64_t bytes = 0;
  };
  struct Still {  // what rises with all that moves, and since when it has not
    uint64_t mark = 0;
    uint64_t since_ns = 0;
  };
  struct Unheard {  // for how long data could have moved, and none of it ever arrived
    bool heard = false;
    uint64_t for_ns = 0;
    uint64_t looked_ns = 0;
  };
  struct Patience {  // of whoever asked for it
    Least least;
    Still still;
    Unheard unheard;
  } patience_;
  struct Going {
    Pace pace;
    board::FlowFigures before;  // at its last look
  } going_;
  struct Attempts {
    uint64_t count = 0;
    bool begun = false;  // one, in this step
  } attempts_;
  Summary before_;  // figures of former lives of this control
  struct Shown {
    uint64_t bytes_done = 0;  // what people saw does not go down, unless bytes were lost
    uint32_t failed = 0;      // objects that had failed then, of which no bytes count
  } shown_;
  std::string device_;
};

}  // namespace sluice::transfer
