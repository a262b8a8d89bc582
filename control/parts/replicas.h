// Whether the replicas of several sources agree, before they are mixed in one object.
//
// Pure. Of an object that is about to be divided each leg is asked for the digests of the same few extents:
// the first, the last, and one that a seed chooses, which no source can foresee. If the destination holds
// something of the object already, one such extent joins them, whose digest it knows. A leg agrees when its
// digests are those of the leg that has begun the object, and of what is held. Nothing is asked for other
// objects, so a session of many files costs little.
//
// At most kQuestionsMax extents are asked of a leg at a time; the others wait. A source may say a digest
// because it has sent the extent, and still owe the answer. So it can owe a few more than are counted here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "control/parts/words.h"
#include "dataplane/base/number.h"

namespace sluice::parts {

class Replicas {
 public:
  static constexpr size_t kQuestionsMax = 16;  // extents of a leg that are unanswered (DigestsWanted)

  struct Options {
    uint64_t seed = 0;  // from the session's id
    uint32_t extent_bytes = 1;
  };
  // An extent that is there, and its digest.
  struct Held {
    ExtentId extent;
    uint64_t crc = 0;
    std::optional<LegId> from = {};  // the leg that brought it, as far as that is known
  };
  struct Subject {
    ObjectId object;
    uint64_t size_bytes = 0;
    std::string name;  // for people
    std::optional<LegId> begun_by;
    std::optional<Held> held;  // any one, if something is held (ExtentCheck::known)
  };
  struct Agreed {
    LegId leg;
    ObjectId object;
  };
  // A replica that differs. From another leg's, and nothing says which one is right: nothing more is said of
  // this object, and the session ends with kIntegrity. Or from what is held: the same end.
  struct Disagreement {
    ObjectId object;
    LegId leg;
    std::optional<LegId> other;  // none: it differs from what is held, which came in an earlier attempt
    std::string message;         // names both peers and the object, and says what to do
  };
  struct Actions {
    std::vector<Portion> questions;  // DigestsWanted
    std::vector<Agreed> agreed;      // Planner::open_to
    std::vector<Disagreement> disagreements;
  };

  explicit Replicas(const Options& options) : options_(options) {}

  // `peer` is the node's name, for people. A leg that joins late is asked about all that is compared.
  void join(LegId leg, const std::string& peer);
  // What it was asked and has not answered is asked again when it joins again.
  void leave(LegId leg);
  void compare(const Subject& subject);
  // ExtentDigests of any kind: those that were not asked for are ignored.
  void said(LegId leg, ObjectId object, ExtentId first, std::span<const uint64_t> digests);
  // An extent is there, with this digest (ExtentCheck). It speaks for a leg that has gone.
  void confirmed(ObjectId object, const Held& held);
  void remove(ObjectId object);  // it is done, or has failed
  Actions take_actions();

  // The extents that are compared, in order, without any twice.
  std::vector<ExtentId> extents_of(const Subject& subject) const;

 private:
  struct Answers {
    std::vector<std::optional<uint64_t>> digests;  // of the extents that are compared, in order
    bool agreed = false;
    bool refused = false;  // it differs from what is held
    bool complete() const;
  };
  struct Comparison {
    Subject subject;
    std::vector<ExtentId> extents;
    std::map<ExtentId, Held> held;  // some of them
    std::optional<Held> last;       // that was confirmed, and is none of them
    std::map<LegId, Answers> answers;
    bool in_doubt = false;  // two differ: nothing more is said of it
  };
  struct Leg {
    std::string peer;
    bool here = false;
    size_t unanswered = 0;         // extents
    std::deque<ObjectId> waiting;  // to be asked of it
  };

  void ask(LegId leg, ObjectId object);
  void ask_more(LegId leg);
  void question(LegId leg, const Comparison& comparison, const std::vector<ExtentId>& extents);
  void stand_in(Comparison& comparison);
  void judge(Comparison& comparison);
  std::optional<LegId> reference_of(const Comparison& comparison) const;
  const Held* differs_from_held(const Comparison& comparison, const Answers& answers) const;
  // `held`: it differs from this; null: from the replica of `other`.
  void differ(const Comparison& comparison, LegId leg, std::optional<LegId> other, const Held* held);

  Options options_;
  std::map<LegId, Leg> legs_;
  std::map<ObjectId, Comparison> comparisons_;
  Actions actions_;
};

}  // namespace sluice::parts
