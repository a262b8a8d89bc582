// SPDX-License-Identifier: Apache-2.0
#include "control/rate/path_shares.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace sluice::rate {
namespace {

using Shares = std::vector<uint64_t>;

TEST(PathShares, AreEqualButForThoseThatMayHaveLess) {
  EXPECT_EQ(path_shares(900, {{1000}, {1000}, {1000}}), (Shares{300, 300, 300}));
  EXPECT_EQ(path_shares(900, {{1000}, {100}, {1000}}), (Shares{400, 100, 400}));
  EXPECT_EQ(path_shares(900, {}), Shares{});
}

TEST(PathShares, WhoHasReservedMoreThanAnEqualPartGetsIt) {
  EXPECT_EQ(path_shares(900, {{1000, 600}, {1000}, {1000}}), (Shares{600, 150, 150}));
  EXPECT_EQ(path_shares(900, {{1000, 200}, {1000}, {1000}}), (Shares{300, 300, 300}))
      << "it is no upper bound";
  EXPECT_EQ(path_shares(900, {{1000, 350}, {1000, 320}, {1000}}), (Shares{350, 320, 230}));
  EXPECT_EQ(path_shares(1000, {{200, 600}, {1000}}), (Shares{200, 800})) << "not more than it may have";
}

TEST(PathShares, ATenthCannotBeReservedAwayFromTheOthers) {
  EXPECT_EQ(path_shares(1000, {{5000, 5000}, {1000}}), (Shares{900, 100}));
  EXPECT_EQ(path_shares(1000, {{5000, 3000}, {5000, 1000}}), (Shares{750, 250})) << "nobody else is there";
}

TEST(PathShares, NeverAreMoreThanThereIs) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<Demand> demands(random() % 8);
    for (Demand& demand : demands)
      demand = {.most_bps = random() % 5000, .reserved_bps = random() % 3 ? 0 : random() % 5000};
    const uint64_t total_bps = random() % 10'000;
    const Shares shares = path_shares(total_bps, demands);
    EXPECT_LE(std::accumulate(shares.begin(), shares.end(), uint64_t{0}), total_bps);
    for (size_t i = 0; i < demands.size(); ++i) EXPECT_LE(shares[i], demands[i].most_bps);
  }
}

}  // namespace
}  // namespace sluice::rate
