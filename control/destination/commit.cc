// SPDX-License-Identifier: Apache-2.0
#include "control/destination/commit.h"

#include "dataplane/base/check.h"

namespace sluice::transfer {
namespace {

struct Row {
  CommitPhase phase;
  CommitEvent event;
  CommitPhase next;
  CommitAction action;
};

// The order of durability.
constexpr Row kTable[] = {
    {CommitPhase::kReceiving, CommitEvent::kSyncDue, CommitPhase::kSyncing, CommitAction::kSync},
    {CommitPhase::kSyncing, CommitEvent::kGood, CommitPhase::kJournalling, CommitAction::kJournal},
    {CommitPhase::kSyncing, CommitEvent::kBad, CommitPhase::kSuspecting, CommitAction::kNoteSuspect},
    // Whether the journal took the note or not: what was not certain is asked for again.
    {CommitPhase::kSuspecting, CommitEvent::kGood, CommitPhase::kReceiving, CommitAction::kForget},
    {CommitPhase::kSuspecting, CommitEvent::kBad, CommitPhase::kReceiving, CommitAction::kForget},
    {CommitPhase::kJournalling, CommitEvent::kGood, CommitPhase::kReceiving, CommitAction::kReport},
    {CommitPhase::kJournalling, CommitEvent::kBad, CommitPhase::kReceiving, CommitAction::kTakeBack},

    {CommitPhase::kReceiving, CommitEvent::kFinishDue, CommitPhase::kFinishing, CommitAction::kFinish},
    {CommitPhase::kFinishing, CommitEvent::kGood, CommitPhase::kRecording, CommitAction::kRecord},
    {CommitPhase::kFinishing, CommitEvent::kGoodReadBack, CommitPhase::kReadingBack, CommitAction::kReadBack},
    // The last sync is a sync like any other: what was not certain before it may be lost.
    {CommitPhase::kFinishing, CommitEvent::kBad, CommitPhase::kSuspecting, CommitAction::kNoteSuspect},
    {CommitPhase::kReadingBack, CommitEvent::kGood, CommitPhase::kRecording, CommitAction::kRecord},
    {CommitPhase::kReadingBack, CommitEvent::kBad, CommitPhase::kReceiving, CommitAction::kFail},
    {CommitPhase::kRecording, CommitEvent::kGood, CommitPhase::kNaming, CommitAction::kName},
    {CommitPhase::kRecording, CommitEvent::kBad, CommitPhase::kReceiving, CommitAction::kFail},
    {CommitPhase::kNaming, CommitEvent::kGood, CommitPhase::kNoting, CommitAction::kNote},
    {CommitPhase::kNaming, CommitEvent::kBad, CommitPhase::kReceiving, CommitAction::kFail},
    // If the note is lost, the file that is found under the final name says the same.
    {CommitPhase::kNoting, CommitEvent::kGood, CommitPhase::kNamed, CommitAction::kTell},
    {CommitPhase::kNoting, CommitEvent::kBad, CommitPhase::kNamed, CommitAction::kTell},
};

}  // namespace

CommitAction Commit::step(CommitEvent event) {
  for (const Row& row : kTable) {
    if (row.phase != phase_ || row.event != event) continue;
    phase_ = row.next;
    return row.action;
  }
  CHECK(false, "each phase of a commit has its events");
}

}  // namespace sluice::transfer
