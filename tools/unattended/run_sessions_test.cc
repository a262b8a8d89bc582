// SPDX-License-Identifier: Apache-2.0
#include "tools/unattended/run_sessions.h"

#include <gtest/gtest.h>

namespace sluice::unattended {
namespace {

TEST(RunSessions, TheNextStartFindsWhatHasNotEnded) {
  RunSessions first;
  EXPECT_EQ(first.text(), "");
  first.began("one", "aa");
  first.began("two", "bb");
  first.began("three", "cc");
  first.ended("one");
  EXPECT_TRUE(first.hold("cc", true));
  EXPECT_FALSE(first.hold("cc", true)) << "it is known";
  EXPECT_FALSE(first.hold("zz", true)) << "no session of this command";
  RunSessions second(first.text());
  EXPECT_EQ(second.take("one"), std::nullopt);
  EXPECT_EQ(second.take("two"), (RunSessions::Session{.id = "bb", .earlier = true}));
  EXPECT_EQ(second.take("two"), (RunSessions::Session{.id = "bb"})) << "it was told of once";
  EXPECT_EQ(second.take("three"), (RunSessions::Session{.id = "cc", .held = true, .earlier = true}));
  second.hold("cc", false);
  second.began("two", "dd");
  EXPECT_EQ(second.text(), "session three cc\nsession two dd\n");
}

TEST(RunSessions, WhatIsNoLineIsLeftOut) {
  RunSessions sessions("session one aa\nsession two\nfoo one bb\nheld three cc dd\nsession cut o");
  EXPECT_EQ(sessions.text(), "session one aa\n");
}

}  // namespace
}  // namespace sluice::unattended
