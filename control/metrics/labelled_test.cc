// Labels are bounded, go to those that run, and what the rest counts only grows.
// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/labelled.h"

#include <gtest/gtest.h>

namespace sluice::metrics {
namespace {

using transfer::ViewState;

SessionFigures session(const std::string& id, ViewState state, uint64_t bytes) {
  SessionFigures figures;
  figures.view.id = id;
  figures.view.state = state;
  figures.view.summary.bytes_sent = bytes;
  return figures;
}

TEST(Labelled, ThoseThatRunComeFirstThenThoseThatWereAskedForFirst) {
  Labelled labelled(2);
  labelled.update({session("a", ViewState::kPaused, 0), session("b", ViewState::kQueued, 0),
                   session("c", ViewState::kTransferring, 0)});
  EXPECT_TRUE(labelled.has("c"));
  EXPECT_TRUE(labelled.has("a"));
  EXPECT_FALSE(labelled.has("b"));
  EXPECT_EQ(labelled.without(), 1U);
}

TEST(Labelled, WhoHasALabelKeepsItBeforeAnotherThatRuns) {
  Labelled labelled(1);
  labelled.update({session("b", ViewState::kTransferring, 0)});
  labelled.update({session("a", ViewState::kTransferring, 0), session("b", ViewState::kFinishing, 0)});
  EXPECT_TRUE(labelled.has("b"));
  EXPECT_FALSE(labelled.has("a"));
}

TEST(Labelled, OneThatRestsGivesItsLabelToOneThatRuns) {
  Labelled labelled(1);
  labelled.update({session("a", ViewState::kTransferring, 0)});
  labelled.update({session("a", ViewState::kWaiting, 0), session("b", ViewState::kNegotiating, 0)});
  EXPECT_TRUE(labelled.has("b"));
}

TEST(Labelled, OneThatHasEndedGivesItsLabelAway) {
  Labelled labelled(1);
  labelled.update({session("a", ViewState::kTransferring, 0), session("b", ViewState::kTransferring, 0)});
  labelled.update({session("b", ViewState::kTransferring, 0)});
  EXPECT_FALSE(labelled.has("a"));
  EXPECT_TRUE(labelled.has("b"));
  EXPECT_EQ(labelled.without(), 0U);
}

TEST(Labelled, OthersCountOnlyWhatTheyDoWithoutALabel) {
  Labelled labelled(1);
  labelled.update({session("a", ViewState::kTransferring, 1000), session("b", ViewState::kTransferring, 70)});
  EXPECT_EQ(labelled.others().payload_bytes, 0U) << "the past of b is not what others do now";
  labelled.update(
      {session("a", ViewState::kTransferring, 2000), session("b", ViewState::kTransferring, 100)});
  EXPECT_EQ(labelled.others().payload_bytes, 30U);
  // a rests and joins the others, b gets its label.
  labelled.update({session("a", ViewState::kPaused, 2500), session("b", ViewState::kTransferring, 150)});
  EXPECT_EQ(labelled.others().payload_bytes, 30U) << "neither brings what it counted with a label";
  labelled.update({session("a", ViewState::kPaused, 2600), session("b", ViewState::kTransferring, 900)});
  EXPECT_EQ(labelled.others().payload_bytes, 130U);
}

TEST(Labelled, OthersNeverCountLessThanBefore) {
  Labelled labelled(0);
  labelled.update({session("a", ViewState::kTransferring, 0), session("b", ViewState::kTransferring, 0)});
  labelled.update({session("a", ViewState::kTransferring, 500), session("b", ViewState::kTransferring, 10)});
  ASSERT_EQ(labelled.others().payload_bytes, 510U);
  labelled.update({session("b", ViewState::kTransferring, 5)});  // a has ended, b was counted anew
  EXPECT_EQ(labelled.others().payload_bytes, 510U);
  labelled.update({});
  EXPECT_EQ(labelled.others().payload_bytes, 510U);
  EXPECT_EQ(labelled.without(), 0U);
}

}  // namespace
}  // namespace sluice::metrics
