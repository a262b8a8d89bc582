// SPDX-License-Identifier: Apache-2.0
#include "control/leg/backoff.h"

#include <gtest/gtest.h>

#include <map>

namespace sluice::transfer {
namespace {

TEST(Remedy, OfEachErrorIsTimeAnOperatorOrNone) {
  const std::map<ErrorCode, Remedy> remedies = {
      {ErrorCode::kPeerUnreachable, Remedy::kTime},
      {ErrorCode::kDaemonNotRunning, Remedy::kTime},
      {ErrorCode::kStalled, Remedy::kTime},
      {ErrorCode::kResources, Remedy::kTime},
      {ErrorCode::kNoSpace, Remedy::kOperator},
      {ErrorCode::kStorage, Remedy::kOperator},
      {ErrorCode::kPeerUntrusted, Remedy::kOperator},
      {ErrorCode::kInternal, Remedy::kNone},
      {ErrorCode::kUsage, Remedy::kNone},
      {ErrorCode::kConfiguration, Remedy::kNone},
      {ErrorCode::kSourceUnreadable, Remedy::kNone},
      {ErrorCode::kOutsideExports, Remedy::kNone},
      {ErrorCode::kDestinationExists, Remedy::kNone},
      {ErrorCode::kIntegrity, Remedy::kNone},
      {ErrorCode::kCancelled, Remedy::kNone},
      {ErrorCode::kDevice, Remedy::kNone},
      {ErrorCode::kIncompatible, Remedy::kNone},
  };
  EXPECT_EQ(remedies.size(), static_cast<size_t>(ErrorCode::kResources));
  EXPECT_EQ(remedy_of(ErrorCode::kQuota), Remedy::kNone) << "unfinished files are not kept for it";
  for (const auto& [code, remedy] : remedies) EXPECT_EQ(remedy_of(code), remedy) << error_code_name(code);
}

TEST(Backoff, EachWaitIsTwiceTheOneBeforeWithinBounds) {
  Backoff backoff;
  uint64_t now_ns = 7;
  for (const uint64_t wait_ms : {200, 400, 800, 1600, 3200, 5000, 5000, 5000}) {
    backoff.interrupted(now_ns, false);
    EXPECT_EQ(backoff.next_ns(), now_ns + wait_ms * 1'000'000);
    now_ns = backoff.next_ns();
  }
}

TEST(Backoff, RemembersSinceWhenNothingMoved) {
  Backoff backoff;
  EXPECT_EQ(backoff.since_ns(), 0U);
  backoff.interrupted(100, false);
  backoff.interrupted(1'000, false);
  EXPECT_EQ(backoff.since_ns(), 100U);
  backoff.moved();
  EXPECT_EQ(backoff.since_ns(), 0U);
  EXPECT_EQ(backoff.next_ns(), 0U);
  backoff.interrupted(5'000, false);
  EXPECT_EQ(backoff.since_ns(), 5'000U);
  EXPECT_EQ(backoff.next_ns(), 5'000 + Backoff::kMinNs) << "it begins with the shortest wait again";
}

TEST(Backoff, APeerThatSaysThatItWaitsIsNotLost) {
  Backoff backoff;
  backoff.interrupted(100, false);
  backoff.interrupted(9'000, true);
  EXPECT_EQ(backoff.since_ns(), 9'000U);
  EXPECT_EQ(backoff.next_ns(), 9'000 + 2 * Backoff::kMinNs) << "it is asked no more often for that";
}

}  // namespace
}  // namespace sluice::transfer
