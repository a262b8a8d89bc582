// A probe: its flow has echoes, what came back wrong is shown, and one of a node is reflected at a time.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

Scene probe() {
  Scene scene{.sizes = {1}, .discard = true};
  scene.options.echoes = 500;
  scene.options.echo_bytes = 1000;
  return scene;
}

// The flow that the transfer opened; nothing: it opened none.
std::optional<board::FlowConfig> flow_of(const World& world) {
  for (const Effect& effect : world.effects) {
    if (const auto* const flow = std::get_if<OpenFlow>(&effect)) return flow->config;
  }
  return std::nullopt;
}

void ask_for_echoes(Message& message) {
  auto* const wishes = std::get_if<Specification>(&message);
  if (wishes == nullptr) return;
  wishes->abilities.set(Ability::kEchoes);
  wishes->discard = true;
}

TEST(Echoes, TheFlowOfAProbeSendsAsManyAsWereAskedFor) {
  World world(probe());
  world.start();
  ASSERT_TRUE(flow_of(world));
  EXPECT_EQ(flow_of(world)->echoes, 500U);
  EXPECT_EQ(flow_of(world)->echo_bytes, 1000U);
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
}

TEST(Echoes, NoOtherFlowHasAny) {
  World plain(Scene{.sizes = {1}, .discard = true});
  plain.start();
  EXPECT_EQ(flow_of(plain)->echoes, 0U);
  EXPECT_FALSE(plain.transfer().view(plain.now_ns).legs.front().echoes);
}

TEST(Echoes, APeerThatDoesNotReflectEndsTheProbe) {
  World world(probe());
  world.twist = [](Message& message) {
    if (auto* const set = std::get_if<SpecificationSet>(&message))
      set->abilities.set(Ability::kEchoes, false);
  };
  world.start();
  EXPECT_EQ(world.error(), ErrorCode::kIncompatible);
  EXPECT_FALSE(flow_of(world));
}

TEST(Echoes, WhatCameBackWrongIsShownOnceItIsOver) {
  const auto world = moving(probe());
  board::FlowState& state = world->flow().state;
  state.echoes = 500;
  state.echoes_came = 499;
  state.echoes_wrong = 1;
  state.echo_bytes_wrong = 2;
  world->tick();
  for (size_t i = 0; i < SourceEnd::kEchoFaultsMax + 5; ++i)
    world->post(FlowEvent{.event = {.kind = board::EventKind::kEchoFault,
                                    .object = 7,
                                    .offset = 8 * i,
                                    .length = 8,
                                    .digest = 1,
                                    .value = 2}});
  const auto shown = [&world] { return world->transfer().view(world->now_ns).legs.front(); };
  EXPECT_EQ(shown().figures.extra.echoes.sent, 500U);
  EXPECT_TRUE(shown().echoes->faults.empty()) << "each look would bring them all";
  state.echoes_over = 1;
  world->tick();
  EXPECT_EQ(shown().echoes->asked, 500U);
  EXPECT_EQ(shown().figures.extra.echoes.came, 499U);
  EXPECT_EQ(shown().figures.extra.echoes.wrong, 1U);
  EXPECT_EQ(shown().figures.extra.echoes.wrong_bytes, 2U);
  ASSERT_EQ(shown().echoes->faults.size(), SourceEnd::kEchoFaultsMax);
  EXPECT_EQ(shown().echoes->faults[3].offset, 24U);
}

// Echoes move, though no data does.
TEST(Echoes, AProbeDoesNotStandStillWhileTheyMove) {
  const auto world = moving(probe());
  const uint64_t half_ns = world->scene.settings.stall_timeout_ns / 2;
  for (uint64_t i = 1; i < 8; ++i) {
    world->flow().state.echoes = i;
    world->pass(half_ns);
    EXPECT_EQ(world->transfer().view(world->now_ns).summary.attempts, 1U);
  }
  world->pass(3 * half_ns);
  EXPECT_GT(world->transfer().view(world->now_ns).summary.attempts, 1U) << "nothing came any more";
}

TEST(Echoes, ANodeReflectsOneProbeOfAPeerAtATime) {
  Scene scene = called(destination());
  scene.sizes = {1};
  scene.discard = true;
  World first(scene);
  first.data = false;
  first.twist = ask_for_echoes;
  first.start();
  ASSERT_EQ(first.leg_phase(), LegPhase::kMoving)
      << (first.transfer().view(first.now_ns).error ? first.transfer().view(first.now_ns).error->message
                                                    : "");
  EXPECT_EQ(flow_of(first)->echoes, wire::kEchoesMax);

  // All transfers of a node share the places.
  World second(first.scene);
  second.twist = ask_for_echoes;
  second.start();
  EXPECT_EQ(second.error(), ErrorCode::kResources);
  EXPECT_FALSE(flow_of(second));

  first.data = true;
  first.pass(kSecondNs);
  EXPECT_EQ(first.state(), ViewState::kSucceeded);
  World third(first.scene);
  third.twist = ask_for_echoes;
  third.start();
  EXPECT_EQ(third.state(), ViewState::kSucceeded) << "the place was given back";
}

TEST(Echoes, OthersThanProbesOfThatPeerGoOn) {
  Reflecting reflecting;
  const Reflecting::Place alpha = reflecting.take("alpha");
  EXPECT_NE(alpha, nullptr);
  EXPECT_EQ(reflecting.take("alpha"), nullptr);
  Reflecting::Place beta = reflecting.take("beta");
  EXPECT_NE(beta, nullptr);
  beta.reset();
  EXPECT_NE(reflecting.take("beta"), nullptr);
}

}  // namespace
}  // namespace sluice::transfer::test
