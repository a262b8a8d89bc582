// What a job says of whose it is.
// SPDX-License-Identifier: Apache-2.0
#include "control/leg/job.h"

#include <gtest/gtest.h>

namespace sluice::transfer {
namespace {

TEST(Job, SaysItsUserToPeersIfThatCanBeSaid) {
  Job job;
  EXPECT_EQ(job.user_to_say(), "");
  job.request = Request();
  EXPECT_EQ(job.user_to_say(), "") << "an operator's";
  job.request->user = User{.uid = 1000, .name = "alice"};
  EXPECT_EQ(job.user_to_say(), "alice");
  EXPECT_NE(job.share(), 0U);
  job.request->user->name = "al\nice";
  EXPECT_EQ(job.user_to_say(), "");
}

TEST(Job, AnErrorAboutAFileSaysWhoWasMappedToWhom) {
  Job job;
  const auto told = [&](ErrorCode code) { return job.with_user({code, "why"}, "alpha").message; };
  EXPECT_EQ(told(ErrorCode::kOutsideExports), "why");
  job.mapped = Mapped{.user = {.uid = 1001, .name = "asmith"}, .peer_user = "alice"};
  for (const ErrorCode code : {ErrorCode::kUsage, ErrorCode::kConfiguration, ErrorCode::kSourceUnreadable,
                               ErrorCode::kOutsideExports, ErrorCode::kNoSpace, ErrorCode::kStorage})
    EXPECT_EQ(told(code), "why; alice of node alpha is user asmith at this node");
  for (const ErrorCode code :
       {ErrorCode::kStalled, ErrorCode::kPeerUnreachable, ErrorCode::kDestinationExists})
    EXPECT_EQ(told(code), "why");
}

}  // namespace
}  // namespace sluice::transfer
