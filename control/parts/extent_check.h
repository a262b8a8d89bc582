// An extent counts only once the source on whose leg it came has said its digest.
//
// Pure. A worker's event says what was written and its CRC; the source's ExtentDigests say what was read.
// They come in either order. Both are kept until they meet, and then the extent is confirmed or wrong.
//
// Two legs may write one extent: it was asked of both, or a source sends what nobody asked of it. Writes of
// different bytes leave the file in doubt, so such an extent is in conflict and must be fetched again. Equal
// writes are harmless. A second write is compared with the CRC of the first where that is kept. Where it is
// not, the two count as different.
//
// Memory. A leg's digests are kept only for extents that it was asked for and that are not confirmed. Writes
// that wait for their digest may be kWritesMax for a leg; a leg with more is in arrears, and the owner drops
// it. The CRC of a confirmed extent is kept only while another leg was asked for it, too. Which leg brought
// which extent is kept in runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "control/parts/run_set.h"
#include "control/parts/source_runs.h"
#include "control/parts/words.h"
#include "dataplane/base/number.h"

namespace sluice::parts {

class ExtentCheck {
 public:
  static constexpr size_t kWritesMax = 65536;  // of a leg, that wait for a digest

  struct Verdict {
    LegId leg;
    ObjectId object;
    ExtentId extent;
    uint64_t crc = 0;  // as written
  };
  struct Conflict {
    ObjectId object;
    ExtentId extent;
    LegId first;        // who wrote it before, as far as that is known
    LegId second;       // who wrote other bytes
    bool asked = true;  // false: nobody had asked the second one
  };
  struct Verdicts {
    std::vector<Verdict> confirmed;  // hand the event to the Receiver, tell Planner::arrived
    std::vector<Verdict> wrong;  // the source said another digest than was written: forgotten, fetch again
    std::vector<Conflict> conflicts;  // forgotten here, and not there any more: fetch again
    // Written once more, maybe with other bytes: forgotten here, fetch it again.
    std::vector<Verdict> rewritten;
    std::vector<LegId> in_arrears;  // owes more digests than kWritesMax
    bool empty() const {
      return confirmed.empty() && wrong.empty() && conflicts.empty() && rewritten.empty() &&
             in_arrears.empty();
    }
  };

  // Before anything else is said of this object.
  void add(ObjectId object, uint64_t extents);
  // These extents are asked of this leg. That they are withdrawn later changes nothing here: the leg may have
  // begun them.
  void asked(LegId leg, ObjectId object, ExtentRun extents);
  void written(LegId leg, ObjectId object, ExtentId extent, uint64_t crc);
  // Digests of neighbouring extents, from `first` on.
  void said(LegId leg, ObjectId object, ExtentId first, std::span<const uint64_t> digests);
  Verdicts take_verdicts();

  // The flows of this leg have ended. Returns what was written through them and never confirmed: it is to be
  // forgotten (Planner::forgotten), as it may have touched what another leg wrote.
  std::vector<Place> drop(LegId leg);
  // These extents are not there any more (Planner::forgotten, Actions::begin_anew).
  void forget(ObjectId object, ExtentRun extents);
  void remove(ObjectId object);  // done or failed: nothing more comes of it that matters

  // Written, with no digest yet: on a new stream of the same flows the source must say these again.
  std::vector<Place> unconfirmed(LegId leg) const;
  // The leg that brought this extent, and all runs of one leg: for naming a source that lied.
  std::optional<LegId> source_of(ObjectId object, ExtentId extent) const;
  std::vector<ExtentRun> brought_by(LegId leg, ObjectId object) const;
  bool brought_all(LegId leg, ObjectId object) const;
  uint64_t confirmed_extents(LegId leg) const;  // of all objects
  // The last extent of this object that was confirmed and is still there: for Replicas::compare.
  std::optional<Verdict> known(ObjectId object) const;
  void check_invariants() const;  // where DCHECKs are on

 private:
  struct Write {
    LegId leg;
    uint64_t crc = 0;
  };
  struct Leg {
    std::map<Place, uint64_t> digests;  // said, and nothing is written yet
    size_t waiting = 0;                 // writes without a digest
    uint64_t confirmed = 0;             // extents
    bool in_arrears = false;
  };
  struct Object {
    uint64_t extents = 0;
    std::map<LegId, RunSet> asked;
    SourceRuns sources;
    std::optional<Verdict> last;
  };

  bool was_asked(LegId leg, Place place) const;
  std::optional<LegId> who_said(Place place, uint64_t crc) const;
  bool others_were_asked(LegId leg, Place place) const;
  void keep(LegId leg, Place place, uint64_t crc);
  void judge(LegId leg, Place place, uint64_t written, uint64_t said);
  void drop_writes(Place place);
  void in_conflict(const Conflict& conflict);

  std::map<ObjectId, Object> objects_;
  std::map<LegId, Leg> legs_;
  std::map<Place, std::vector<Write>> writes_;  // that wait for a digest
  std::map<Place, uint64_t> crcs_;              // of confirmed extents that another leg was asked for, too
  Verdicts verdicts_;
};

}  // namespace sluice::parts
