// Digests in the specification handshake: a source that wants them demands them.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>

#include "control/leg/negotiation.h"

namespace sluice::transfer {
namespace {

Abilities node_of_digests(uint8_t last) {
  Abilities node;
  node.port.extent_bytes_max = 1U << 20;
  const uint8_t ip[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 77, 0, last};
  std::memcpy(node.port.ip4, ip, 16);
  node.port.chunk_bytes_max_ip4 = 8896;
  return node;
}

Specification wish_for_digests(uint32_t digests, Role role = Role::kSource, bool discard = false) {
  Options options;
  options.digests = digests;
  return *make_specification(node_of_digests(1), options, role, discard, {47000});
}

TEST(NegotiationOfDigests, ASourceAsksForThemWhereFilesAreStored) {
  EXPECT_TRUE(wish_for_digests(64).abilities.has(Ability::kDigests));
  EXPECT_FALSE(wish_for_digests(0).abilities.has(Ability::kDigests));
  EXPECT_FALSE(wish_for_digests(64, Role::kDestination).abilities.has(Ability::kDigests));
  EXPECT_FALSE(wish_for_digests(64, Role::kSource, true).abilities.has(Ability::kDigests));
}

TEST(NegotiationOfDigests, APeerThatDoesNotKnowThemIsIncompatible) {
  const Specification spec = wish_for_digests(64);
  SpecificationSet set = *answer(spec, node_of_digests(2), 64ULL << 20, {48000});
  EXPECT_TRUE(agree(spec, set, node_of_digests(1), true)->abilities.has(Ability::kDigests));
  set.abilities.set(Ability::kDigests, false);
  const auto refused = agree(spec, set, node_of_digests(1), true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIncompatible);
}

TEST(NegotiationOfDigests, ASourceThatIsCalledComputesNone) {
  Specification get = wish_for_digests(64, Role::kDestination);
  get.abilities.set(Ability::kDigests);
  EXPECT_FALSE(answer(get, node_of_digests(2), 64ULL << 20, {48000})->abilities.has(Ability::kDigests));
}

}  // namespace
}  // namespace sluice::transfer
