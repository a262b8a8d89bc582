// Whom a peer's user is here.
// SPDX-License-Identifier: Apache-2.0
#include "control/node/mapping.h"

#include <gtest/gtest.h>

namespace sluice::node {
namespace {

using transfer::Mapped;

const identity::UserMap& sample_map() {
  static const identity::UserMap map = *identity::UserMap::parse(
      "alice@alpha asmith\neve@* deny\n*@gamma *\n@gamma guest\n@delta deny\n", "users.map");
  return map;
}

std::string judged(const UserCall& call, const identity::UserMap* map = &sample_map()) {
  const auto local = local_user(call, map);
  if (!local) return std::string(error_code_name(local.error().code)) + ": " + local.error().message;
  return local->value_or("as today");
}

const Mapped kAlice{.user = {.uid = 1001, .name = "asmith"}, .peer_user = "alice"};

TEST(Mapping, ANewSessionBelongsToWhomTheMapSays) {
  EXPECT_EQ(judged({.peer = "alpha", .user = "alice", .share = 7}), "asmith");
  EXPECT_EQ(judged({.peer = "gamma", .user = "carol", .share = 7}), "carol");
  EXPECT_EQ(judged({.peer = "gamma"}), "guest");
}

TEST(Mapping, WithoutALineItIsAsToday) {
  EXPECT_EQ(judged({.peer = "alpha"}), "as today");                            // an operator
  EXPECT_EQ(judged({.peer = "alpha", .user = "alice"}, nullptr), "as today");  // no map
  const auto other = *identity::UserMap::parse("alice@alpha asmith", "m");
  EXPECT_EQ(judged({.peer = "beta", .user = "alice", .share = 7}, &other), "as today");
  EXPECT_EQ(judged({.peer = "beta", .share = 7}, &other), "as today");
}

TEST(Mapping, WhoIsNotLetInHearsWhy) {
  const std::string unmatched = judged({.peer = "alpha", .user = "bob", .share = 7});
  EXPECT_EQ(unmatched.find("peer_untrusted: bob of node alpha is no user of this node"), 0U) << unmatched;
  EXPECT_NE(unmatched.find("add bob@alpha LOCAL"), std::string::npos) << unmatched;
  const std::string denied = judged({.peer = "alpha", .user = "eve", .share = 7});
  EXPECT_EQ(denied.find("peer_untrusted: eve of node alpha may not use this node, by line 2"), 0U) << denied;
  const std::string operators = judged({.peer = "delta"});
  EXPECT_EQ(operators.find("peer_untrusted: an operator of node delta may not"), 0U) << operators;
}

TEST(Mapping, AnOlderPeersUserIsNotTakenForItsOperator) {
  const std::string old = judged({.peer = "alpha", .user = "", .share = 7});
  EXPECT_EQ(old.find("peer_untrusted: node alpha does not say whose session"), 0U) << old;
}

TEST(Mapping, WhatGoesOnIsWhatItBeganAs) {
  EXPECT_EQ(judged({.peer = "alpha", .user = "alice", .share = 7, .goes_on = true, .known = kAlice}),
            "asmith");
  EXPECT_EQ(judged({.peer = "alpha", .user = "bob", .share = 7, .goes_on = true}), "as today");
  const std::string other = judged({.peer = "alpha", .user = "eve", .goes_on = true, .known = kAlice});
  EXPECT_EQ(other.find("incompatible: the session is that of alice of node alpha here"), 0U) << other;
  const std::string nobody = judged({.peer = "alpha", .goes_on = true, .known = kAlice});
  EXPECT_NE(nobody.find("the call is that of an operator of node alpha"), std::string::npos) << nobody;
}

TEST(Mapping, WhatGoesOnIsRefusedWhenTheMapSaysOtherwise) {
  const UserCall call{.peer = "alpha", .user = "alice", .share = 7, .goes_on = true, .known = kAlice};
  const auto changed = *identity::UserMap::parse("alice@alpha guest", "m");
  const auto without = *identity::UserMap::parse("bob@alpha guest", "m");
  for (const identity::UserMap* const map :
       {&changed, &without, static_cast<const identity::UserMap*>(nullptr)}) {
    const std::string refused = judged(call, map);
    EXPECT_EQ(refused.find("peer_untrusted: [control] users_map_file of this node does not make alice"), 0U)
        << refused;
  }
}

TEST(Mapping, OrdersAreForOperatorsWhoAreAsEver) {
  EXPECT_TRUE(check_orders_of("gamma", nullptr));
  EXPECT_TRUE(check_orders_of("alpha", &sample_map()));
  for (const char* const issuer : {"gamma", "delta"}) {
    const Status refused = check_orders_of(issuer, &sample_map());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::kPeerUntrusted);
  }
}

}  // namespace
}  // namespace sluice::node
