// The law `cubic` beside a TCP with CUBIC, on one bottleneck in virtual time.
// SPDX-License-Identifier: Apache-2.0
#include "control/rate/cubic_rate.h"

#include <gtest/gtest.h>

#include "control/rate/dumbbell_for_test.h"

namespace sluice::rate {
namespace {

std::unique_ptr<Controller> cubic(double start_s = 0, double expected_loss = 0) {
  return std::make_unique<CubicRate>(10'000'000'000, expected_loss,
                                     Dumbbell::kStartNs + static_cast<uint64_t>(start_s * 1e9));
}

TEST(CubicRate, FillsAPathOfItsOwn) {
  Dumbbell path({.capacity_bps = 1e9, .buffer_bytes = 2.5e6});
  path.add(cubic(), 0.02);
  path.run(10);
  path.reset();
  path.run(40);
  EXPECT_GT(path.utilisation(), 0.95);
  EXPECT_LT(path.overdrive(), 1.02);
}

TEST(CubicRate, TakesWhatATcpWouldTake) {
  for (const double bdp : {0.25, 1.0, 4.0}) {
    Dumbbell path({.capacity_bps = 1e9, .buffer_bytes = 2.5e6 * bdp});
    path.tick_s = 2.5e-4;
    path.add(cubic(5), 0.02, 5);
    path.add(nullptr, 0.02);
    path.run(40);
    path.reset();
    path.run(160);
    const double fair_shares = 2 * path.share(0);
    EXPECT_GT(fair_shares, 0.5) << bdp;
    EXPECT_LT(fair_shares, 2.0) << bdp;
  }
}

TEST(CubicRate, BacksOffForLossButNotForWhatWasDeclared) {
  const auto reaches = [](double expected_loss) {
    Dumbbell path({.capacity_bps = 1e9, .buffer_bytes = 2.5e6, .loss = 0.01});
    path.add(cubic(0, expected_loss), 0.02);
    path.run(10);
    path.reset();
    path.run(40);
    return path.utilisation();
  };
  EXPECT_LT(reaches(0), 0.2);
  EXPECT_GT(reaches(0.01), 0.9);
}

}  // namespace
}  // namespace sluice::rate
