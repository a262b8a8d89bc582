// SPDX-License-Identifier: Apache-2.0
#include "control/grant/grant.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "control/grant/nodes_for_test.h"
#include "control/identity/signature.h"
#include "control/peer/codec.h"
#include "control/proto/orders.pb.h"

namespace sluice::grant {
namespace {

constexpr int64_t kNow = 1'800'000'000 * kSecondNs;
const std::string kId(32, 'a');

class GrantTest : public NodesTest {
 protected:
  GrantTest() : NodesTest({"home", "alpha", "beta", "other"}) {}

  const identity::Identity& home() const { return node(0); }
  const identity::Identity& alpha() const { return node(1); }
  const identity::Identity& beta() const { return node(2); }
  const identity::Identity& other() const { return node(3); }
  Grant grant() const {
    return {.id = kId,
            .issuer = home().fingerprint,
            .holder = alpha().fingerprint,
            .destination = beta().fingerprint,
            .sources_sha256 = digest_of({"data/x"}),
            .path = "data/y",
            .overwrite = true,
            .bytes_max = 7,
            .not_before_unix_ns = kNow,
            .start_by_unix_ns = kNow + kStartWithinNs,
            .end_by_unix_ns = kNow + kEndWithinNs};
  }
  transfer::SignedGrant signed_grant(const std::function<void(Grant&)>& change = [](Grant&) {}) const {
    Grant is = grant();
    change(is);
    const auto made = sign(home(), is);
    EXPECT_TRUE(made) << made.error().message;
    return *made;
  }
  // At beta, which alpha calls.
  Showing at_beta() const {
    return {.session_id = kId, .shown_by = peer(alpha()), .self = beta(), .now_unix_ns = kNow};
  }
  // At alpha, which home calls.
  Showing at_alpha() const {
    return {
        .session_id = kId, .shown_by = peer(home()), .by_issuer = true, .self = alpha(), .now_unix_ns = kNow};
  }
  void expect_refused(const transfer::SignedGrant& shown, const Showing& showing, const std::string& word,
                      ErrorCode code = ErrorCode::kPeerUntrusted) const {
    const auto granted = check(shown, showing, trust());
    ASSERT_FALSE(granted) << word;
    EXPECT_EQ(granted.error().code, code) << granted.error().message;
    EXPECT_NE(granted.error().message.find(word), std::string::npos) << granted.error().message;
  }
};

TEST_F(GrantTest, IsTakenByBothAndSaysWhatItAllows) {
  for (const Showing& showing : {at_alpha(), at_beta()}) {
    const auto granted = check(signed_grant(), showing, trust());
    ASSERT_TRUE(granted) << granted.error().message;
    EXPECT_EQ(granted->issuer, "home");
    EXPECT_EQ(granted->path, "data/y");
    EXPECT_TRUE(granted->overwrite);
    EXPECT_EQ(granted->bytes_max, 7U);
    EXPECT_EQ(granted->end_by_unix_ns, kNow + kEndWithinNs);
    EXPECT_EQ(granted->grant, signed_grant());
  }
}

TEST_F(GrantTest, IsForItsHolderAlone) {
  Showing showing = at_beta();
  showing.shown_by = peer(other());
  expect_refused(signed_grant(), showing, "other shows a grant that home gave to another node");
  showing.shown_by = peer(home());  // the issuer is no holder either
  expect_refused(signed_grant(), showing, "another node");
}

TEST_F(GrantTest, IsForItsDestinationAlone) {
  Showing showing = at_beta();
  const identity::Identity self = other();
  const Showing elsewhere{.session_id = kId, .shown_by = showing.shown_by, .self = self, .now_unix_ns = kNow};
  expect_refused(signed_grant(), elsewhere, "another destination");
}

TEST_F(GrantTest, IsForItsSessionAlone) {
  Showing showing = at_beta();
  showing.session_id = std::string(32, 'b');
  expect_refused(signed_grant(), showing, "another session");
}

TEST_F(GrantTest, IsOrderedByItsIssuerAlone) {
  Showing showing = at_alpha();
  showing.shown_by = peer(other());
  expect_refused(signed_grant(), showing, "other orders a transfer for home");
  const Showing at_other{
      .session_id = kId, .shown_by = peer(home()), .by_issuer = true, .self = other(), .now_unix_ns = kNow};
  expect_refused(signed_grant(), at_other, "another node");
}

TEST_F(GrantTest, CountsForItsTimeAlone) {
  Showing showing = at_beta();
  showing.now_unix_ns = kNow - kClocksApartNs - kSecondNs;
  expect_refused(signed_grant(), showing, "counts from");
  showing.now_unix_ns = kNow - kClocksApartNs + kSecondNs;
  EXPECT_TRUE(check(signed_grant(), showing, trust()));
  showing.now_unix_ns = kNow + kStartWithinNs + kClocksApartNs + kSecondNs;
  expect_refused(signed_grant(), showing, "was to be used by");
  showing.known = true;  // what has begun goes on
  EXPECT_TRUE(check(signed_grant(), showing, trust()));
  showing.now_unix_ns = kNow + kEndWithinNs + kClocksApartNs + kSecondNs;
  expect_refused(signed_grant(), showing, "ended at");
}

TEST_F(GrantTest, OfSomebodyWhomThisNodeDoesNotKnowIsWorthNothing) {
  const identity::Trust knows_alpha({peer(alpha())});
  const auto granted = check(signed_grant(), at_beta(), knows_alpha);
  ASSERT_FALSE(granted);
  EXPECT_EQ(granted.error().code, ErrorCode::kPeerUntrusted);
  EXPECT_NE(granted.error().message.find("sluice node trust"), std::string::npos);
  const auto held = check(signed_grant(), at_beta(), trust());
  ASSERT_TRUE(held);
  EXPECT_TRUE(check_still(*held, trust(), kNow));
  EXPECT_FALSE(check_still(*held, knows_alpha, kNow));
  EXPECT_FALSE(check_still(*held, trust(), kNow + kEndWithinNs + kClocksApartNs + kSecondNs));
}

TEST_F(GrantTest, ThatWasChangedOnItsWayIsForged) {
  transfer::SignedGrant shown = signed_grant();
  for (size_t at = 0; at < shown.grant.size(); ++at) {
    transfer::SignedGrant changed = shown;
    changed.grant[at] = static_cast<char>(changed.grant[at] ^ 1);
    EXPECT_FALSE(read(changed)) << at;
  }
  shown.signature.front() = shown.signature.front() == 'A' ? 'B' : 'A';
  expect_refused(shown, at_beta(), "forged", ErrorCode::kIntegrity);
  shown = signed_grant();
  shown.certificate = other().certificate_pem;
  expect_refused(shown, at_beta(), "forged", ErrorCode::kIntegrity);
}

TEST_F(GrantTest, InTheNameOfAnotherIsNotBelieved) {
  const auto made = sign(other(), grant());  // which says that home has signed it
  ASSERT_TRUE(made);
  expect_refused(*made, at_beta(), "another node than it says", ErrorCode::kIntegrity);
}

TEST_F(GrantTest, ThatCountsForTooLongIsNone) {
  for (const auto& change : std::vector<std::function<void(Grant&)>>{
           [](Grant& is) { is.start_by_unix_ns += kClocksApartNs + 1; },
           [](Grant& is) { is.end_by_unix_ns += kClocksApartNs + 1; },
           [](Grant& is) { is.start_by_unix_ns = is.not_before_unix_ns - 1; },
           [](Grant& is) { is.end_by_unix_ns = is.start_by_unix_ns - 1; },
           [](Grant& is) { is.not_before_unix_ns = -1; }, [](Grant& is) { is.id = "a"; },
           [](Grant& is) { is.holder = "alpha"; }, [](Grant& is) { is.destination = std::string(64, 'x'); },
           [](Grant& is) { is.sources_sha256 = "short"; }, [](Grant& is) { is.path.clear(); }})
    expect_refused(signed_grant(change), at_beta(), "none", ErrorCode::kIncompatible);
}

TEST_F(GrantTest, OfSomethingElseThatWasSignedIsNone) {
  const std::string text = "sluice receipt v1\n{}";
  transfer::SignedGrant shown{
      .grant = text, .signature = *identity::sign(home(), text), .certificate = home().certificate_pem};
  EXPECT_FALSE(read(shown));
  shown.grant.clear();
  EXPECT_FALSE(read(shown));
  shown.certificate = "none";
  expect_refused(shown, at_beta(), "none", ErrorCode::kIncompatible);
}

TEST_F(GrantTest, APathThatIsTooLongIsRefusedWhereItIsSigned) {
  Grant is = grant();
  is.path = std::string(transfer::kGrantPathBytesMax, 'x');
  EXPECT_TRUE(sign(home(), is));
  is.path += 'x';
  const auto made = sign(home(), is);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, ErrorCode::kUsage);
}

TEST_F(GrantTest, NamesOfAnAuthorityCountWhereOneStandsForTheIssuer) {
  identity::Peer by_name = peer(alpha());
  by_name.by_authority = true;
  EXPECT_EQ(party_of(by_name), "node alpha");
  EXPECT_EQ(party_of(peer(alpha())), alpha().fingerprint);
  Showing showing = at_beta();
  showing.shown_by = by_name;
  // home is pinned here: its authority may be another one, and call somebody else alpha.
  expect_refused(signed_grant([](Grant& is) { is.holder = "node alpha"; }), showing, "another node");
  EXPECT_TRUE(check(signed_grant([](Grant& is) { is.holder = "node alpha"; }), at_alpha(), trust()));
}

TEST_F(GrantTest, ADestinationIsFoundAmongThePeersOfTheSource) {
  EXPECT_EQ(*find_party(beta().fingerprint, trust()), "beta");
  const auto unknown = find_party(std::string(64, '0'), trust());
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, ErrorCode::kPeerUntrusted);
}

TEST(GrantDigest, TellsListsOfPathsApart) {
  EXPECT_NE(digest_of({"a", "b"}), digest_of({"ab"}));
  EXPECT_NE(digest_of({"a", "b"}), digest_of({"b", "a"}));
  EXPECT_NE(digest_of({}), digest_of({""}));
  EXPECT_EQ(digest_of({"a"}).size(), 32U);
}

}  // namespace
}  // namespace sluice::grant
