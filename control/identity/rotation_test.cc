// The change of a key: whom its statement convinces, and what is there when it is interrupted.
// SPDX-License-Identifier: Apache-2.0
#include "control/identity/rotation.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <ctime>
#include <fstream>

#include "control/identity/authority_for_test.h"
#include "control/identity/signature.h"
#include "control/identity/successor.h"
#include "control/identity/trust.h"

namespace sluice::identity {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kNow = 1'800'000'000;
constexpr int64_t kWeek = 7 * 86'400;

// Beta changes its key; alpha has pinned the present one.
class RotationTest : public testing::Test {
 protected:
  RotationTest() {
    char name[] = "/tmp/sluice-rotation-XXXXXX";
    root_ = ::mkdtemp(name);
    alpha_.directory = root_ / "alpha";
    alpha_.name = "alpha";
    beta_ = root_ / "beta";
    EXPECT_TRUE(create(alpha_.directory, "alpha"));
    EXPECT_TRUE(create(beta_, "beta"));
    before_ = *load(beta_);
    EXPECT_TRUE(trust(alpha_.directory, "beta", "h:1", before_.certificate_pem, false));
  }
  ~RotationTest() override { fs::remove_all(root_); }

  Identity begin(int64_t overlap_s = kWeek) {
    const auto begun = begin_rotation(beta_, {.overlap_s = overlap_s}, kNow);
    EXPECT_TRUE(begun) << begun.error().message;
    return *begun;
  }
  // Who that is to alpha; otherwise why nobody.
  std::string who(const std::string& pem, int64_t now = kNow) const {
    const auto certificate = parse_certificate(pem);
    const Result<Peer> peer = Trust::load(alpha_)->judge({.certificate = certificate->get()}, now);
    return peer ? peer->name : peer.error().message;
  }
  std::optional<Offer> offered(const std::string& leaf, const std::string& beside) const {
    const auto certificate = parse_certificate(leaf);
    const auto other = parse_certificate(beside);
    STACK_OF(X509)* others = sk_X509_new_null();
    sk_X509_push(others, other->get());
    auto offer = Trust::load(alpha_)->offer_in({.certificate = certificate->get(), .others = others});
    sk_X509_free(others);
    return offer;
  }

  fs::path root_;
  fs::path beta_;
  config::Node alpha_;
  Identity before_;
};

TEST_F(RotationTest, UntilItIsFinishedThePresentKeyCounts) {
  const Identity begun = begin();
  EXPECT_EQ(begun.fingerprint, before_.fingerprint);
  ASSERT_FALSE(begun.next_certificate_pem.empty());
  struct stat info {};
  ::stat((beta_ / "identity/next-key.pem").c_str(), &info);
  EXPECT_EQ(info.st_mode & 07777, 0600U);
  EXPECT_FALSE(begin_rotation(beta_, {}, kNow)) << "one at a time";
  const auto after = finish_rotation(beta_);
  ASSERT_TRUE(after) << after.error().message;
  EXPECT_EQ(after->fingerprint, *fingerprint_of_pem(begun.next_certificate_pem));
  EXPECT_TRUE(after->next_certificate_pem.empty());
  EXPECT_EQ(after->name, "beta");
  EXPECT_FALSE(finish_rotation(beta_));
}

TEST_F(RotationTest, ItCanBeAbandoned) {
  begin();
  EXPECT_TRUE(*abandon_rotation(beta_));
  EXPECT_FALSE(*abandon_rotation(beta_));
  EXPECT_EQ(load(beta_)->fingerprint, before_.fingerprint);
  EXPECT_TRUE(load(beta_)->next_certificate_pem.empty());
}

// Somebody pulls the plug between any two steps: one whole identity is there, and the change can be ended.
TEST_F(RotationTest, InterruptedAnywhereItLeavesOneWholeIdentity) {
  struct Interrupted {};
  for (int at = 1; at <= 2; ++at) {
    const std::string old = load(beta_)->fingerprint;
    const std::string next = *fingerprint_of_pem(begin().next_certificate_pem);
    int steps = 0;
    const auto interrupt = [&] {
      if (++steps == at) throw Interrupted{};
    };
    EXPECT_THROW((void)finish_rotation(beta_, interrupt), Interrupted);
    const auto there = load(beta_);
    ASSERT_TRUE(there) << "step " << at << ": " << there.error().message;
    EXPECT_EQ(there->fingerprint, at == 1 ? old : next);
    EXPECT_TRUE(sign(*there, "x")) << "the key is that of the certificate";
    EXPECT_TRUE(check_signature(there->certificate_pem, "x", *sign(*there, "x")));
    if (at == 2) {
      EXPECT_FALSE(abandon_rotation(beta_)) << "the former key is gone";
    }
    const auto ended = finish_rotation(beta_);
    ASSERT_TRUE(ended) << ended.error().message;
    EXPECT_EQ(ended->fingerprint, next);
  }
}

TEST_F(RotationTest, AKeyWithoutItsCertificateIsNothing) {
  std::ofstream(beta_ / "identity/next-key.pem") << "half a key";
  EXPECT_EQ(load(beta_)->fingerprint, before_.fingerprint);
  EXPECT_FALSE(finish_rotation(beta_));
  begin();
  EXPECT_TRUE(finish_rotation(beta_));
}

TEST_F(RotationTest, WhoAsksItsOperatorRefusesTheNewKeyAndKnowsTheOffer) {
  const Identity begun = begin();
  const std::string next = begun.next_certificate_pem;
  EXPECT_NE(who(next).find("sluice node trust beta --successor"), std::string::npos) << who(next);
  EXPECT_EQ(offered(begun.certificate_pem, next)->fingerprint, *fingerprint_of_pem(next));
  ASSERT_TRUE(trust(alpha_.directory, "beta", "", next, false)) << "signed by the pinned key: no --replace";
  EXPECT_EQ(find_peer(alpha_.directory, "beta")->address, "h:1");
  EXPECT_EQ(who(next), "beta");
  EXPECT_EQ(who(begun.certificate_pem), "beta") << "both count";
  EXPECT_EQ(who(begun.certificate_pem, kNow + kWeek - 1), "beta");
  EXPECT_NE(who(begun.certificate_pem, kNow + kWeek), "beta") << "the former one not for ever";
  EXPECT_EQ(who(next, kNow + kWeek), "beta");
}

TEST_F(RotationTest, WhoAcceptsDoesSoUntilTheOverlapEnds) {
  alpha_.successors = "accept";
  const std::string next = begin().next_certificate_pem;
  EXPECT_EQ(who(next), "beta");
  EXPECT_EQ(who(next, kNow + kWeek - 1), "beta");
  EXPECT_NE(who(next, kNow + kWeek), "beta");
}

TEST_F(RotationTest, NobodyElseCanSignForASuccessor) {
  alpha_.successors = "accept";
  const fs::path mallory = root_ / "mallory";
  ASSERT_TRUE(create(mallory, "beta"));
  const std::string own = begin_rotation(mallory, {.overlap_s = kWeek}, kNow)->next_certificate_pem;
  EXPECT_NE(who(own), "beta");
  EXPECT_FALSE(offered(before_.certificate_pem, own));
  EXPECT_FALSE(trust(alpha_.directory, "beta", "", own, false));
  // Signed by mallory, who says that it was beta's key.
  std::ifstream in(mallory / "identity/key.pem");
  const auto key = parse_key(std::string(std::istreambuf_iterator<char>(in), {}));
  ASSERT_TRUE(key);
  const Succession lie{
      .former = key->get(), .former_fingerprint = before_.fingerprint, .until_unix_s = kNow + kWeek};
  EXPECT_NE(who(make_key_pair({.name = "beta", .succession = &lie})->certificate_pem), "beta");
}

// What a certificate says of the key before it, and nobody pinned, lends nobody a name.
TEST_F(RotationTest, AStatementThatNobodyCheckedMakesNoFormerKey) {
  const fs::path gamma = root_ / "gamma";
  ASSERT_TRUE(create(gamma, "gamma"));
  const std::string first = load(gamma)->certificate_pem;
  const std::string next = begin_rotation(gamma, {.overlap_s = kWeek}, kNow)->next_certificate_pem;
  ASSERT_TRUE(trust(alpha_.directory, "gamma", "", next, false));
  EXPECT_EQ(who(next), "gamma");
  EXPECT_NE(who(first), "gamma");
}

TEST_F(RotationTest, AStatementIsOfOneKeyAndOneTime) {
  const auto certificate = parse_certificate(begin().next_certificate_pem);
  const std::optional<Statement> statement = statement_in(certificate->get());
  ASSERT_TRUE(statement);
  EXPECT_EQ(statement->former_fingerprint, before_.fingerprint);
  EXPECT_EQ(statement->until_unix_s, kNow + kWeek);
  EXPECT_TRUE(follows(certificate->get(), before_.certificate_pem));
  const std::string fingerprint = *fingerprint_of(certificate->get());
  const auto good = [&](const std::string& text) {
    return static_cast<bool>(check_signature(before_.certificate_pem, text, statement->signature));
  };
  EXPECT_TRUE(good(statement_text(before_.fingerprint, fingerprint, kNow + kWeek)));
  EXPECT_FALSE(good(statement_text(before_.fingerprint, fingerprint, kNow + kWeek + 1)));
  EXPECT_FALSE(good(statement_text(before_.fingerprint, before_.fingerprint, kNow + kWeek)));
  EXPECT_FALSE(statement_in(parse_certificate(before_.certificate_pem)->get()));
}

TEST_F(RotationTest, FormerKeysAreRememberedWithTheirTimes) {
  const auto written = fs::last_write_time(beta_ / "identity/cert.pem");
  begin();
  ASSERT_TRUE(finish_rotation(beta_));
  const auto former = load_former(beta_);
  ASSERT_TRUE(former);
  ASSERT_EQ(former->size(), 1U);
  EXPECT_EQ(former->front().fingerprint, before_.fingerprint);
  EXPECT_EQ(fs::last_write_time(beta_ / "identity/former" / (before_.fingerprint + ".pem")), written);
}

TEST_F(RotationTest, ACertificateOfAnAuthorityTakesThePlaceOfOnesOwn) {
  const Issued ca = make_authority("CA");
  const Issued issued = make_peer(ca, "DNS:beta.example.org");
  EXPECT_FALSE(install(beta_, issued.pem(), "")) << "of another key";
  ASSERT_TRUE(install(beta_, issued.pem() + ca.pem(), issued.key_pem()));
  EXPECT_TRUE(load_of(beta_, "beta", "example.org"));
  EXPECT_FALSE(load_of(beta_, "beta"));
  EXPECT_FALSE(load_of(beta_, "gamma", "example.org"));
  ASSERT_TRUE(install(beta_, issued.pem(), "")) << "another certificate of the same key";
}

}  // namespace
}  // namespace sluice::identity
