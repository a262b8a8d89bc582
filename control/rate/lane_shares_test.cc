// SPDX-License-Identifier: Apache-2.0
#include "control/rate/lane_shares.h"

#include <gtest/gtest.h>

#include <numeric>

namespace sluice::rate {
namespace {

using SharesByLane = Indexed<LaneId, uint64_t>;

TEST(LaneShares, LanesWithWorkShareWhatTheOthersLeave) {
  EXPECT_EQ(lane_shares(1000, {true, true, true, true}), SharesByLane({250, 250, 250, 250}));
  EXPECT_EQ(lane_shares(1000, {true, false, true, false}), SharesByLane({490, 10, 490, 10}));
  EXPECT_EQ(lane_shares(1000, {false, false, true}), SharesByLane({10, 10, 980}));
}

TEST(LaneShares, WithoutWorkAllAreAlike) {
  EXPECT_EQ(lane_shares(1000, {false, false}), SharesByLane({500, 500}));
  EXPECT_EQ(lane_shares(1000, {}), SharesByLane());
}

TEST(LaneShares, NeverGiveMoreThanTheRate) {
  for (const uint64_t rate_bps : {uint64_t{0}, uint64_t{1}, uint64_t{99}, uint64_t{10'000'000'019}}) {
    for (uint32_t lanes = 1; lanes <= 6; ++lanes) {
      for (uint32_t pattern = 0; pattern < (1U << lanes); ++pattern) {
        Indexed<LaneId, bool> busy;
        for (uint32_t lane = 0; lane < lanes; ++lane) busy.push_back((pattern >> lane & 1U) != 0);
        const SharesByLane shares = lane_shares(rate_bps, busy);
        EXPECT_LE(std::accumulate(shares.begin(), shares.end(), uint64_t{0}), rate_bps);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::rate
