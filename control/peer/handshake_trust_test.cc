// Whom two nodes take each other for over real TLS: by an authority and those below it, and while a key
// changes.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>

#include "control/identity/authority_for_test.h"
#include "control/identity/rotation.h"
#include "control/peer/connection_fixture.h"

namespace sluice::peer {
namespace {

TEST_F(ConnectionTest, AnAuthorityAndThoseBelowItNameACaller) {
  const identity::Issued ca = identity::make_authority("CA");
  const identity::Issued below = identity::make_authority("site", identity::kYearForTest, &ca);
  const identity::Issued issued = identity::make_peer(below, "DNS:gamma");
  make("gamma");
  ASSERT_TRUE(identity::install(root_ / "gamma", issued.pem() + below.pem(), issued.key_pem()));
  config::Node node;
  node.directory = root_ / "beta";
  node.name = "beta";
  node.ca_file = root_ / "ca.pem";
  std::ofstream(node.ca_file) << ca.pem();
  const identity::Standing now{std::make_shared<const identity::Identity>(beta_),
                               std::make_shared<const identity::Trust>(*identity::Trust::load(node))};
  listener_ = start(beta_, [now]() -> asio::awaitable<Result<identity::Standing>> { co_return now; });
  const auto called = run(call(*identity::load(root_ / "gamma"), peer_beta()));
  ASSERT_TRUE(called) << called.error().message;
  run_until([&] { return !accepted_.empty(); });
  const identity::Peer& gamma = accepted_.front()->peer();
  EXPECT_EQ(gamma.name, "gamma");
  EXPECT_TRUE(gamma.by_authority);
  EXPECT_TRUE(now.trust->check_still(gamma)) << "with those below the authority";
  EXPECT_EQ(connect_error(alpha_, peer_beta()).code, ErrorCode::kPeerUntrusted)
      << "alpha is not pinned there";
}

// Beta shows its next certificate behind its own, then in its place.
TEST_F(ConnectionTest, AKeyThatIsToFollowIsShownAndThenUsed) {
  const auto begun = identity::begin_rotation(root_ / "beta", {.overlap_s = 1000}, std::time(nullptr));
  ASSERT_TRUE(begun) << begun.error().message;
  identity::Identity self = *begun;
  const identity::Peer alpha{"alpha", "", alpha_.fingerprint, alpha_.certificate_pem};
  listener_ = start(beta_, [&self, alpha]() -> asio::awaitable<Result<identity::Standing>> {
    co_return standing(self, alpha);
  });
  identity::Peer beta = peer_beta();
  beta.certificate_pem = beta_.certificate_pem;
  std::vector<identity::Offer> offers;
  const auto hear = [&offers](identity::Offer offer) { offers.push_back(std::move(offer)); };
  const auto first = run(connect(standing(alpha_, beta), beta, kTimeoutMs, memory_, hear));
  ASSERT_TRUE(first) << first.error().message;
  ASSERT_EQ(offers.size(), 1U);
  EXPECT_EQ(offers[0].peer, "beta");
  EXPECT_EQ(offers[0].certificate_pem, begun->next_certificate_pem);
  EXPECT_EQ((*first)->own_fingerprint(), alpha_.fingerprint);

  self = *identity::finish_rotation(root_ / "beta");
  const auto refused = run(connect(standing(alpha_, beta), beta, kTimeoutMs, memory_, hear));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kPeerUntrusted);
  EXPECT_NE(refused.error().message.find("sluice node trust beta --successor"), std::string::npos)
      << refused.error().message;
  EXPECT_EQ(offers.size(), 2U);
  beta.fingerprint = offers[0].fingerprint;
  const auto second = run(connect(standing(alpha_, beta), beta, kTimeoutMs, memory_, hear));
  EXPECT_TRUE(second) << second.error().message;
}

}  // namespace
}  // namespace sluice::peer
