// The order of durability: every phase with every event, and every change from one phase to another.
// SPDX-License-Identifier: Apache-2.0
#include "control/destination/commit.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace sluice::transfer {
namespace {

using E = CommitEvent;
using A = CommitAction;

constexpr CommitPhase kPhases[] = {
    CommitPhase::kReceiving, CommitPhase::kSyncing,     CommitPhase::kSuspecting, CommitPhase::kJournalling,
    CommitPhase::kFinishing, CommitPhase::kReadingBack, CommitPhase::kRecording,  CommitPhase::kNaming,
    CommitPhase::kNoting,    CommitPhase::kNamed};
constexpr E kEvents[] = {E::kSyncDue, E::kFinishDue, E::kGood, E::kGoodReadBack, E::kBad};

// One way into each phase.
const std::map<CommitPhase, std::vector<E>> kWays = {
    {CommitPhase::kReceiving, {}},
    {CommitPhase::kSyncing, {E::kSyncDue}},
    {CommitPhase::kSuspecting, {E::kSyncDue, E::kBad}},
    {CommitPhase::kJournalling, {E::kSyncDue, E::kGood}},
    {CommitPhase::kFinishing, {E::kFinishDue}},
    {CommitPhase::kReadingBack, {E::kFinishDue, E::kGoodReadBack}},
    {CommitPhase::kRecording, {E::kFinishDue, E::kGood}},
    {CommitPhase::kNaming, {E::kFinishDue, E::kGood, E::kGood}},
    {CommitPhase::kNoting, {E::kFinishDue, E::kGood, E::kGood, E::kGood}},
    {CommitPhase::kNamed, {E::kFinishDue, E::kGood, E::kGood, E::kGood, E::kGood}},
};

Commit in(CommitPhase phase) {
  Commit commit;
  for (const E event : kWays.at(phase)) (void)commit.step(event);
  EXPECT_EQ(commit.phase(), phase);
  return commit;
}

struct Expected {
  CommitPhase phase;
  A action;
};
// What docs/ARCHITECTURE.md says of durability, written down once more. What is not here is a defect.
const std::map<std::pair<CommitPhase, E>, Expected> kExpected = {
    {{CommitPhase::kReceiving, E::kSyncDue}, {CommitPhase::kSyncing, A::kSync}},
    {{CommitPhase::kReceiving, E::kFinishDue}, {CommitPhase::kFinishing, A::kFinish}},
    {{CommitPhase::kSyncing, E::kGood}, {CommitPhase::kJournalling, A::kJournal}},
    {{CommitPhase::kSyncing, E::kBad}, {CommitPhase::kSuspecting, A::kNoteSuspect}},
    {{CommitPhase::kSuspecting, E::kGood}, {CommitPhase::kReceiving, A::kForget}},
    {{CommitPhase::kSuspecting, E::kBad}, {CommitPhase::kReceiving, A::kForget}},
    {{CommitPhase::kJournalling, E::kGood}, {CommitPhase::kReceiving, A::kReport}},
    {{CommitPhase::kJournalling, E::kBad}, {CommitPhase::kReceiving, A::kTakeBack}},
    {{CommitPhase::kFinishing, E::kGood}, {CommitPhase::kRecording, A::kRecord}},
    {{CommitPhase::kFinishing, E::kGoodReadBack}, {CommitPhase::kReadingBack, A::kReadBack}},
    {{CommitPhase::kFinishing, E::kBad}, {CommitPhase::kSuspecting, A::kNoteSuspect}},
    {{CommitPhase::kReadingBack, E::kGood}, {CommitPhase::kRecording, A::kRecord}},
    {{CommitPhase::kReadingBack, E::kBad}, {CommitPhase::kReceiving, A::kFail}},
    {{CommitPhase::kRecording, E::kGood}, {CommitPhase::kNaming, A::kName}},
    {{CommitPhase::kRecording, E::kBad}, {CommitPhase::kReceiving, A::kFail}},
    {{CommitPhase::kNaming, E::kGood}, {CommitPhase::kNoting, A::kNote}},
    {{CommitPhase::kNaming, E::kBad}, {CommitPhase::kReceiving, A::kFail}},
    {{CommitPhase::kNoting, E::kGood}, {CommitPhase::kNamed, A::kTell}},
    {{CommitPhase::kNoting, E::kBad}, {CommitPhase::kNamed, A::kTell}},
};

TEST(Commit, EachPhaseGoesOnAsExpectedAfterEachEventThatItHas) {
  for (const auto& [at, expected] : kExpected) {
    Commit commit = in(at.first);
    EXPECT_EQ(commit.step(at.second), expected.action)
        << static_cast<int>(at.first) << ", " << static_cast<int>(at.second);
    EXPECT_EQ(commit.phase(), expected.phase);
  }
}

TEST(CommitDeathTest, AnEventThatAPhaseDoesNotHaveEndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "fast");
  size_t defects = 0;
  for (const CommitPhase phase : kPhases) {
    for (const E event : kEvents) {
      if (kExpected.contains({phase, event})) continue;
      Commit commit = in(phase);
      EXPECT_DEATH((void)commit.step(event), "each phase of a commit has its events");
      ++defects;
    }
  }
  EXPECT_EQ(defects + kExpected.size(), std::size(kPhases) * std::size(kEvents));
}

// Every pair of phases: which may follow which, whatever happens.
TEST(Commit, FromEachPhaseOnlyTheseAreReachedInOneStep) {
  const std::map<CommitPhase, std::set<CommitPhase>> next = {
      {CommitPhase::kReceiving, {CommitPhase::kSyncing, CommitPhase::kFinishing}},
      {CommitPhase::kSyncing, {CommitPhase::kJournalling, CommitPhase::kSuspecting}},
      {CommitPhase::kSuspecting, {CommitPhase::kReceiving}},
      {CommitPhase::kJournalling, {CommitPhase::kReceiving}},
      {CommitPhase::kFinishing,
       {CommitPhase::kRecording, CommitPhase::kReadingBack, CommitPhase::kSuspecting}},
      {CommitPhase::kReadingBack, {CommitPhase::kRecording, CommitPhase::kReceiving}},
      {CommitPhase::kRecording, {CommitPhase::kNaming, CommitPhase::kReceiving}},
      {CommitPhase::kNaming, {CommitPhase::kNoting, CommitPhase::kReceiving}},
      {CommitPhase::kNoting, {CommitPhase::kNamed}},
      {CommitPhase::kNamed, {}},
  };
  for (const CommitPhase from : kPhases) {
    std::set<CommitPhase> reached;
    for (const E event : kEvents) {
      if (!kExpected.contains({from, event})) continue;
      Commit commit = in(from);
      (void)commit.step(event);
      reached.insert(commit.phase());
    }
    for (const CommitPhase to : kPhases) {
      EXPECT_EQ(reached.contains(to), next.at(from).contains(to))
          << "from " << static_cast<int>(from) << " to " << static_cast<int>(to);
    }
  }
}

// Nothing is told before it is certain: the steps before each word to the source or the file system.
TEST(Commit, TheOrderIsSyncJournalReportAndFinishRecordNameNoteTell) {
  Commit commit;
  std::vector<A> actions;
  for (const E event :
       {E::kSyncDue, E::kGood, E::kGood, E::kFinishDue, E::kGood, E::kGood, E::kGood, E::kGood}) {
    actions.push_back(commit.step(event));
  }
  EXPECT_EQ(actions, (std::vector<A>{A::kSync, A::kJournal, A::kReport, A::kFinish, A::kRecord, A::kName,
                                     A::kNote, A::kTell}));
  EXPECT_EQ(commit.phase(), CommitPhase::kNamed);
}

TEST(Commit, ADiskThatFailedIsReadBackBeforeTheNameIsRecorded) {
  Commit commit;
  std::vector<A> actions;
  for (const E event :
       {E::kSyncDue, E::kBad, E::kGood, E::kFinishDue, E::kGoodReadBack, E::kGood, E::kGood}) {
    actions.push_back(commit.step(event));
  }
  EXPECT_EQ(actions, (std::vector<A>{A::kSync, A::kNoteSuspect, A::kForget, A::kFinish, A::kReadBack,
                                     A::kRecord, A::kName}));
}

TEST(Commit, IsIdleOnlyWhereNothingIsUnderWay) {
  for (const CommitPhase phase : kPhases) {
    EXPECT_EQ(in(phase).idle(), phase == CommitPhase::kReceiving || phase == CommitPhase::kNamed);
  }
}

TEST(Commit, AfterEachErrorItBeginsAnewOrIsNamed) {
  for (const auto& [at, expected] : kExpected) {
    if (at.second != E::kBad) continue;
    Commit commit = in(at.first);
    (void)commit.step(E::kBad);
    if (commit.phase() == CommitPhase::kSuspecting) (void)commit.step(E::kBad);
    EXPECT_TRUE(commit.idle());
    if (commit.phase() == CommitPhase::kNamed) continue;
    EXPECT_EQ(commit.step(E::kFinishDue), A::kFinish);
  }
}

TEST(Commit, WhatIsFoundUnderItsNameIsNamed) {
  Commit commit;
  commit.found_named();
  EXPECT_EQ(commit.phase(), CommitPhase::kNamed);
  EXPECT_TRUE(commit.idle());
}

}  // namespace
}  // namespace sluice::transfer
