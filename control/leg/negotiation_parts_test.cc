// Parts of files in the specification handshake: a destination of several sources demands them.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/leg/negotiation.h"
#include "control/leg/node_for_test.h"

namespace sluice::transfer {
namespace {

using test::plain_node;

Specification wish_for_parts(Role role, bool several_sources) {
  Abilities here = plain_node(1);
  here.several_sources = several_sources;
  return *make_specification(here, Options(), role, false, {47000});
}

TEST(NegotiationOfParts, OnlyADestinationOfSeveralSourcesAsksForThem) {
  const auto asks = [](Role role, bool several_sources) {
    return wish_for_parts(role, several_sources).abilities.has(Ability::kParts);
  };
  EXPECT_FALSE(asks(Role::kSource, false));
  EXPECT_FALSE(asks(Role::kDestination, false));
  EXPECT_FALSE(asks(Role::kSource, true));
  EXPECT_TRUE(asks(Role::kDestination, true));
}

TEST(NegotiationOfParts, ASourceThatDoesNotKnowThemCannotBeOneOfSeveral) {
  const Specification spec = wish_for_parts(Role::kDestination, true);
  SpecificationSet set = *answer(spec, plain_node(2), 64ULL << 20, {48000});
  EXPECT_TRUE(agree(spec, set, plain_node(1), true)->abilities.has(Ability::kParts));
  EXPECT_TRUE(agree(spec, set, plain_node(2), false)->abilities.has(Ability::kParts));
  set.abilities.set(Ability::kParts, false);  // of an older peer
  const auto refused = agree(spec, set, plain_node(1), true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIncompatible);
  EXPECT_NE(refused.error().message.find("--from"), std::string::npos);
}

// Another program may say so all the same.
TEST(NegotiationOfParts, ADestinationThatWasCalledIsAskedForNone) {
  Specification spec = wish_for_parts(Role::kSource, true);
  spec.abilities.set(Ability::kParts);
  const SpecificationSet set = *answer(spec, plain_node(2), 64ULL << 20, {48000});
  EXPECT_FALSE(set.abilities.has(Ability::kParts));
  const auto agreed = agree(spec, set, plain_node(2), false);
  ASSERT_TRUE(agreed);
  EXPECT_FALSE(agreed->abilities.has(Ability::kParts));
}

TEST(NegotiationOfParts, TheSourceSaysHowManyDigestsMayBeWantedAtATime) {
  const Specification spec = wish_for_parts(Role::kDestination, true);
  SpecificationSet set = *answer(spec, plain_node(2), 64ULL << 20, {48000});
  EXPECT_EQ(set.digests_unanswered, kDigestsUnansweredMax);
  struct Number {
    uint32_t said;
    uint32_t agreed;
  };
  for (const auto& [said, agreed] :
       {Number{0, 64}, Number{63, 64}, Number{100, 100}, Number{UINT32_MAX, 4096}}) {
    set.digests_unanswered = said;
    EXPECT_EQ(agree(spec, set, plain_node(1), true)->digests_unanswered, agreed);
  }
  const Specification alone = wish_for_parts(Role::kDestination, false);
  EXPECT_EQ(answer(alone, plain_node(2), 64ULL << 20, {48000})->digests_unanswered, 0U);
}

}  // namespace
}  // namespace sluice::transfer
