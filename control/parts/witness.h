// Whether one source has all of an object as it came from several.
//
// Pure. Replicas are compared in a few extents before they are mixed, which tells two files of one size apart
// and not two versions of one file. So one of the sources, the witness, says the digest of each extent that
// others were asked for, beside the data. With those of its own they make the digest of the whole as it has
// it.
//
// Memory. Digests are kept folded (recovery::ExtentLedger), as each source has said them, so that another one
// can be the witness when the first is gone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "control/parts/run_set.h"
#include "control/parts/words.h"
#include "control/recovery/extent_ledger.h"
#include "dataplane/base/number.h"

namespace sluice::parts {

class Witness {
 public:
  // `holes`: ranges of whole extents that are zeros, of which nobody says anything.
  Witness(ObjectId object, const recovery::Layout& layout, std::vector<Range> holes);

  // This is there, and nobody knows who brought it.
  void held(const ExtentMap& there);
  // It has these and no others. A source has to say what counted as zeros before, whoever sends it.
  void has_holes(std::vector<Range> holes);
  void asked(LegId leg, ExtentRun extents);  // to send them
  // ExtentDigests of any kind; the first word counts.
  void said(LegId leg, ExtentId first, std::span<const uint64_t> digests);

  // Something is held or in doubt, or several legs were asked for some of it.
  bool needed() const { return held_ || doubted_ || senders_.size() > 1; }
  bool held_before() const { return held_; }
  std::optional<LegId> witness() const { return witness_; }
  // From now on this leg is asked for what it has not said and is not to send.
  void choose(LegId leg);
  // All of it is there: nobody sends any more of it.
  void all_sent();
  // The leg is silent: it is the witness no more. It still owes what it was asked, and its answers count.
  void dismiss(LegId leg);
  // The leg is gone, or its stream is: it owes nothing either.
  void leave(LegId leg);
  // The next question to the witness (DigestsWanted), of at most so many extents.
  std::optional<Portion> take_question(uint64_t extents_most);
  // Of the whole as the witness has it; none: it has not said all.
  std::optional<uint64_t> digest() const;
  bool due() const { return witness_ && !due_.empty(); }
  bool idle() const { return due_.empty() && (!witness_ || unanswered(*witness_) == 0); }  // it owes nothing
  uint64_t unanswered(LegId leg) const;                                                    // extents
  uint64_t answers() const { return answers_; }  // to questions, of all witnesses

 private:
  struct Source {
    recovery::ExtentLedger said;
    RunSet sends;  // asked of it last
    RunSet asked;  // for their digests, and not answered
  };
  Source& source(LegId leg);
  void name(const ExtentMap& extents);                     // but for holes
  void ask_for(const Source& witness, ExtentRun extents);  // as far as it neither has said nor owes them

  ObjectId object_;
  recovery::Layout layout_;
  std::vector<Range> holes_;
  bool held_ = false;
  bool doubted_ = false;
  std::set<LegId> senders_;
  std::map<LegId, Source> sources_;
  RunSet named_;  // held, or asked of anyone
  std::optional<LegId> witness_;
  RunSet due_;  // to be asked of the witness
  uint64_t answers_ = 0;
};

}  // namespace sluice::parts
