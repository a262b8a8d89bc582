// Which leg is asked for which extents, where several peers have the same data.
//
// Pure and deterministic; time is an argument. A destination with several sources has one for its transfer.
// In what follows q is the bytes that a leg is asked for and has not brought, r its goodput, tau its round
// trip, and e the bytes of an extent.
//
// 1. One pool holds the extents that nobody was asked for. A leg is asked for more while q is smaller than
//    its window: 2 r tau, what it brings between two refills, and an extent for each lane. While it ramps
//    up it is 3 r tau, since its source doubles its rate each round trip. What was granted too far ahead
//    can be taken back (3). A leg takes long runs: it goes on where it was, then begins an object that
//    nobody has begun, then takes the second half of the longest run that is left.
// 2. A leg takes from the pool only what it can deliver before all the rest is done, or sooner than any
//    other leg. So a slow leg does not enter near the end, and the fastest gets a file of one extent.
// 3. A leg j that would run dry within a round trip takes from the end of what the slowest leg k has not
//    begun: x = (q_k/r_k - max(q_j/r_j, tau_j)) r_j r_k / (r_j + r_k) bytes, if that is an extent at least.
//    Then both end at the same time.
// 4. Extents that k has begun are asked of j as well, the last one first, each once, while k needs more
//    than twice as long as j for the next one. While a rate is not known yet, more than as long is enough.
//    The first right copy counts.
// 5. A leg that is silent for max(3 tau, 0.5 s) with bytes outstanding gives all of them back. It is tried
//    again with one extent once it speaks, or after a pause that doubles from 1 s to 8 s.
// docs/decisions/0018-several-sources.md argues for this and has the figures.
//
// The planner takes a source to send what it is asked for in the order in which it was asked. If a source
// does not, no byte is lost: an extent counts whoever brings it, and the others are told not to send it.
//
// Extents lie in runs, so a call takes time with the number of runs and legs that it touches, not with
// extents. What always holds stands in planner_invariants.cc.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "control/parts/leg_state.h"
#include "control/parts/run_set.h"
#include "control/parts/words.h"
#include "dataplane/base/number.h"

namespace sluice::parts {

class Planner {
 public:
  static constexpr uint64_t kSilenceNs = 500'000'000;  // at least: it is longer where the round trip is
  static constexpr uint64_t kTrialNs = 1'000'000'000;  // the first pause before a silent leg is tried again
  static constexpr uint64_t kTrialMaxNs = 8'000'000'000;

  enum class Kind : uint8_t {
    kDivisible,  // several legs may bring it, once their replicas agree
    kWhole,      // one leg brings all of it: a pack
  };
  struct Options {
    uint32_t extent_bytes = 1;
  };
  struct Actions {
    std::vector<Want> wants;           // to be said in this order
    std::vector<ObjectId> compare;     // about to be divided: Replicas::compare. Each is named once
    std::vector<ObjectId> begin_anew;  // whole objects whose leg is gone: what is there of them is forgotten
  };

  explicit Planner(const Options& options) : options_(options) {}

  // Objects. A number that was not added is ignored everywhere else.
  void add(ObjectId object, uint64_t size_bytes, Kind kind);
  // The extents that lie in these ranges with all their bytes are there already, from an earlier attempt or
  // as holes. An object that is held in part is compared before a leg gets more of it; a whole one begins
  // anew.
  void holds(ObjectId object, const std::vector<Range>& ranges);
  // It has failed, or is done in another way: nobody is asked for any of it any more.
  void remove(ObjectId object);

  // Legs. A leg that left may join again under its number: what was open to it still is, and its rate is
  // remembered.
  void join(LegId leg, const LegFacts& facts, uint64_t now_ns);
  // Its stream or its flows have ended: what it was asked for is in the pool again.
  void leave(LegId leg);
  // Its replica agrees with what is there of this object, and with those of the other legs.
  void open_to(LegId leg, ObjectId object);
  // Its replica is not the one that is wanted: it is asked for nothing more of this object, and what it still
  // brings does not count. open_to() ends that.
  void close_to(LegId leg, ObjectId object);

  // An extent is there: this leg wrote it, and its source has confirmed the digest. False when that does not
  // count: it is there already, or another leg brings this whole object.
  bool arrived(LegId leg, ObjectId object, ExtentId extent, uint64_t now_ns);
  // These extents are not there, whatever was said before, and nobody will send them again unless asked
  // again: a digest was false, two copies differ, a sync failed.
  void forgotten(ObjectId object, ExtentRun extents);
  // Payload bytes that this leg's flows have received since the last call, as the board counts them. They are
  // counted by chunks: an extent may take longer than the time after which a leg counts as silent.
  void received(LegId leg, uint64_t bytes, uint64_t now_ns);
  // Others are about to join, and are to find something: a leg is asked for an extent a lane, and no more.
  void expect_others(bool expected) { others_expected_ = expected; }
  void tick(uint64_t now_ns);  // plans; may come seldom or late
  Actions take_actions();

  // All that this leg is asked for, in the order in which it was asked: to be said again on a new stream.
  std::vector<Portion> outstanding(LegId leg) const;
  uint64_t outstanding_bytes(LegId leg) const;
  // Bits per second: goodput over about a second, or what was expected before; 0 when neither is known.
  uint64_t rate_bps(LegId leg) const;
  bool closed(LegId leg, ObjectId object) const {
    return exists(object) && is_among(objects_[object].closed, leg);
  }
  bool all_asked(ObjectId object) const;          // nothing of it is in the pool
  bool brings(LegId leg, ObjectId object) const;  // it is asked for some of it
  std::vector<ExtentRun> asked_within(LegId leg, ObjectId object, ExtentRun run) const;  // and not come yet
  ExtentId last_asked(LegId leg, ObjectId object) const;  // the one nearest to the end, if it brings some
  bool silent(LegId leg) const;
  bool complete(ObjectId object) const;
  uint64_t missing_bytes() const { return missing_bytes_; }
  uint64_t stolen_bytes() const { return stolen_bytes_; }  // asked of another leg before the first had begun
  uint64_t copied_bytes() const { return copied_bytes_; }  // asked of two legs
  void check_invariants() const;                           // where DCHECKs are on

 private:
  struct Object {
    bool added = false;
    Kind kind = Kind::kDivisible;
    ExtentMap there;
    RunSet pool;
    bool begun = false;                   // something of it is there, or was asked
    std::optional<LegId> first;           // who began it, and needs no comparison
    std::vector<LegId> open;              // besides
    std::vector<LegId> closed;            // may bring none of it
    std::optional<uint64_t> compared_ns;  // when it was named for comparison
  };
  // A part of the pool that a leg may take.
  struct Find {
    ObjectId object;
    ExtentRun run;
  };

  bool exists(ObjectId object) const { return objects_.contains(object) && objects_[object].added; }
  bool here(LegId leg) const { return legs_.contains(leg); }
  ExtentRun all_of(const Object& object) const {
    return {.first = ExtentId(0), .end = object.there.end_id()};
  }
  bool may(LegId leg, const Object& object) const;
  bool away(LegId leg) const;  // it has left, or is silent
  void compare(ObjectId object);
  void note(LegId leg, ObjectId object, ExtentRun run, bool withdrawn);

  // The pool.
  void put(ObjectId id, ExtentRun run);
  void pull(ObjectId id, ExtentRun run);
  void list(ObjectId id);  // among the objects that have something in the pool
  // What a leg has outstanding.
  void give(LegId leg, ObjectId object, ExtentRun run, bool copied);
  void take_back(LegId leg, const Piece& piece, bool withdraw);
  void return_all(LegId leg, bool withdraw);
  void return_piece(LegId leg, const Piece& piece, bool withdraw);
  void withdraw_from_all(ObjectId id, ExtentRun run, std::optional<LegId> except);
  void count_as_there(ObjectId id, ExtentRun run, std::optional<LegId> from);
  void begin_anew(ObjectId id);
  void refresh(ObjectId id);  // nobody has begun it any more, if nothing of it is there or asked for

  // tick: silence and trials (planner_silence.cc).
  void hear_silence(LegId leg, uint64_t passed_ns);
  void try_again(LegId leg);
  // tick: from the pool (planner_pool.cc).
  void refill(LegId leg);
  void take_whole(LegId leg, ObjectId object);
  bool nobody_works() const;
  uint64_t window_of(const LegState& state) const;
  std::optional<Find> find(LegId leg);
  std::optional<Find> find_begun(LegId leg, bool own);
  Find within(LegId leg, ObjectId object) const;
  uint64_t worth_taking(LegId leg, const Find& found) const;
  // In how many seconds it may take of this object, if another leg does not; nothing: perhaps never.
  std::optional<double> wait_s(LegId leg, const Object& object) const;
  double level_s(LegId taker, const Object& object) const;
  // tick: from others (planner_theft.cc).
  void help(LegId leg);
  std::vector<LegId> slowest_first(LegId except) const;
  bool steal(LegId leg, LegId victim, uint64_t bytes);
  bool copy(LegId leg, LegId victim);

  void check_object(ObjectId id) const;

  Options options_;
  Indexed<ObjectId, Object> objects_;
  std::map<LegId, LegState> legs_;
  std::map<LegId, uint64_t> rates_when_left_;  // bits per second
  std::set<ObjectId> fresh_;                   // all in the pool, and begun by nobody
  std::set<ObjectId> begun_;                   // begun, with something in the pool
  Actions actions_;
  uint64_t now_ns_ = 0;
  uint64_t ticked_ns_ = 0;
  bool others_expected_ = false;
  double guess_ = kGuessedRate;  // of a leg whose rate is not known: the mean of those that are
  uint64_t gap_ns_ = 0;          // between ticks, the longest of late
  uint64_t changes_ = 0;         // counts what may let a leg find something that did not before
  uint64_t pool_bytes_ = 0;
  uint64_t missing_bytes_ = 0;
  uint64_t stolen_bytes_ = 0;
  uint64_t copied_bytes_ = 0;
};

}  // namespace sluice::parts
