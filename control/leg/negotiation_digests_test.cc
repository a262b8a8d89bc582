// Digests in the specification handshake: a source that wants them demands them.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/leg/negotiation.h"
#include "control/leg/node_for_test.h"

namespace sluice::transfer {
namespace {

using test::plain_node;

Specification wish_for_digests(uint32_t digests, Role role = Role::kSource, bool discard = false) {
  Options options;
  options.digests = digests;
  return *make_specification(plain_node(1), options, role, discard, {47000});
}

TEST(NegotiationOfDigests, ASourceAsksForThemWhereFilesAreStored) {
  EXPECT_TRUE(wish_for_digests(64).abilities.has(Ability::kDigests));
  EXPECT_FALSE(wish_for_digests(0).abilities.has(Ability::kDigests));
  EXPECT_FALSE(wish_for_digests(64, Role::kDestination).abilities.has(Ability::kDigests));
  EXPECT_FALSE(wish_for_digests(64, Role::kSource, true).abilities.has(Ability::kDigests));
}

TEST(NegotiationOfDigests, APeerThatDoesNotKnowThemIsIncompatible) {
  const Specification spec = wish_for_digests(64);
  SpecificationSet set = *answer(spec, plain_node(2), 64ULL << 20, {48000});
  EXPECT_TRUE(agree(spec, set, plain_node(1), true)->abilities.has(Ability::kDigests));
  set.abilities.set(Ability::kDigests, false);
  const auto refused = agree(spec, set, plain_node(1), true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIncompatible);
}

TEST(NegotiationOfDigests, ASourceThatIsCalledComputesNone) {
  Specification get = wish_for_digests(64, Role::kDestination);
  get.abilities.set(Ability::kDigests);
  EXPECT_FALSE(answer(get, plain_node(2), 64ULL << 20, {48000})->abilities.has(Ability::kDigests));
}

}  // namespace
}  // namespace sluice::transfer
