// SPDX-License-Identifier: Apache-2.0
#include "control/words/terms.h"

#include <gtest/gtest.h>

namespace sluice::transfer {
namespace {

TEST(PeerUsers, HaveNamesThatCanBeSaidAndShown) {
  EXPECT_TRUE(good_user_name("alice"));
  EXPECT_TRUE(good_user_name("alice@corp.example"));
  EXPECT_TRUE(good_user_name("d\xC3\xA9sir\xC3\xA9"));
  EXPECT_TRUE(good_user_name(std::string(kUserBytesMax, 'a')));
  EXPECT_FALSE(good_user_name(""));
  EXPECT_FALSE(good_user_name(std::string(kUserBytesMax + 1, 'a')));
  for (const char bad : {'\0', '\n', '\x1F', '\x7F'}) EXPECT_FALSE(good_user_name(std::string("al") + bad));
}

TEST(PeerUsers, AreShownWithWhomTheyAreHere) {
  const Mapped alice{.user = {.uid = 1001, .name = "asmith"}, .peer_user = "alice"};
  EXPECT_EQ(mapped_text(alice, "alpha"), "asmith (alice at alpha)");
  EXPECT_EQ(peer_user_text("alpha", alice.peer_user), "alice of node alpha");
  const Mapped operators{.user = {.uid = 1001, .name = "asmith"}, .peer_user = ""};
  EXPECT_EQ(mapped_text(operators, "alpha"), "asmith (an operator at alpha)");
  EXPECT_EQ(peer_user_text("alpha", ""), "an operator of node alpha");
}

}  // namespace
}  // namespace sluice::transfer
