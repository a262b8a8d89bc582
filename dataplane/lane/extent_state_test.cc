// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/extent_state.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::lane {
namespace {

template <typename State>
void walk(const std::vector<State>& states) {
  State state = states.front();
  for (size_t i = 1; i < states.size(); ++i) change(&state, states[i]);
  EXPECT_EQ(state, State::kFree) << "every life ends where the next one begins";
}

TEST(ExtentState, LivesOfAnExtentThatIsSent) {
  using enum TxExtentState;
  walk<TxExtentState>({kFree, kReading, kReady, kHeld, kDraining, kFree});
  walk<TxExtentState>({kFree, kReady, kHeld, kDraining, kFree});     // generated or mapped
  walk<TxExtentState>({kFree, kReading, kReady, kDraining, kFree});  // a repair; a flow that is closed
}

TEST(ExtentState, LivesOfAnExtentThatIsReceived) {
  using enum RxExtentState;
  walk<RxExtentState>({kFree, kFilling, kWriting, kFree});
  walk<RxExtentState>({kFree, kFilling, kFree});
}

TEST(ExtentState, NoBufferGoesToAnotherWhileDiskOrDeviceHaveIt) {
  using enum TxExtentState;
  for (const TxExtentState from : {kReading, kReady, kHeld}) EXPECT_FALSE(may_become(from, kFree));
  for (const TxExtentState to : {kHeld, kDraining, kFree}) EXPECT_FALSE(may_become(kReading, to));
  for (const TxExtentState from : {kReading, kReady, kHeld, kDraining}) {
    EXPECT_FALSE(may_become(from, kReading)) << "the disk writes only into what nobody has";
  }
  EXPECT_FALSE(may_become(RxExtentState::kWriting, RxExtentState::kFilling));
  EXPECT_FALSE(may_become(RxExtentState::kFree, RxExtentState::kWriting));
  TxExtentState state = kReading;
  EXPECT_DEATH(change(&state, kFree), "belongs to one at a time");
}

}  // namespace
}  // namespace sluice::lane
