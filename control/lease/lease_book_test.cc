// SPDX-License-Identifier: Apache-2.0
#include "control/lease/lease_book.h"

#include <gtest/gtest.h>

namespace sluice::lease {
namespace {

using Answer = LeaseBook::Answer;
using transfer::Lease;

constexpr int64_t kNow = 1'790'000'000'000'000'000;
const std::string kAlpha = "alpha";
const std::string kBeta = "beta";

Lease lease(uint64_t epoch, const std::string& name = "0123456789abcdef") {
  return {.name = name, .epoch = epoch};
}

class LeaseBookTest : public testing::Test {
 protected:
  // What it comes to, and it is taken if it may be.
  ErrorCode claim(const Lease& lease, const std::string& holder, bool goes_on = false, int64_t now = kNow) {
    const LeaseBook::Claim claim{.lease = lease, .holder = holder, .goes_on = goes_on, .now_unix_ns = now};
    const Result<Answer> answer = book_.judge(claim);
    if (!answer) return answer.error().code;
    if (*answer == Answer::kTakes) row_ = book_.take(claim);
    return ErrorCode::kOk;
  }
  LeaseBook book_;
  transfer::LeaseRow row_;
};

TEST_F(LeaseBookTest, TheHighestEpochCountsWhoeverNamesIt) {
  EXPECT_EQ(claim(lease(3), kAlpha), ErrorCode::kOk);
  EXPECT_EQ(claim(lease(2), kAlpha), ErrorCode::kSuperseded);
  EXPECT_EQ(claim(lease(3), kAlpha), ErrorCode::kOk);
  EXPECT_EQ(claim(lease(4), kBeta), ErrorCode::kOk);
  EXPECT_EQ(row_.holder, kBeta);
  EXPECT_EQ(claim(lease(3), kAlpha), ErrorCode::kSuperseded);
  EXPECT_TRUE(book_.is_stale(lease(3)));
  EXPECT_FALSE(book_.is_stale(lease(4)));
  EXPECT_FALSE(book_.is_stale(lease(1, "another-lease-there")));
}

TEST_F(LeaseBookTest, TwoNodesCannotHaveOneEpoch) {
  EXPECT_EQ(claim(lease(1), kAlpha), ErrorCode::kOk);
  EXPECT_EQ(claim(lease(1), kBeta), ErrorCode::kSuperseded);
  EXPECT_EQ(claim(lease(1), ""), ErrorCode::kSuperseded);
  // But a session that has run here under it goes on, whoever has it now.
  EXPECT_EQ(claim(lease(1), kBeta, true), ErrorCode::kOk);
  EXPECT_EQ(claim(lease(1), kBeta), ErrorCode::kSuperseded);
  EXPECT_EQ(claim(lease(1), kAlpha), ErrorCode::kOk);
}

TEST_F(LeaseBookTest, ASessionThatGoesOnUnderALowerEpochDoesNot) {
  EXPECT_EQ(claim(lease(1), kAlpha), ErrorCode::kOk);
  EXPECT_EQ(claim(lease(2), kBeta), ErrorCode::kOk);
  EXPECT_EQ(claim(lease(1), kAlpha, true), ErrorCode::kSuperseded);
}

TEST_F(LeaseBookTest, WhatNobodyUsesIsForgotten) {
  EXPECT_EQ(claim(lease(1), kAlpha), ErrorCode::kOk);
  EXPECT_EQ(claim(lease(1, "another-lease-there"), kAlpha), ErrorCode::kOk);
  const auto used = [](const std::string& name) { return name == "another-lease-there"; };
  EXPECT_TRUE(book_.forget_old(kNow + kKeptNs, used).empty());
  EXPECT_EQ(book_.forget_old(kNow + kKeptNs + 1, used), std::vector<std::string>{"0123456789abcdef"});
  EXPECT_EQ(book_.size(), 1U);
}

TEST_F(LeaseBookTest, NamingItKeepsIt) {
  EXPECT_EQ(claim(lease(1), kAlpha), ErrorCode::kOk);
  EXPECT_EQ(claim(lease(1), kAlpha, false, kNow + kUsedWithinNs), ErrorCode::kOk);
  EXPECT_EQ(row_.used_unix_ns, kNow) << "not for each call";
  EXPECT_EQ(claim(lease(1), kBeta, true, kNow + kKeptNs), ErrorCode::kOk);
  EXPECT_EQ(row_.used_unix_ns, kNow + kKeptNs);
  EXPECT_EQ(row_.holder, kAlpha) << "who goes on with a session does not take the lease";
}

TEST_F(LeaseBookTest, ANodeHasSoManyAndNoMore) {
  for (size_t i = 0; i < kLeasesPerHolder; ++i)
    ASSERT_EQ(claim(lease(1, "lease-number-" + std::to_string(100'000 + i)), kAlpha), ErrorCode::kOk);
  EXPECT_EQ(claim(lease(1), kAlpha), ErrorCode::kResources);
  EXPECT_EQ(claim(lease(1), kBeta), ErrorCode::kOk);
  EXPECT_EQ(claim(lease(2, "lease-number-100000"), kBeta), ErrorCode::kOk) << "it is not alpha's any more";
  EXPECT_EQ(claim(lease(1, "another-lease-there"), kAlpha), ErrorCode::kOk);
}

TEST(Leases, AreWrittenAsNameAndEpoch) {
  const auto good = transfer::parse_lease("0123456789abcdef.a_b-C:7");
  ASSERT_TRUE(good) << good.error().message;
  EXPECT_EQ(good->name, "0123456789abcdef.a_b-C");
  EXPECT_EQ(good->epoch, 7U);
  EXPECT_TRUE(transfer::parse_lease("0123456789abcdef:9223372036854775807"));
  for (const char* const wrong :
       {"", ":", "0123456789abcdef", "0123456789abcdef:", "0123456789abcdef:0", "0123456789abcdef:-1",
        "0123456789abcdef:1x", "0123456789abcdef: 1", "0123456789abcdef:9223372036854775808",
        "0123456789abcdef:99999999999999999999", "short:1", "0123456789abcde/f:1", "0123456789abcdef\n:1",
        "01234567890123456789012345678901234567890123456789012345678901234:1"}) {
    const auto lease = transfer::parse_lease(wrong);
    ASSERT_FALSE(lease) << wrong;
    EXPECT_EQ(lease.error().code, ErrorCode::kUsage);
    EXPECT_EQ(lease.error().message.find("0123456789abcdef"), std::string::npos) << "a name is a secret";
  }
}

}  // namespace
}  // namespace sluice::lease
