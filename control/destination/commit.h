// One object's way from "written" to its final name: the order of durability, which stands here once.
//
// Words: *written* is what the dataplane has handed to the file system; *durable* is what a sync covers and
// the journal knows; *finishing* is complete, cut to size and synced, with that noted; *named* stands under
// its final name, in a synced directory. Nothing is reported before it is durable, and nothing gets its name
// before it is complete, equal to what the source sent, and synced.
//
// Pure: a phase, what just ended, and the table in commit.cc say what comes next. The caller does it and says
// how it ended. One thing at a time for each object; objects do not wait for each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::transfer {

enum class CommitPhase : uint8_t {
  kReceiving,    // nothing is under way
  kSyncing,      // what was written is being synced
  kSuspecting,   // that failed: the journal is told, before anything else is
  kJournalling,  // the CRCs of what was synced go into the journal
  kFinishing,    // complete: cut to its size, mode and times set, synced
  kReadingBack,  // its disk failed once, or an operator asked for it: what it gives back is compared
  kRecording,    // the journal is told that it is finishing, and which file it is
  kNaming,       // its final name
  kNoting,       // the journal is told that it has it
  kNamed,
};

enum class CommitEvent : uint8_t {
  kSyncDue,
  kFinishDue,
  kGood,          // what was under way has ended well
  kGoodReadBack,  // so has finishing, and this file is read back before it gets its name
  kBad,
};

enum class CommitAction : uint8_t {
  kSync,
  kNoteSuspect,
  kForget,  // nothing since the last good sync is certain any more
  kJournal,
  kTakeBack,  // the journal did not take it: it counts as written only
  kReport,    // to the source: durable
  kFinish,
  kReadBack,
  kRecord,
  kName,
  kNote,
  kTell,  // to the source: done
  kFail,  // the attempt ends with the error of what was under way
};

class Commit {
 public:
  CommitPhase phase() const { return phase_; }
  bool idle() const { return phase_ == CommitPhase::kReceiving || phase_ == CommitPhase::kNamed; }
  // What to do now. An event that the phase does not have is a defect of the caller (CHECK).
  CommitAction step(CommitEvent event);
  // Found under its final name after a restart.
  void found_named() { phase_ = CommitPhase::kNamed; }

 private:
  CommitPhase phase_ = CommitPhase::kReceiving;
};

}  // namespace sluice::transfer
