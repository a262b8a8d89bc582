// A transfer does some steps while its journal is written. Others wait until the journal knows.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

// The connection may be open when the journal knows: nothing is said on it before.
TEST(BesideTheJournal, WhoCallsAtOnceDialsWhileTheJournalIsToldOfTheRequest) {
  for (const bool at_once : {false, true}) {
    for (const Scene& scene : {source(), destination()}) {
      SCOPED_TRACE(name_of(scene));
      World world(scene);
      world.hold(Entry::kRequest);
      world.post(Begin{.at_once = at_once});
      world.attach();
      EXPECT_EQ(world.count<Dial>(), at_once ? 1U : 0U);
      EXPECT_EQ(world.count<Call>(), 0U);
      EXPECT_TRUE(world.said<Hello>().empty());
      world.release();
      world.pass(kLongNs);
      EXPECT_EQ(world.count<Call>(), 1U);
      EXPECT_EQ(world.count<Dial>(), at_once ? 1U : 0U);
      EXPECT_EQ(world.state(), ViewState::kSucceeded);
    }
  }
}

// Whichever takes longer: nothing moves, and the peer is named no flow, before both are done.
TEST(BesideTheJournal, FlowsAreOpenedWhileTheJournalIsToldAndUsedWhenItKnows) {
  for (const Scene& scene : every_scene()) {
    for (const bool journal_last : {true, false}) {
      SCOPED_TRACE(name_of(scene) + (journal_last ? ", journal last" : ", flows last"));
      World world(scene);
      if (journal_last) {
        world.hold(Entry::kAgreed);
      } else {
        world.hold<OpenFlow>();
      }
      world.start();
      world.tick();
      EXPECT_EQ(world.handshake_phase(), journal_last ? HandshakePhase::kJournal : HandshakePhase::kOpening);
      EXPECT_EQ(world.count<OpenFlow>(), 1U);
      EXPECT_EQ(world.count(Entry::kAgreed), 1U);
      EXPECT_EQ(world.count<CommandLane>(), 0U);
      EXPECT_TRUE(world.said<TransferReady>().empty());
      world.release();
      world.pass(kLongNs);
      EXPECT_EQ(world.state(), ViewState::kSucceeded);
    }
  }
}

TEST(BesideTheJournal, AJournalThatDoesNotTakeWhatWasAgreedUponHasTheFlowsClosed) {
  for (const Scene& scene : every_scene()) {
    SCOPED_TRACE(name_of(scene));
    World world(scene);
    world.fail(Entry::kAgreed, ErrorCode::kStorage);
    world.start();
    EXPECT_EQ(world.count<OpenFlow>(), 1U);
    EXPECT_EQ(world.count<CloseFlow>(), 1U);
    EXPECT_FALSE(world.flows_open());
    EXPECT_EQ(world.count<CommandLane>(), 0U);
    EXPECT_TRUE(world.said<TransferReady>().empty());
  }
}

}  // namespace
}  // namespace sluice::transfer::test
