// A node takes a call or refuses it, by the grant that it shows and by what is known of its session.
// SPDX-License-Identifier: Apache-2.0
#include "control/grant/judge.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "control/grant/nodes_for_test.h"

namespace sluice::grant {
namespace {

constexpr int64_t kShownUnixNs = 1'800'000'000 * kSecondNs;

// Beta is called by alpha, or by gamma, for what home has ordered.
class JudgeTest : public NodesTest {
 protected:
  JudgeTest() : NodesTest({"home", "alpha", "beta", "gamma"}) {
    now_ = {.self = std::make_shared<const identity::Identity>(node(2)),
            .trust = std::make_shared<const identity::Trust>(trust())};
    hello_.session_id = kId;
    hello_.grant = signed_by(node(0), 0);
  }
  transfer::SignedGrant signed_by(const identity::Identity& issuer, int64_t later_ns) const {
    const auto made = sign(issuer, {.id = kId,
                                    .issuer = issuer.fingerprint,
                                    .holder = node(1).fingerprint,
                                    .destination = node(2).fingerprint,
                                    .sources_sha256 = digest_of({"data/x"}),
                                    .path = "in/",
                                    .not_before_unix_ns = kShownUnixNs + later_ns,
                                    .start_by_unix_ns = kShownUnixNs + later_ns + kStartWithinNs,
                                    .end_by_unix_ns = kShownUnixNs + later_ns + kEndWithinNs});
    EXPECT_TRUE(made);
    return *made;
  }
  Judged judged(const std::function<void(Call&)>& change = [](Call&) {}) const {
    Call call{.hello = hello_, .peer = alpha_, .known = known_, .now_unix_ns = kShownUnixNs};
    change(call);
    return judge(call, now_);
  }
  Judged by_gamma(const std::function<void(Call&)>& change) const {
    Call call{
        .hello = hello_, .peer = gamma_, .known = known_, .knows_session = true, .now_unix_ns = kShownUnixNs};
    change(call);
    return judge(call, now_);
  }
  static void of_its_session(Call& call) { call.knows_session = call.active = call.of_caller = true; }

  const std::string kId = std::string(32, 'a');
  const identity::Peer alpha_ = peer(node(1));
  const identity::Peer gamma_ = peer(node(3));
  identity::Standing now_;
  transfer::Hello hello_;
  std::optional<transfer::Granted> known_;
};

TEST_F(JudgeTest, TheHolderBeginsASession) {
  const Judged good = judged();
  ASSERT_TRUE(good.granted && *good.granted);
  EXPECT_EQ((*good.granted)->issuer, "home");
  EXPECT_FALSE(good.ends);
  hello_.grant.reset();
  EXPECT_FALSE(*judged().granted) << "nobody has ordered it";
}

TEST_F(JudgeTest, ALateOneBeginsNoneButGoesOn) {
  const auto late = [](Call& call) { call.now_unix_ns = kShownUnixNs + kStartWithinNs + kClocksApartNs + 1; };
  EXPECT_EQ(judged(late).granted.error().code, ErrorCode::kPeerUntrusted);
  known_ = **judged().granted;
  EXPECT_TRUE(judged([&](Call& call) {
                of_its_session(call);
                late(call);
              }).granted);
}

TEST_F(JudgeTest, AnotherNodeBeginsNoneByIt) {
  const Judged refused = by_gamma([](Call& call) { call.knows_session = false; });
  ASSERT_FALSE(refused.granted);
  EXPECT_EQ(refused.granted.error().code, ErrorCode::kPeerUntrusted);
  EXPECT_FALSE(refused.ends) << "there is no session to be ended";
}

TEST_F(JudgeTest, ASecondPresenterEndsTheSessionThatRuns) {
  known_ = **judged().granted;
  const auto runs = [](Call& call) { call.active = true; };
  const Judged second = by_gamma(runs);
  ASSERT_FALSE(second.granted);
  ASSERT_TRUE(second.ends);
  EXPECT_NE(second.ends->message.find("node gamma"), std::string::npos);
  hello_.grant = signed_by(node(0), kSecondNs);
  EXPECT_TRUE(by_gamma(runs).ends) << "one that was renewed";
  hello_.grant = signed_by(node(3), 0);
  EXPECT_FALSE(by_gamma(runs).ends) << "its own, under an id that it knows";
}

TEST_F(JudgeTest, OfOneThatHasEndedNobodyHearsMoreThanAnybody) {
  known_ = **judged().granted;
  const Judged other = by_gamma([](Call&) {});
  ASSERT_TRUE(other.granted);
  EXPECT_FALSE(*other.granted);
  EXPECT_FALSE(other.ends);
  const Judged own = judged([](Call& call) { call.knows_session = call.of_caller = true; });
  EXPECT_TRUE(own.granted) << "transfer/peer_call.h tells it the end";
}

TEST_F(JudgeTest, ASessionHasAGrantFromItsFirstCallOrNever) {
  EXPECT_FALSE(judged(of_its_session).granted) << "it began without one";
  known_ = **judged().granted;
  hello_.grant.reset();
  EXPECT_FALSE(judged(of_its_session).granted);
  hello_.grant = signed_by(node(3), 0);
  EXPECT_FALSE(judged(of_its_session).granted) << "of another issuer";
}

}  // namespace
}  // namespace sluice::grant
