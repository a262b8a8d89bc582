// The sending end of a session, without its files and its wire: which partition goes to which flow, what was
// sent with which CRC, what the peer has, what must be repaired.
//
// Objects are given to lanes in their order, but for one thing: short ones, such as packs of small files, and
// the long one whose turn it is take turns. So the many small files of a tree do not wait for a long file
// before them, as far as objects are open, and keep the peer busy with names while that one's bytes are on
// their way.
//
// Pure. Told what happened, it says what to do (Actions); the caller owns flows, disks, journal and clock. A
// lane gets its next partition when it has little left, so that no lane waits for the slowest.
//
// Flows may end and others begin (start_attempt): what the peer holds (peer_has) is not sent again. Those of
// one leg may come and go while others go on (add_leg, drop_leg): what its lanes had and the peer has not
// goes on the lanes of others. All legs lead to one receiver. After a restart of this control the peer may
// hold an extent whose CRC is not known here. Its bytes are read again (take_unknown, reread), so that the
// final comparison is never the peer with itself.
//
// One that obeys wants (Options::obeys_wants, docs/WIRE.md 2.1.6) has one leg. It gives lanes what the peer
// asks for and nothing else, tells the digest of each extent that it read (DigestDesk) and none of a whole
// object, and takes the peer's word for what it did not send itself.
//
// What always holds stands in sender_invariants.cc. What a peer or a worker says is cut to what there is, or
// ignored; nothing that they say ends the process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "control/recovery/digest_desk.h"
#include "control/recovery/extent_ledger.h"
#include "control/recovery/extent_map.h"
#include "control/recovery/flow_ref.h"
#include "control/recovery/lane_command.h"
#include "dataplane/base/number.h"
#include "dataplane/board/board.h"

namespace sluice::recovery {

class Sender {
 public:
  struct Options {
    uint64_t partition_bytes = 0;
    uint64_t short_bytes = 0;          // objects up to this do not wait for a longer one
    uint64_t lane_rate_bps = 0;        // of each lane; it decides how much is queued there
    bool obeys_wants = false;          // the same in all attempts
    uint64_t digests_unanswered = 64;  // the peer may ask for so many extents' (want_digests)
  };
  struct SentRange {
    ObjectId object;
    FlowRef flow;
    Range range;
  };
  struct UnknownRun {
    ObjectId object;
    ExtentId first;
    ExtentId end;  // one past the last
  };
  struct Actions {
    std::vector<LaneCommand> commands;
    std::vector<SentRange> sent;    // tell the peer
    std::vector<ObjectId> digests;  // tell the peer digest(object), if the source is unchanged
    std::vector<ObjectId> done;     // they stand at the peer with equal digests
    std::vector<ObjectId> differ;   // the peer's digest is another: kIntegrity
    std::vector<ObjectId> changed;  // an extent was read twice and differed: the source changed
  };

  // `lanes`: of the first leg.
  Sender(const Indexed<ObjectId, Layout>& objects, uint32_t lanes, const Options& options);

  // A row of the journal, before the first attempt.
  Status restore(ObjectId object, const Block& block) { return objects_[object].ledger.restore(block); }
  // These whole extents are zeros: should the peer say that it has them, they need not be read.
  void expect_zeros(ObjectId object, const std::vector<Range>& ranges) {
    for (const Range& range : ranges) objects_[object].ledger.add_zeros(range);
  }
  // One more, behind the others. The peer does not know it before peer_knows().
  void add(const Layout& layout);
  // So many objects; at the beginning of an attempt it knows all of them. Of others it is told nothing.
  void peer_knows(size_t objects);
  size_t known() const { return known_; }
  bool all_known_done() const { return done_ >= known_; }
  // New flows, to a peer that has not said yet what it holds: nothing is sent before peer_said_all(). They
  // are those of one leg; others may join.
  void start_attempt(LegId leg, uint32_t lanes, const Options& options, uint64_t now_ns);
  // Flows of one more leg, which get nothing before the peer has said on it what it holds.
  void add_leg(LegId leg, uint32_t lanes, const Options& options);
  // The flows of this leg end, and get nothing more.
  void drop_leg(LegId leg);
  // Flows that a former control began go on: what their workers say that they have (kQueued, kHeld). Comes
  // before anything else is given to them.
  void adopt(const board::Event& event, FlowRef flow);

  // From the peer. Ranges outside an object are cut or ignored.
  void peer_has(ObjectId object, const std::vector<Range>& ranges);  // written or durable there
  void peer_said_all(LegId leg = {});                                // on this leg: go on
  // A leg joins: what the peer told before it lists what it holds there. If the list lacks any of that, the
  // peer has lost it, as by a restart, and it is sent again.
  void note_told(LegId leg);
  void peer_lists(LegId leg, ObjectId object, const std::vector<Range>& ranges);  // as peer_has()
  // `flow`: the one whose worker at the peer has the rest of these extents, if the peer says so.
  void peer_needs(ObjectId object, std::optional<FlowRef> flow, const std::vector<Range>& ranges);
  bool file_done(ObjectId object, uint64_t digest);  // false when there is no such file
  // Nothing more of it is sent, whoever asks. It counts as neither done nor failed: that the peer says.
  void withdraw(ObjectId object);
  void failed(ObjectId object);  // there is nothing of it at the peer: it counts as done
  // The stream of the leg is another one: what was reported and not confirmed is reported again.
  void report_again(LegId leg = {});

  // Of a sender that obeys wants (sender_wants.cc). What the peer wants, or wants no more, of whole extents:
  // what it had told as its own it has not any more, and of what a lane has the digest is said again.
  void want(ObjectId object, const std::vector<Range>& ranges);
  void want_no_more(ObjectId object, const std::vector<Range>& ranges);
  // These are read, and their digests said. False: there are too many without an answer.
  // `last`: when all that is wanted of the object by then was read (release_last_digests).
  bool want_digests(ObjectId object, const std::vector<Range>& ranges, bool last = false);
  void release_last_digests();
  void forget_wants();  // the stream is another one: the peer says again what it wants
  bool obeys_wants() const { return options_.obeys_wants; }
  bool has_wants() const { return !wanted_.empty(); }             // that no lane has
  const std::set<ObjectId>& to_open() const { return to_open_; }  // something of them is asked for
  DigestDesk& digest_desk() { return desk_; }

  // From the board.
  void on_event(const board::Event& event, FlowRef flow);
  void object_opened(ObjectId object);
  void tick(uint64_t now_ns);
  Actions take_actions();

  // The next extents, of one block, that must be read again to know their CRCs; the caller answers with
  // reread().
  std::optional<UnknownRun> take_unknown();
  void reread(ObjectId object, ExtentId first, const std::vector<uint64_t>& crcs);
  std::vector<Block> take_changed(ObjectId object) { return objects_[object].ledger.take_changed(); }

  size_t objects() const { return objects_.size(); }
  ObjectId cursor() const { return cursor_; }  // objects before it are given to lanes in full
  bool done(ObjectId object) const { return objects_[object].done; }  // or failed
  bool withdrawn(ObjectId object) const { return objects_[object].withdrawn; }
  bool all_done() const { return done_ == objects_.size(); }
  bool digest_known(ObjectId object) const { return objects_[object].ledger.complete(); }
  uint64_t digest(ObjectId object) const { return objects_[object].ledger.digest(); }
  std::optional<uint64_t> peer_digest(ObjectId object) const { return objects_[object].peer_digest; }
  const ExtentLedger& ledger(ObjectId object) const { return objects_[object].ledger; }
  uint64_t bytes_held(ObjectId object) const { return objects_[object].at_peer.set_bytes(); }
  uint64_t bytes_held() const { return bytes_held_; }
  // Whether the flow has something to send, or may soon have: parts that have not left, a repair ordered a
  // moment ago, or extents that left and are not complete at the peer.
  bool has_work(FlowRef flow, const board::FlowState& state) const;
  uint64_t steps() const { return steps_; }  // changes with every step forward

 private:
  struct Placed {
    uint64_t end = 0;
    uint64_t sent_end = 0;  // its first pass has left up to here
    FlowRef flow;
  };
  struct Object {
    Layout layout;
    ExtentLedger ledger;  // of what was sent once, or read again
    ExtentMap given;      // to a lane of this attempt, or at the peer
    ExtentMap at_peer;    // as far as the peer has said
    ExtentMap unknown;    // stand in unknown_: each once, however often the peer changes its mind
    ExtentMap wanted;     // by the peer, and given to no lane
    std::map<uint64_t, Placed> placed;  // by offset; what lanes carried and the peer has not whole
    uint64_t next_offset = 0;           // nothing before it is left to give
    std::optional<uint64_t> peer_digest;
    bool open = false;  // at the dataplane
    bool digest_reported = false;
    bool withdrawn = false;
    bool failed = false;
    bool done = false;
  };
  struct Part {  // what a worker is given at a time
    ObjectId object;
    uint64_t offset = 0;
    uint64_t length = 0;
    uint64_t reported_end = 0;  // the peer knows that it was sent up to here
  };
  struct LaneWork {
    uint64_t rate_bps = 0;   // at most
    bool ready = false;      // the peer has said on its leg what it holds
    std::deque<Part> parts;  // at the worker; their first pass has not ended
    uint64_t queued_bytes = 0;
    uint64_t moved_ns = 0;         // when an extent was last sent
    uint64_t repair_until_ns = 0;  // until then it counts as busy with repairs
  };
  struct Told {  // by the peer, before a leg joined, and on that leg since
    Indexed<ObjectId, ExtentMap> before;
    Indexed<ObjectId, ExtentMap> listed;
  };

  void check_invariants() const;  // where DCHECKs are on
  void check_object(ObjectId id) const;
  void check_lane(const LaneWork& work) const;
  bool read_all_wanted(ObjectId object) const;
  void order(const LaneCommand& command);
  void cut_parts();
  void compare_lists(LegId leg);
  bool lose(Object& object, ExtentRun extents);
  static void take_from_lanes(Object& object, Range range);
  void give_again(ObjectId id);
  void give_from_start(ObjectId id);
  void give_parts();
  bool has_room(const LaneWork& work) const;
  std::optional<Part> take_next_part();
  std::optional<Part> take_part_of(ObjectId* cursor, bool short_only);
  std::optional<Part> take_wanted_part();
  uint64_t cut_at(uint64_t offset) const;
  std::optional<UnknownRun> take_unread();
  std::vector<ExtentRun> asked_for(ObjectId id, const std::vector<Range>& ranges) const;
  void take_back(ObjectId id, ExtentRun extents);
  void say_again(ObjectId id, ExtentRun extents);
  void open_for_peer(ObjectId id);
  void end_wants(ObjectId id);
  void check_wants(ObjectId id) const;
  bool is_short(const Object& object) const { return object.layout.size_bytes <= options_.short_bytes; }
  void place(FlowRef flow, const Part& part, uint64_t sent_end);
  static void add_placed(Object& object, uint64_t offset, const Placed& placed);
  uint64_t sent_until(FlowRef flow, const Part& part) const;
  void extent_sent(const board::Event& event, FlowRef flow);
  void partition_sent(const board::Event& event, FlowRef flow);
  void add_crc(ObjectId id, ExtentId extent, uint64_t crc);
  void finish_or_report(ObjectId id);
  void note_unknown(ObjectId id, ExtentRun extents);
  static ExtentRun alike(const Object& object, const Placed* placed, Range range);
  void order_repair(FlowRef flow, ObjectId id, Range range);
  static uint64_t never_sent_until(const Object& object, Range range);
  void report_sent(FlowRef flow, Part* part, uint64_t end);
  void forget_placed(Object& object, Range range);
  void tell_flows_peer_has(ObjectId id, Range range);
  Placed* placed_at(Object& object, uint64_t offset);

  Options options_;
  Indexed<ObjectId, Object> objects_;
  std::map<FlowRef, LaneWork> lanes_;
  std::map<LegId, Told> told_;
  Actions actions_;
  uint64_t now_ns_ = 0;
  uint64_t part_bytes_ = 0;
  uint64_t bytes_total_ = 0;
  uint64_t bytes_held_ = 0;
  ObjectId cursor_;
  ObjectId short_cursor_;           // short objects before it are given to lanes in full
  bool short_turn_ = false;         // a long one had the last
  std::deque<UnknownRun> unknown_;  // at the peer, their CRCs not known here
  std::set<ObjectId> wanted_;       // objects with extents that are wanted and given to no lane
  std::set<ObjectId> to_open_;      // asked for, and not open at the dataplane
  DigestDesk desk_;
  size_t known_ = 0;  // to the peer
  size_t done_ = 0;
  uint64_t steps_ = 0;
  bool may_give_ = false;  // the peer has said what it has
  bool adopted_ = false;   // lanes have what a former control gave them
};

}  // namespace sluice::recovery
