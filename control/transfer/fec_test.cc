// What a transfer does about erasure codes: its flows may use what both nodes agreed upon, and nothing else.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/transfer/transfer_fixture.h"

namespace sluice::transfer::test {
namespace {

using options::Fec;

Scene with_fec(Role role, Fec fec) {
  Scene scene{.role = role};
  scene.options.fec = fec;
  return scene;
}

// Of the flows that it opened, which must be alike.
board::FlowConfig opened_flow(const World& world) {
  std::vector<board::FlowConfig> opened;
  for (const Effect& effect : world.effects) {
    if (const auto* const flow = std::get_if<OpenFlow>(&effect)) opened.push_back(flow->config);
  }
  EXPECT_FALSE(opened.empty());
  for (const board::FlowConfig& flow : opened) {
    EXPECT_EQ(flow.codes, opened.front().codes);
    EXPECT_EQ(flow.choice.parity, opened.front().choice.parity);
  }
  return opened.empty() ? board::FlowConfig() : opened.front();
}

// The peer is of before erasure codes.
void make_old(Message& message) {
  if (auto* set = std::get_if<SpecificationSet>(&message)) set->abilities = {};
}

TEST(FecOfATransfer, FlowsMayUseWhatTheOperatorAllowed) {
  for (const Role role : {Role::kSource, Role::kDestination}) {
    World demanded(with_fec(role, Fec::kReedSolomon));
    demanded.start();
    EXPECT_EQ(opened_flow(demanded).codes, board::kCodeReedSolomon);
    EXPECT_EQ(opened_flow(demanded).choice.parity, board::Parity::kWhereLost);
    EXPECT_EQ(demanded.transfer().view(demanded.now_ns).extras.fec, "rs");

    World free(with_fec(role, Fec::kAuto));
    free.start();
    EXPECT_EQ(opened_flow(free).codes, board::kCodesKnown);
    EXPECT_EQ(opened_flow(free).choice.parity, board::Parity::kWhereItPays);
    EXPECT_EQ(free.transfer().view(free.now_ns).extras.fec, "auto");

    World off(with_fec(role, Fec::kOff));
    off.start();
    EXPECT_EQ(opened_flow(off).codes, 0);
    EXPECT_EQ(off.transfer().view(off.now_ns).extras.fec, "off");
  }
}

TEST(FecOfATransfer, WhoeverIsCalledDoesWhatTheCallerDemands) {
  for (const Role role : {Role::kSource, Role::kDestination}) {
    Scene scene = with_fec(role, Fec::kOff);
    scene.initiator = false;
    World world(scene);
    world.twist = [](Message& message) {
      auto* const wishes = std::get_if<Specification>(&message);
      if (wishes == nullptr) return;
      wishes->abilities.set(Ability::kReedSolomon, false);
      wishes->abilities.set(Ability::kRaptorQ);
      wishes->abilities.set(Ability::kParityDemanded);
    };
    world.start();
    EXPECT_EQ(opened_flow(world).codes, board::kCodeRaptorQ);
    EXPECT_EQ(opened_flow(world).choice.parity, board::Parity::kWhereLost);
  }
}

TEST(FecOfATransfer, AnOlderPeerEndsWhatDemandsACodeAndNothingElse) {
  for (const Role role : {Role::kSource, Role::kDestination}) {
    World demanded(with_fec(role, Fec::kRaptorQ));
    demanded.twist = make_old;
    demanded.start();
    EXPECT_EQ(demanded.error(), ErrorCode::kIncompatible);

    World free(with_fec(role, Fec::kAuto));
    free.twist = make_old;
    free.start();
    EXPECT_EQ(free.state(), ViewState::kSucceeded);
    EXPECT_EQ(opened_flow(free).codes, 0);
  }
}

}  // namespace
}  // namespace sluice::transfer::test
