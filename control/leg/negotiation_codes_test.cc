// Erasure codes in the specification handshake: what both nodes have, as far as an operator allows or demands
// it.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/leg/codes.h"
#include "control/leg/negotiation.h"
#include "control/leg/node_for_test.h"
#include "dataplane/board/codes.h"

namespace sluice::transfer {
namespace {

using board::kCodeRaptorQ;
using board::kCodeReedSolomon;
using options::Fec;
constexpr uint32_t kBothCodes = kCodeReedSolomon | kCodeRaptorQ;

struct CodesOf {
  uint32_t here = kBothCodes;
  uint32_t there = kBothCodes;
};

Abilities node_with_codes(uint32_t codes, uint8_t last) {
  Abilities node = test::plain_node(last);
  node.port.rate_bps_max = 100'000'000'000;
  node.port.codes = codes;
  return node;
}

Options options_with(Fec fec) {
  Options options;
  options.fec = fec;
  return options;
}

// Both nodes must make the same agreement; this returns it.
Result<Agreement> negotiate_codes(Fec fec, const CodesOf& codes, bool discard = false) {
  const Abilities here = node_with_codes(codes.here, 1);
  const Abilities there = node_with_codes(codes.there, 2);
  const auto spec = make_specification(here, options_with(fec), Role::kSource, discard, {47000});
  if (!spec) return spec.error();
  const auto set = answer(*spec, there, 64ULL << 20, {48000});
  if (!set) return set.error();
  const auto initiator = agree(*spec, *set, here, true);
  const auto other = agree(*spec, *set, there, false);
  if (!initiator) return initiator.error();
  EXPECT_TRUE(other && other->abilities == initiator->abilities);
  return *initiator;
}

std::string agreed_fec(Fec fec, const CodesOf& codes, bool discard = false) {
  const auto agreement = negotiate_codes(fec, codes, discard);
  return agreement ? std::string(fec_name(agreement->abilities)) : "no session";
}
uint32_t agreed_codes(Fec fec, const CodesOf& codes, bool discard = false) {
  const auto agreement = negotiate_codes(fec, codes, discard);
  return agreement ? codes_of(agreement->abilities) : UINT32_MAX;
}

TEST(NegotiationOfCodes, AutoTakesWhatBothNodesHave) {
  EXPECT_EQ(agreed_codes(Fec::kAuto, {}), kBothCodes);
  EXPECT_EQ(agreed_codes(Fec::kAuto, {.there = kCodeReedSolomon}), kCodeReedSolomon);
  EXPECT_EQ(agreed_codes(Fec::kAuto, {.here = kCodeReedSolomon}), kCodeReedSolomon);
  EXPECT_EQ(agreed_codes(Fec::kAuto, {.there = 0}), 0U) << "a node without any";
  EXPECT_EQ(agreed_fec(Fec::kAuto, {}), "auto");
  EXPECT_EQ(agreed_fec(Fec::kAuto, {.there = 0}), "off");
}

TEST(NegotiationOfCodes, OffIsOff) {
  EXPECT_EQ(agreed_codes(Fec::kOff, {}), 0U);
  EXPECT_EQ(agreed_fec(Fec::kOff, {}), "off");
  EXPECT_EQ(Options().fec, Fec::kAuto) << "the default";
}

TEST(NegotiationOfCodes, OneThatIsDemandedIsUsedAloneOrThereIsNoSession) {
  EXPECT_EQ(agreed_codes(Fec::kRaptorQ, {}), kCodeRaptorQ);
  EXPECT_EQ(agreed_codes(Fec::kReedSolomon, {}), kCodeReedSolomon);
  EXPECT_EQ(agreed_fec(Fec::kReedSolomon, {}), "rs");
  EXPECT_EQ(agreed_fec(Fec::kRaptorQ, {}), "raptorq");
  const auto peer_lacks_it = negotiate_codes(Fec::kRaptorQ, {.there = kCodeReedSolomon});
  ASSERT_FALSE(peer_lacks_it);
  EXPECT_EQ(peer_lacks_it.error().code, ErrorCode::kIncompatible);
  EXPECT_NE(peer_lacks_it.error().message.find("--fec auto"), std::string::npos);
  const auto lacks_it_here = negotiate_codes(Fec::kRaptorQ, {.here = kCodeReedSolomon});
  ASSERT_FALSE(lacks_it_here);
  EXPECT_EQ(lacks_it_here.error().code, ErrorCode::kConfiguration);
}

// Nothing is kept there that lost bytes could be made of.
TEST(NegotiationOfCodes, IntoNullThereIsNone) {
  EXPECT_EQ(agreed_codes(Fec::kAuto, {}, true), 0U);
  EXPECT_EQ(agreed_codes(Fec::kReedSolomon, {}, true), 0U);
  EXPECT_EQ(agreed_codes(Fec::kReedSolomon, {.here = 0, .there = 0}, true), 0U);
  // Also where the initiator is another program, and says it all the same.
  const auto spec = make_specification(node_with_codes(kBothCodes, 1), options_with(Fec::kReedSolomon),
                                       Role::kSource, false, {47000});
  Specification odd = *spec;
  odd.discard = true;
  const auto set = answer(odd, node_with_codes(kBothCodes, 2), 64ULL << 20, {48000});
  ASSERT_TRUE(set);
  EXPECT_EQ(codes_of(set->abilities), 0U);
}

// An older peer knows none of the three abilities, and answers without them.
TEST(NegotiationOfCodes, AnAnswerOfAnOlderPeerOrOneThatLiesIsJudged) {
  const Abilities here = node_with_codes(kBothCodes, 1);
  const auto spec = make_specification(here, options_with(Fec::kReedSolomon), Role::kSource, false, {47000});
  SpecificationSet set = *answer(*spec, node_with_codes(kBothCodes, 2), 64ULL << 20, {48000});
  ASSERT_TRUE(agree(*spec, set, here, true));
  set.abilities = AbilitySet::all();
  const auto more = agree(*spec, set, here, true);
  ASSERT_TRUE(more);
  EXPECT_EQ(codes_of(more->abilities), kCodeReedSolomon) << "what was not wanted is not used";
  for (const AbilitySet wrong : {AbilitySet(), AbilitySet{Ability::kRaptorQ, Ability::kParityDemanded}}) {
    set.abilities = wrong;
    const auto result = agree(*spec, set, here, true);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::kIncompatible);
  }
}

}  // namespace
}  // namespace sluice::transfer
