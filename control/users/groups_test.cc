// SPDX-License-Identifier: Apache-2.0
#include "control/users/groups.h"

#include <gtest/gtest.h>

namespace sluice::users {
namespace {

TEST(Groups, KnowWhoIsWho) {
  const Result<uid_t> root = uid_of("root");
  ASSERT_TRUE(root);
  EXPECT_EQ(*root, 0U);
  EXPECT_EQ(uid_of("no such user").error().code, ErrorCode::kConfiguration);
  EXPECT_TRUE(is_member(0, "root"));
  EXPECT_FALSE(is_member(0, "no such group"));
  EXPECT_FALSE(is_member(4'294'967'290U, "root"));
}

}  // namespace
}  // namespace sluice::users
