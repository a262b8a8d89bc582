// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/counted.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace sluice::base {
namespace {

TEST(Counted, OneIsNotMany) {
  EXPECT_EQ(counted(0, "name"), "0 names");
  EXPECT_EQ(counted(1U, "name"), "1 name");
  EXPECT_EQ(counted(uint64_t{2}, "name"), "2 names");
  EXPECT_EQ(counted(1, "worker shares", "workers share"), "1 worker shares");
  EXPECT_EQ(counted(3, "worker shares", "workers share"), "3 workers share");
}

}  // namespace
}  // namespace sluice::base
