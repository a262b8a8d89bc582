// Compression in the specification handshake: what both nodes have, as far as an operator wants or demands
// it.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/leg/compression.h"
#include "control/leg/negotiation.h"
#include "control/leg/node_for_test.h"

namespace sluice::transfer {
namespace {

using options::Compress;

Abilities node_that_compresses(uint8_t last) {
  Abilities node = test::plain_node(last);
  node.port.rate_bps_max = 100'000'000'000;
  return node;
}

Specification wish_to_compress(Compress compress, bool discard = false) {
  Options options;
  options.compress = compress;
  return *make_specification(node_that_compresses(1), options, Role::kSource, discard, {47000});
}

// Both nodes must make the same agreement.
std::string agreed_compression(const Specification& spec) {
  const auto set = answer(spec, node_that_compresses(2), 64ULL << 20, {48000});
  if (!set) return "no session";
  const auto initiator = agree(spec, *set, node_that_compresses(1), true);
  const auto other = agree(spec, *set, node_that_compresses(2), false);
  if (!initiator || !other) return "no session";
  EXPECT_TRUE(other->abilities == initiator->abilities);
  return std::string(compress_name(initiator->abilities));
}

TEST(NegotiationOfCompression, IsWhatTheInitiatorsOperatorAsksFor) {
  EXPECT_EQ(agreed_compression(wish_to_compress(Compress::kOff)), "off");
  EXPECT_EQ(agreed_compression(wish_to_compress(Compress::kAuto)), "auto");
  EXPECT_EQ(agreed_compression(wish_to_compress(Compress::kZstd)), "zstd");
}

TEST(NegotiationOfCompression, IsOffIntoNull) {
  EXPECT_EQ(agreed_compression(wish_to_compress(Compress::kZstd, true)), "off");
  Specification odd = wish_to_compress(Compress::kZstd);  // of another program, which says it all the same
  odd.discard = true;
  const auto set = answer(odd, node_that_compresses(2), 64ULL << 20, {48000});
  ASSERT_TRUE(set);
  EXPECT_FALSE(set->abilities.has(Ability::kZstd));
}

TEST(NegotiationOfCompression, ADemandThatIsNotMetEndsTheSession) {
  Specification spec = wish_to_compress(Compress::kZstd);
  spec.abilities.set(Ability::kZstd, false);  // it contradicts itself
  const auto refused = answer(spec, node_that_compresses(2), 64ULL << 20, {48000});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kIncompatible);

  spec = wish_to_compress(Compress::kZstd);
  SpecificationSet set = *answer(spec, node_that_compresses(2), 64ULL << 20, {48000});
  set.abilities = {};  // of an older peer
  const auto old = agree(spec, set, node_that_compresses(1), true);
  ASSERT_FALSE(old);
  EXPECT_EQ(old.error().code, ErrorCode::kIncompatible);
}

TEST(NegotiationOfCompression, WhatWasNotWantedIsNotUsed) {
  const Specification spec = wish_to_compress(Compress::kOff);
  SpecificationSet set = *answer(spec, node_that_compresses(2), 64ULL << 20, {48000});
  set.abilities = AbilitySet::all();
  const auto agreement = agree(spec, set, node_that_compresses(1), true);
  ASSERT_TRUE(agreement);
  EXPECT_EQ(compress_of(agreement->abilities), board::Compress::kOff);
}

}  // namespace
}  // namespace sluice::transfer
