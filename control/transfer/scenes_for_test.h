// The scenes with which tests of a transfer begin.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>

#include "control/transfer/transfer_fixture.h"

namespace sluice::transfer::test {

inline Scene source() { return {.role = Role::kSource}; }
inline Scene destination() { return {.role = Role::kDestination}; }
// Of one file, with whose errors the session ends, or waits.
inline Scene alone(Scene scene) {
  scene.sizes.resize(1);
  return scene;
}
inline Scene called(Scene scene) {
  scene.initiator = false;
  return scene;
}

// For World::mute: the peer does not say this word, nor the answers to what a call says besides, which would
// come without it.
inline std::set<std::string> silent(const std::string& word) {
  if (word == "Hello") return {word, "SpecificationSet", "TransferOffer"};
  if (word == "SpecificationSet") return {word, "TransferOffer"};
  return {word};
}

// Data moves, and goes on doing so.
inline std::unique_ptr<World> moving(const Scene& scene) {
  auto world = std::make_unique<World>(scene);
  world->data = false;
  world->start();
  EXPECT_EQ(world->leg_phase(), LegPhase::kMoving);
  return world;
}

inline std::unique_ptr<World> resting(const Scene& scene) {
  auto world = moving(scene);
  world->reachable = false;
  world->lose_stream();
  world->pass(scene.settings.stall_timeout_ns + kSecondNs);
  EXPECT_EQ(world->phase(), TransferPhase::kResting);
  return world;
}

}  // namespace sluice::transfer::test
