// SPDX-License-Identifier: Apache-2.0
#include "control/node/expiry_warnings.h"

#include <gtest/gtest.h>

namespace sluice::node {
namespace {

constexpr int64_t kNow = 1'800'000'000;
constexpr int64_t kDayS = 86'400;

TEST(ExpiryWarnings, TellFromThirtyDaysBeforeAndOnceADay) {
  ExpiryWarnings warnings;
  const std::vector<identity::Expiry> all{{.kind = "own", .name = "alpha", .unix_s = kNow + 31 * kDayS},
                                          {.kind = "peer", .name = "beta"},
                                          {.kind = "ca", .name = "CN=CA", .unix_s = kNow + 300 * kDayS}};
  EXPECT_TRUE(warnings.due(all, kNow).empty());
  const auto first = warnings.due(all, kNow + kDayS);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_NE(first[0].find("the certificate of this node is out of date in 30 days"), std::string::npos)
      << first[0];
  EXPECT_TRUE(warnings.due(all, kNow + kDayS + 10).empty());
  EXPECT_EQ(warnings.due(all, kNow + 2 * kDayS).size(), 1U);
  const auto over = warnings.due(all, kNow + 40 * kDayS);
  ASSERT_EQ(over.size(), 1U);
  EXPECT_NE(over[0].find("is out of date since 2027-"), std::string::npos) << over[0];
}

TEST(ExpiryWarnings, OneThatWasReplacedIsForgotten) {
  ExpiryWarnings warnings;
  const std::vector<identity::Expiry> soon{{.kind = "own", .name = "alpha", .unix_s = kNow + kDayS}};
  EXPECT_EQ(warnings.due(soon, kNow).size(), 1U);
  EXPECT_TRUE(warnings.due({}, kNow + 2).empty());
  EXPECT_EQ(warnings.due(soon, kNow + 4).size(), 1U);
}

}  // namespace
}  // namespace sluice::node
