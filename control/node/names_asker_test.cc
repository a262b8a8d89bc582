// How far a peer's clock is from ours, by one question.
// SPDX-License-Identifier: Apache-2.0
#include "control/node/names_asker.h"

#include <gtest/gtest.h>

namespace sluice::node {
namespace {

TEST(ClockOffset, IsExactToHalfTheRoundTripWithoutWhatThePeerTook) {
  // Its clock is 1000 ahead; 30 there, 500 there, 10 back.
  const names::NodeState peer{.asked_unix_ns = 5000 + 30 + 1000, .answered_unix_ns = 5000 + 530 + 1000};
  const ClockOffset clock = clock_offset(peer, 5000, 540);
  EXPECT_EQ(clock.round_trip_ns, 40U);
  EXPECT_EQ(clock.error_ns, 20U);
  EXPECT_EQ(clock.offset_ns, 1010);
}

TEST(ClockOffset, WhateverAPeerSaysIsNoMoreThanWasWaited) {
  for (const int64_t a : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX}) {
    for (const int64_t b : {INT64_MIN, int64_t{-1}, int64_t{0}, INT64_MAX}) {
      const ClockOffset clock =
          clock_offset({.asked_unix_ns = a, .answered_unix_ns = b}, 1'700'000'000'000'000'000, 100);
      EXPECT_LE(clock.round_trip_ns, 100U);
      EXPECT_LE(clock.error_ns, 50U);
    }
  }
}

}  // namespace
}  // namespace sluice::node
