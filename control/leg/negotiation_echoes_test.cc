// Echoes in the specification handshake: a source that sends into null: may ask for them.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/leg/negotiation.h"
#include "control/leg/node_for_test.h"

namespace sluice::transfer {
namespace {

Abilities node_of_echoes(uint8_t last, bool offload = false) {
  Abilities node = test::plain_node(last);
  node.port.udp_checksum_offload = offload ? 1 : 0;
  return node;
}

Specification wish_for_echoes(uint32_t echoes, Role role = Role::kSource, bool discard = true,
                              bool offload = false) {
  Options options;
  options.echoes = echoes;
  options.echo_bytes = echoes == 0 ? 0 : 1000;
  return *make_specification(node_of_echoes(1, offload), options, role, discard, {47000});
}

TEST(NegotiationOfEchoes, OnlyAProbeAsksForThem) {
  EXPECT_TRUE(wish_for_echoes(10).abilities.has(Ability::kEchoes));
  EXPECT_FALSE(wish_for_echoes(0).abilities.has(Ability::kEchoes));
  EXPECT_FALSE(wish_for_echoes(10, Role::kDestination).abilities.has(Ability::kEchoes));
  EXPECT_FALSE(wish_for_echoes(10, Role::kSource, false).abilities.has(Ability::kEchoes));
}

TEST(NegotiationOfEchoes, APeerThatDoesNotKnowThemIsIncompatible) {
  const Specification spec = wish_for_echoes(10);
  SpecificationSet set = *answer(spec, node_of_echoes(2), 64ULL << 20, {48000});
  EXPECT_TRUE(agree(spec, set, node_of_echoes(1), true)->abilities.has(Ability::kEchoes));
  EXPECT_TRUE(agree(spec, set, node_of_echoes(2), false)->abilities.has(Ability::kEchoes));
  set.abilities.set(Ability::kEchoes, false);
  const auto refused = agree(spec, set, node_of_echoes(1), true);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIncompatible);
  EXPECT_NE(refused.error().message.find("reflect"), std::string::npos);
}

// Another program may say so all the same.
TEST(NegotiationOfEchoes, NothingIsReflectedBesideFilesOrByASource) {
  Specification files = wish_for_echoes(10, Role::kSource, false);
  files.abilities.set(Ability::kEchoes);
  EXPECT_FALSE(answer(files, node_of_echoes(2), 64ULL << 20, {48000})->abilities.has(Ability::kEchoes));
  Specification get = wish_for_echoes(10, Role::kDestination);
  get.abilities.set(Ability::kEchoes);
  EXPECT_FALSE(answer(get, node_of_echoes(2), 64ULL << 20, {48000})->abilities.has(Ability::kEchoes));
}

TEST(NegotiationOfEchoes, NobodyComputesAChecksumOnlyBecauseItsDeviceCould) {
  const auto checksum = [](const Specification& spec, const Abilities& peer) {
    return answer(spec, peer, 64ULL << 20, {48000})->udp_checksum;
  };
  const Specification probe = wish_for_echoes(10, Role::kSource, true, true);
  const Specification plain = wish_for_echoes(0, Role::kSource, true, true);
  EXPECT_FALSE(checksum(probe, node_of_echoes(2, true)));
  EXPECT_TRUE(checksum(plain, node_of_echoes(2, true)));
  Abilities strict = node_of_echoes(2);
  strict.udp_checksum_always = true;
  EXPECT_TRUE(checksum(probe, strict)) << "where somebody wants it in any case";
}

}  // namespace
}  // namespace sluice::transfer
