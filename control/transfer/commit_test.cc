// The order of durability: every phase with every event, and every change from one phase to another.
// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/commit.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace sluice::transfer {
namespace {

using P = CommitPhase;
using E = CommitEvent;
using A = CommitAction;

constexpr P kPhases[] = {P::kReceiving,   P::kSyncing,   P::kSuspecting, P::kJournalling, P::kFinishing,
                         P::kReadingBack, P::kRecording, P::kNaming,     P::kNoting,      P::kNamed};
constexpr E kEvents[] = {E::kSyncDue, E::kFinishDue, E::kGood, E::kGoodReadBack, E::kBad};

// One way into each phase.
const std::map<P, std::vector<E>> kWays = {
    {P::kReceiving, {}},
    {P::kSyncing, {E::kSyncDue}},
    {P::kSuspecting, {E::kSyncDue, E::kBad}},
    {P::kJournalling, {E::kSyncDue, E::kGood}},
    {P::kFinishing, {E::kFinishDue}},
    {P::kReadingBack, {E::kFinishDue, E::kGoodReadBack}},
    {P::kRecording, {E::kFinishDue, E::kGood}},
    {P::kNaming, {E::kFinishDue, E::kGood, E::kGood}},
    {P::kNoting, {E::kFinishDue, E::kGood, E::kGood, E::kGood}},
    {P::kNamed, {E::kFinishDue, E::kGood, E::kGood, E::kGood, E::kGood}},
};

Commit in(P phase) {
  Commit commit;
  for (const E event : kWays.at(phase)) (void)commit.step(event);
  EXPECT_EQ(commit.phase(), phase);
  return commit;
}

struct Expected {
  P phase;
  A action;
};
// What docs/ARCHITECTURE.md says of durability, written down once more. What is not here is a defect.
const std::map<std::pair<P, E>, Expected> kExpected = {
    {{P::kReceiving, E::kSyncDue}, {P::kSyncing, A::kSync}},
    {{P::kReceiving, E::kFinishDue}, {P::kFinishing, A::kFinish}},
    {{P::kSyncing, E::kGood}, {P::kJournalling, A::kJournal}},
    {{P::kSyncing, E::kBad}, {P::kSuspecting, A::kNoteSuspect}},
    {{P::kSuspecting, E::kGood}, {P::kReceiving, A::kForget}},
    {{P::kSuspecting, E::kBad}, {P::kReceiving, A::kForget}},
    {{P::kJournalling, E::kGood}, {P::kReceiving, A::kReport}},
    {{P::kJournalling, E::kBad}, {P::kReceiving, A::kTakeBack}},
    {{P::kFinishing, E::kGood}, {P::kRecording, A::kRecord}},
    {{P::kFinishing, E::kGoodReadBack}, {P::kReadingBack, A::kReadBack}},
    {{P::kFinishing, E::kBad}, {P::kSuspecting, A::kNoteSuspect}},
    {{P::kReadingBack, E::kGood}, {P::kRecording, A::kRecord}},
    {{P::kReadingBack, E::kBad}, {P::kReceiving, A::kFail}},
    {{P::kRecording, E::kGood}, {P::kNaming, A::kName}},
    {{P::kRecording, E::kBad}, {P::kReceiving, A::kFail}},
    {{P::kNaming, E::kGood}, {P::kNoting, A::kNote}},
    {{P::kNaming, E::kBad}, {P::kReceiving, A::kFail}},
    {{P::kNoting, E::kGood}, {P::kNamed, A::kTell}},
    {{P::kNoting, E::kBad}, {P::kNamed, A::kTell}},
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
  for (const P phase : kPhases) {
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
  const std::map<P, std::set<P>> next = {
      {P::kReceiving, {P::kSyncing, P::kFinishing}},
      {P::kSyncing, {P::kJournalling, P::kSuspecting}},
      {P::kSuspecting, {P::kReceiving}},
      {P::kJournalling, {P::kReceiving}},
      {P::kFinishing, {P::kRecording, P::kReadingBack, P::kSuspecting}},
      {P::kReadingBack, {P::kRecording, P::kReceiving}},
      {P::kRecording, {P::kNaming, P::kReceiving}},
      {P::kNaming, {P::kNoting, P::kReceiving}},
      {P::kNoting, {P::kNamed}},
      {P::kNamed, {}},
  };
  for (const P from : kPhases) {
    std::set<P> reached;
    for (const E event : kEvents) {
      if (!kExpected.contains({from, event})) continue;
      Commit commit = in(from);
      (void)commit.step(event);
      reached.insert(commit.phase());
    }
    for (const P to : kPhases) {
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
  EXPECT_EQ(commit.phase(), P::kNamed);
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
  for (const P phase : kPhases) {
    EXPECT_EQ(in(phase).idle(), phase == P::kReceiving || phase == P::kNamed);
  }
}

TEST(Commit, AfterEachErrorItBeginsAnewOrIsNamed) {
  for (const auto& [at, expected] : kExpected) {
    if (at.second != E::kBad) continue;
    Commit commit = in(at.first);
    (void)commit.step(E::kBad);
    if (commit.phase() == P::kSuspecting) (void)commit.step(E::kBad);
    EXPECT_TRUE(commit.idle());
    if (commit.phase() == P::kNamed) continue;
    EXPECT_EQ(commit.step(E::kFinishDue), A::kFinish);
  }
}

TEST(Commit, WhatIsFoundUnderItsNameIsNamed) {
  Commit commit;
  commit.found_named();
  EXPECT_EQ(commit.phase(), P::kNamed);
  EXPECT_TRUE(commit.idle());
}

}  // namespace
}  // namespace sluice::transfer
