// Which of several versions of one object is the one that a known digest wants.
//
// Pure. Each leg is asked for the digests of all extents. Legs whose digests are equal have one version. The
// version that most legs have is tried first. Its owner fetches what differs from it and compares the whole
// with the known digest; a version that does not fit is refused, and the next one is tried.
//
// At most kUnansweredMax extents of a leg are unanswered. What a leg has said stays when it leaves: it tells
// which extents that the leg brought are right.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "control/parts/words.h"
#include "dataplane/base/number.h"

namespace sluice::parts {

class Settlement {
 public:
  static constexpr uint64_t kUnansweredMax = 8;  // extents of a leg
  static constexpr uint64_t kQuestionExtents = 4;

  Settlement(ObjectId object, uint64_t size_bytes, uint32_t extent_bytes);

  // A leg that joins again is asked again for what it has not said.
  void join(LegId leg);
  // It is silent, and not waited for until it joins again. It still owes what it was asked, and its answers
  // count.
  void dismiss(LegId leg);
  void leave(LegId leg);  // it is gone, or its stream is: it owes nothing either
  // ExtentDigests of any kind: each says what the leg read. The first word counts.
  void said(LegId leg, ExtentId first, std::span<const uint64_t> digests);
  std::vector<Portion> take_questions();

  uint64_t answers() const { return answers_; }  // extents, of all legs
  // The leg has said all.
  bool knows(LegId leg) const;
  // Each leg that is here has said all, and one at least is here.
  bool ready() const;
  // A leg that is here and has the version that most legs here have, of those that were not refused.
  std::optional<LegId> best() const;
  bool same(LegId leg, LegId other) const;  // both have said all, and the same
  // What `source` has brought of this extent is what `version` has.
  bool fits(ExtentId extent, std::optional<LegId> source, LegId version) const;
  void refuse(LegId version) { refused_.push_back(version); }

 private:
  struct Leg {
    bool here = false;
    std::vector<std::optional<uint64_t>> digests;  // of all extents
    uint64_t missing = 0;                          // of them
    uint64_t asked = 0;                            // extents before this one were asked for
    uint64_t unanswered = 0;
  };
  void ask_more(LegId id, Leg& leg);
  bool refused(LegId leg) const;

  ObjectId object_;
  ExtentMap layout_;
  std::map<LegId, Leg> legs_;
  std::vector<LegId> refused_;  // a leg of each version
  std::vector<Portion> questions_;
  uint64_t answers_ = 0;
};

}  // namespace sluice::parts
