// Who is known here, beside what the C library says to a program that is linked with it.
// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/accounts.h"

#include <grp.h>
#include <gtest/gtest.h>
#include <pwd.h>

#include <algorithm>

namespace sluice::doctor {
namespace {

TEST(Accounts, AreThoseOfTheHost) {
  const passwd* const nobody = ::getpwnam("nobody");
  ASSERT_NE(nobody, nullptr);
  const auto found = account_of("nobody");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->uid, nobody->pw_uid);
  EXPECT_EQ(found->gid, nobody->pw_gid);
  EXPECT_EQ(account_of(found->uid)->name, "nobody");
  EXPECT_EQ(std::ranges::count(groups_of(*found), found->gid), 1);
  const group* const staff = ::getgrnam("staff");
  ASSERT_NE(staff, nullptr);
  EXPECT_EQ(gid_of("staff"), staff->gr_gid);
}

TEST(Accounts, ThatAreNotThereAreNone) {
  for (const char* const name : {"nobody-of-that-name", "", "-", "--help", "a:b", "0"})
    EXPECT_FALSE(account_of(name)) << name;
  EXPECT_FALSE(account_of(uid_t{4'000'000'000}));
  EXPECT_FALSE(gid_of("no-group-of-that-name"));
}

}  // namespace
}  // namespace sluice::doctor
