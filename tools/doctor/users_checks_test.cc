// Users of the host and of peers, as `sluice doctor` sees them.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tools/doctor/checks.h"

namespace sluice::doctor {
namespace {

Facts with_users(const UsersFacts& users, const std::string& map) {
  Facts facts;
  facts.directory = "/n";
  facts.node.emplace();
  facts.node->directory = "/n";
  facts.node->users_group = "users";
  facts.node->users_map_file = map;
  facts.users = users;
  return facts;
}

std::vector<Finding> found(const Facts& facts) {
  std::vector<Finding> out;
  check_users(facts, out);
  return out;
}

TEST(Users, ANodeWithoutThemHasNothingToLookAt) { EXPECT_TRUE(found(Facts()).empty()); }

TEST(Users, AreServedAndMapped) {
  const std::vector<Finding> all = found(with_users({.map_lines = 2}, "/etc/sluice/users.map"));
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].level, Level::kPass);
  EXPECT_EQ(all[1].level, Level::kPass);
  EXPECT_EQ(all[1].text, "2 lines of /etc/sluice/users.map say who of the peers' users is who here");
}

TEST(Users, WithoutSluiceUsersPeersUsersAreRefused) {
  const UsersFacts silent{.helper_problem = "Connection refused"};
  EXPECT_EQ(found(with_users(silent, "")).front().level, Level::kWarn);
  const Finding with_map = found(with_users(silent, "/m")).front();
  EXPECT_EQ(with_map.level, Level::kFail);
  EXPECT_NE(with_map.text.find("/n/run/users-helper.sock (Connection refused)"), std::string::npos)
      << with_map.text;
  EXPECT_NE(with_map.remedy.find("systemctl enable --now sluice-users.socket"), std::string::npos);
}

TEST(Users, AMapThatIsWrongIsNamed) {
  const Finding bad = found(with_users({.map_problem = "/m:2: why"}, "/m")).back();
  EXPECT_EQ(bad.level, Level::kFail);
  EXPECT_EQ(bad.text, "/m:2: why");
}

TEST(Users, AMapThatMakesSomebodyAUserWhoCannotBeIsNoPass) {
  const Finding bad =
      found(with_users({.map_lines = 3, .map_nobody = {"/m:2: x: why", "/m:3: y: why"}}, "/m")).back();
  EXPECT_EQ(bad.level, Level::kWarn);
  EXPECT_EQ(bad.text, "/m:2: x: why; and 1 line more");
}

TEST(Users, WhatAStrangerMayNotSeeIsNotMissing) {
  Facts facts =
      with_users({.helper_problem = "Permission denied", .map_problem = "/m: Permission denied"}, "/m");
  facts.looker = {.user = "ada", .owner = "sluice-control", .stranger = true};
  for (const Finding& one : found(facts)) EXPECT_EQ(one.level, Level::kWarn) << one.text;
}

}  // namespace
}  // namespace sluice::doctor
