// A receiving end asks each of several sources that have the same data for a part. It counts an extent once
// the extent's source has said the digest of what was written, and compares replicas before it mixes them
// (docs/WIRE.md, "Parts").
//
// Pure. parts::Planner decides who is asked for what, parts::ExtentCheck what counts, parts::Replicas whose
// replica agrees. This class joins them, and speaks the words of the wire. DestinationEnd performs Actions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/parts/extent_check.h"
#include "control/parts/hearing.h"
#include "control/parts/planner.h"
#include "control/parts/replicas.h"
#include "control/parts/run_set.h"
#include "control/parts/settlement.h"
#include "control/parts/witness.h"
#include "control/words/messages.h"
#include "control/words/terms.h"
#include "dataplane/board/board.h"

namespace sluice::transfer {

class SeveralSources {
 public:
  struct Object {
    ObjectId id;
    uint64_t size_bytes = 0;
    bool whole = false;   // a pack: all of it comes from one source
    bool listed = false;  // a digest of all of it is known: it decides between sources that differ
    // Nothing else says what the whole is: one source does, where it came from several (parts::Witness).
    bool witnessed = false;
    std::vector<recovery::Range> holes;  // of the offer, whole extents
    std::string shown;                   // for people
  };
  struct Source {
    LegId leg;
    std::string peer;
    uint64_t rtt_ns = 0;        // 0: not known
    uint64_t expected_bps = 0;  // likewise
    uint32_t lanes = 1;
    uint64_t digests_unanswered = kDigestsUnansweredMin;  // extents of DigestsWanted that it takes
  };
  struct Word {
    LegId leg;
    Message message;
  };
  struct Actions {
    std::vector<Word> words;
    std::vector<board::Event> written;  // they count from now on
    std::vector<ObjectId> whole;        // all of it counts, and each of its sources has not changed since
    std::vector<ObjectId> unsettled;    // what is listed of them is what no source has
    std::vector<parts::ObjectRange> forgotten;  // nothing of them counts, and workers take them again
    // kIncompatible, kStalled: the leg ends whose event or message came last. kIntegrity: the session ends,
    // since replicas differ.
    std::optional<Error> error;
  };

  // `seed`: of the session, which no source can foresee; by it the extents that are compared are chosen.
  SeveralSources(uint32_t extent_bytes, crc::CrcKind crc_kind, uint64_t seed);

  // ---- objects: those that workers have open ----
  bool has(ObjectId object) const { return objects_.contains(object); }
  // `held`: what is there of it.
  void add(const Object& object, const std::vector<recovery::Range>& held);
  void remove(ObjectId object);  // done or failed
  // The object has these holes and no others. Where it had one before, bytes may have come, or none.
  void has_holes(ObjectId object, const std::vector<recovery::Range>& holes);
  // Whatever else was there of it is not any more: a sync failed, or a disk gave back other bytes.
  void only_there(ObjectId object, const recovery::ExtentMap& there);

  // The digest of the whole, as a source has it that did not send all of it; none: each extent has its
  // source's.
  std::optional<uint64_t> witnessed(ObjectId object) const;
  // For people: the digest of what came is another one.
  std::string not_witnessed(ObjectId object) const;

  // ---- what is listed (several_settlement.cc) ----
  // All of it is there, and is not what the list wants: sources are asked for the digests of all extents, and
  // those extents are fetched again that a source brought whose file differs from the others'. False: there
  // is nobody to ask, the only source has brought all of it.
  bool settle(ObjectId object);
  // All of it is what the list wants: the sources whose file differs from it, as far as that is known.
  std::vector<LegId> differing(ObjectId object) const;
  uint64_t answers() const;  // changes while sources are compared

  // ---- legs ----
  void join(const Source& source, uint64_t now_ns);
  void leave(LegId leg);  // its flows have ended
  void leave_all();       // the attempt is over
  // What it was asked for before this is no longer asked for there (WIRE 2.1.6): it is said again.
  void on_new_stream(LegId leg);
  // `bytes`: payload that its flows have accepted, since they were opened.
  struct Sign {
    uint64_t bytes = 0;
    bool up = false;        // its stream is there
    uint64_t heard_ns = 0;  // when a word came on it last
  };
  void tick(LegId leg, const Sign& sign, uint64_t now_ns);
  // Sources that are not there yet, beside one that is.
  struct Others {
    bool come = false;          // are on their way, however long their peers take to answer
    bool some = false;          // join soon
    bool faster = false;        // one of these may be faster
    bool faster_calls = false;  // one that is known to be faster still speaks with its peer
    bool unheard = false;       // one that is near has not said yet which files it has
    bool unreached = false;     // of one nobody knows yet whether it is near
  };
  // While a faster one may come soon, nobody is asked for the first extents.
  void others_join(Others others) { others_ = others; }
  // An object that one source has brought may be a broken copy of what the next one has. A node that is near
  // has taken a call within two round trips (Siblings::kNearNs).
  static constexpr uint64_t kReachNs = 120'000'000;
  bool waits_to_hear() const {
    return others_.unheard || (others_.unreached && now_ns_ - first_joined_ns_ < kReachNs);
  }
  void written(LegId leg, const board::Event& event);
  bool said(LegId leg, const ExtentDigests& digests);  // false: of extents that there are not

  Actions take_actions();
  // A Need for these ranges goes to the legs that are to bring them, and to `first` where several are. The
  // source that had sent an extent before may not be wanted to send it now; and a source may send whatever a
  // Need names, but what it was not asked for does not count.
  std::vector<parts::Portion> to_need(LegId first, ObjectId object,
                                      const std::vector<recovery::Range>& ranges) const;

  // This leg brings so much, as an average of a second, bit/s; 0: not known yet.
  uint64_t rate_bps(LegId leg) const { return planner_.rate_bps(leg); }
  // For people; empty: nothing but bytes is waited for.
  std::string waiting_for() const;
  void check_invariants() const;

 private:
  struct Known {
    Object object;
    recovery::ExtentMap counted;  // as the planner has it
    // These have come and do not count. A source that has sent them sends them again only if it hears a Need.
    parts::RunSet dropped;
    std::optional<LegId> begun_by;  // who was asked for something of it first
    // All of it is there, and the sources that brought it look once more whether they have changed: of each
    // an extent that it says the digest of again.
    std::map<LegId, ExtentId> last_looks;
    // Asked beforehand: the source looks once it has read all that it is asked for.
    struct EarlyLook {
      ExtentId extent;
      bool stale = false;  // more was asked of it since
    };
    std::map<LegId, EarlyLook> early_looks;  // unanswered
    std::set<LegId> looked;                  // since they were asked for something of it last
    std::optional<parts::Witness> witness;
    enum class Stage : uint8_t {
      kComing,
      kThere,  // all of it; last looks and the witness are waited for
      kTold,   // Actions::whole
    };
    Stage stage = Stage::kComing;
    std::optional<parts::Settlement> settlement;  // its sources differ, and it is listed
    std::optional<LegId> version;                 // that of this leg is being fetched
    bool judged = false;                          // what is there was compared with the list
  };
  struct Joined {
    std::string peer;
    uint64_t bytes = 0;
    uint32_t wrong = 0;          // extents whose digest was not that of what came
    std::deque<ObjectId> looks;  // to be asked for, when others were answered
    uint32_t looks_unanswered = 0;
    uint32_t early_unanswered = 0;
    uint64_t rtt_ns = 0;
    uint64_t witness_window = 0;  // extents of a witness without an answer
    parts::Hearing hearing;
  };
  // Extents that a source may be asked for at a time beside those of a witness: looks, and what is compared
  // and settled.
  static constexpr uint64_t kOtherQuestionsMax = 48;
  using Unanswered = std::map<LegId, uint64_t>;  // extents of a witness, of all objects

  // Nothing of it counts, and workers take it again.
  void lose(ObjectId object, recovery::ExtentRun run);
  void drop(Known& known, recovery::Range range);
  void count(const parts::ExtentCheck::Verdict& verdict);
  void refuse(const parts::ExtentCheck::Verdict& verdict);
  bool lost(LegId id, const Joined& leg) const { return leg.hearing.lost(leg.rtt_ns, planner_.silent(id)); }
  void follow_hearing(LegId id, Joined& leg);
  void complete(Known& known);
  void ask_looks(LegId id, Joined& leg);
  void ask_early_looks();
  void looked_early(LegId leg, Known& known, const ExtentDigests& digests);
  void drop_early_look(Known& known, LegId leg);
  void looked(LegId leg, Known& known, ExtentId first, size_t digests);
  void forget_looks(Known& known, LegId leg);
  // several_witness.cc
  void begin_witness(Known& known);
  bool needs_witness(const Known& known) const;
  void choose_witness(Known& known);
  static uint64_t witness_window(uint64_t digests_unanswered);
  void ask_witness(Known& known, Unanswered* unanswered);
  void follow_witnesses();
  void leave_witness(LegId leg);
  void follow_check();
  void follow_planner();
  void follow_replicas();
  void begin_settlement(Known& known);
  void follow_settlements();
  void follow_settlement(Known& known);
  void fetch_version(Known& known, LegId version, const std::vector<recovery::ExtentRun>& differing);
  std::vector<recovery::ExtentRun> differing_from(const Known& known, LegId version) const;
  void join_settlement(Known& known, LegId leg);
  void ask(const parts::Portion& portion, bool withdrawn);
  std::vector<recovery::ExtentRun> take_asked(LegId leg, ObjectId object, parts::RunSet* extents) const;
  void need_dropped(const parts::Portion& portion);
  void compare(ObjectId object);
  bool waits_for_faster(const Joined& leg) const;
  void fail(Error error) {
    if (!actions_.error) actions_.error = std::move(error);
  }
  const std::string& peer_of(LegId leg) const;

  const uint32_t extent_bytes_;
  const crc::CrcKind crc_kind_;
  parts::Planner planner_;
  parts::ExtentCheck check_;
  parts::Replicas replicas_;
  std::map<ObjectId, Known> objects_;
  std::map<LegId, Joined> legs_;
  Actions actions_;
  uint64_t now_ns_ = 0;
  std::optional<ObjectId> settling_;  // whose sources are asked for all digests
  uint64_t first_joined_ns_ = 0;      // of those that are there
  static Others unknown_others() { return {.come = true, .unheard = true}; }
  Others others_ = unknown_others();  // until a leg says so
};

}  // namespace sluice::transfer
