// The directory of an authority's holder: tokens are good as often as they say, for whom they say.
// SPDX-License-Identifier: Apache-2.0
#include "control/site/site.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <ctime>
#include <fstream>

#include "control/identity/authority.h"
#include "control/identity/authority_for_test.h"
#include "control/identity/node_files.h"
#include "control/site/words.h"

namespace sluice::site {
namespace {

namespace fs = std::filesystem;

const int64_t kNow = std::time(nullptr);
constexpr int64_t kHour = 3600;

// A node with a key, which asks with a token.
struct Newcomer {
  identity::Issued self = identity::issue({.common_name = "newcomer"});
  std::string fingerprint = *identity::fingerprint_of(self.certificate.get());

  Asked ask(const Token& token, const std::string& name, const std::string& binding = "ab") const {
    Asked asked{.wish = {.token = token_id(*public_key_of(token)),
                         .name = name,
                         .fingerprint = fingerprint,
                         .binding = binding},
                .signature = {},
                .key = self.key.get()};
    asked.signature = *sign_wish(token, asked.wish);
    return asked;
  }
};

class SiteTest : public testing::Test {
 protected:
  SiteTest() {
    char name[] = "/tmp/sluice-site-XXXXXX";
    root_ = ::mkdtemp(name);
    const Status made =
        Site::create(root_ / "ca", {.domain = "dtn.example", .name = "A", .lifetime_s = 86'400});
    EXPECT_TRUE(made) << made.error().message;
  }
  ~SiteTest() override { fs::remove_all(root_); }

  Site open() const {
    Result<Site> site = Site::open(root_ / "ca");
    EXPECT_TRUE(site) << site.error().message;
    return std::move(*site);
  }
  Token token(TokenRules rules = {}) const {
    Site site = open();
    rules.made_unix_s = kNow;
    rules.until_unix_s = kNow + kHour;
    if (rules.lifetime_s == 0) rules.lifetime_s = kHour;
    const Result<Token> made = make_token(site.fingerprint(), "hub:7401", "");
    EXPECT_TRUE(site.add_token(*made, rules));
    return *made;
  }
  // Empty: enrolled. Each time as after a restart.
  std::string refused(const Asked& asked, int64_t now = kNow) const {
    Site site = open();
    const auto enrolled = site.enrol(asked, now);
    return enrolled ? "" : enrolled.error().message;
  }
  static bool has(const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
  }
  fs::path root_;
};

TEST_F(SiteTest, WhoIsEnrolledIsAPeerOfTheAuthority) {
  const Newcomer beta;
  const Token once = token();
  Site site = open();
  const auto enrolled = site.enrol(beta.ask(once, "beta"), kNow);
  ASSERT_TRUE(enrolled) << enrolled.error().message;
  std::ofstream(root_ / "ca.pem") << enrolled->ca_pem;
  std::ofstream(root_ / "crl.pem") << enrolled->crl_pem;
  const auto authority = identity::Authority::load(root_ / "ca.pem", root_ / "crl.pem", enrolled->domain);
  ASSERT_TRUE(authority) << authority.error().message;
  const auto certificate = identity::parse_certificate(enrolled->certificate_pem);
  const auto name = (*authority)->judge({.certificate = certificate->get()});
  ASSERT_TRUE(name) << name.error().message;
  EXPECT_EQ(*name, "beta");
  EXPECT_EQ(*identity::fingerprint_of(certificate->get()), beta.fingerprint);
  EXPECT_EQ(X509_check_ca(certificate->get()), 0);
  ASSERT_TRUE(site.revoke_node("beta"));
  std::ofstream(root_ / "crl.pem") << *identity::read_small_file(root_ / "ca" / "crl.pem");
  const auto later = identity::Authority::load(root_ / "ca.pem", root_ / "crl.pem", enrolled->domain);
  EXPECT_FALSE((*later)->judge({.certificate = certificate->get()}));
}

TEST_F(SiteTest, ATokenIsGoodOnceAlsoAfterARestart) {
  const Newcomer beta, gamma;
  const Token once = token();
  EXPECT_EQ(refused(beta.ask(once, "beta")), "");
  EXPECT_TRUE(has(refused(gamma.ask(once, "gamma")), "used already, by beta"));
  // The same key has perhaps not heard the answer.
  EXPECT_EQ(refused(beta.ask(once, "beta", "cd")), "");
  EXPECT_TRUE(has(refused(beta.ask(once, "delta")), "was enrolled as beta"));
  const auto all = open().tokens();
  ASSERT_TRUE(all && all->size() == 1);
  EXPECT_EQ(all->front().word(kNow), "used");
  EXPECT_EQ(all->front().uses.front().name, "beta");
}

TEST_F(SiteTest, ATokenOfSeveralUsesHasSoMany) {
  const Token twice = token({.pattern = "job-*", .uses_max = 2});
  EXPECT_EQ(refused(Newcomer().ask(twice, "job-1")), "");
  EXPECT_TRUE(has(refused(Newcomer().ask(twice, "node-2")), "is for the name job-*"));
  EXPECT_EQ(refused(Newcomer().ask(twice, "job-2")), "");
  EXPECT_TRUE(has(refused(Newcomer().ask(twice, "job-3")), "used already"));
}

TEST_F(SiteTest, WhatIsOverOrRevokedEnrolsNobody) {
  const Newcomer beta;
  const Token late = token(), revoked = token();
  EXPECT_TRUE(has(refused(beta.ask(late, "beta"), kNow + kHour), "counted until"));
  Site site = open();
  ASSERT_TRUE(site.revoke_token(token_id(*public_key_of(revoked))));
  EXPECT_TRUE(has(refused(beta.ask(revoked, "beta")), "was revoked"));
  EXPECT_EQ(site.revoke_token("0123456789abcdef").error().code, ErrorCode::kUsage);
}

TEST_F(SiteTest, WhoHasNoTokenLearnsNothingOfIt) {
  const Newcomer beta;
  const Token once = token();
  Asked forged = beta.ask(once, "beta");
  forged.wish.binding = "cd";  // of another connection
  const std::string unknown = refused(forged);
  EXPECT_TRUE(has(unknown, "not known")) << unknown;
  const Token never = *make_token(open().fingerprint(), "", "");
  EXPECT_EQ(refused(beta.ask(never, "beta")), unknown);
  forged = beta.ask(once, "beta");
  forged.wish.fingerprint = Newcomer().fingerprint;  // somebody in the middle with a key of its own
  EXPECT_EQ(refused(forged), unknown);
  forged = beta.ask(once, "beta");
  forged.wish.token = "../ca";
  EXPECT_EQ(refused(forged), unknown);
  EXPECT_EQ(refused(beta.ask(once, "beta")), "");
}

TEST_F(SiteTest, ANameBelongsToItsKeyUnlessTheTokenMayReplaceIt) {
  const Newcomer beta, other;
  EXPECT_EQ(refused(beta.ask(token(), "beta")), "");
  EXPECT_TRUE(has(refused(other.ask(token(), "beta")), "is taken"));
  EXPECT_EQ(refused(other.ask(token({.pattern = "beta", .replaces = true}), "beta")), "");
  Site site = open();
  EXPECT_TRUE(site.revoke_node("beta"));
  EXPECT_EQ(refused(Newcomer().ask(token(), "beta")), "");
  EXPECT_TRUE(has(refused(beta.ask(token(), "null")), "cannot name a node"));
  EXPECT_EQ(site.revoke_node("nobody").error().code, ErrorCode::kUsage);
}

// Each renewal leaves a certificate that counts until its end.
TEST_F(SiteTest, ANodeIsRevokedWithAllThatItWasGiven) {
  const Newcomer beta, successor, gamma;
  std::vector<std::string> given;
  const auto enrol = [&](const Newcomer& who, const std::string& name, TokenRules rules = {}) {
    Site site = open();
    const auto enrolled = site.enrol(who.ask(token(std::move(rules)), name), kNow);
    ASSERT_TRUE(enrolled) << enrolled.error().message;
    given.push_back(enrolled->certificate_pem);
    std::ofstream(root_ / "ca.pem") << enrolled->ca_pem;
  };
  const auto good = [&](const std::string& certificate_pem) {
    std::ofstream(root_ / "crl.pem") << *identity::read_small_file(root_ / "ca" / "crl.pem");
    const auto authority = identity::Authority::load(root_ / "ca.pem", root_ / "crl.pem", "dtn.example");
    const auto certificate = identity::parse_certificate(certificate_pem);
    return static_cast<bool>((*authority)->judge({.certificate = certificate->get()}));
  };
  enrol(gamma, "gamma");
  enrol(beta, "beta");
  enrol(beta, "beta");
  ASSERT_TRUE(open().revoke_node("beta"));
  EXPECT_FALSE(good(given[1])) << "the one before the renewal";
  EXPECT_FALSE(good(given[2]));
  enrol(beta, "beta");
  enrol(successor, "beta", {.pattern = "beta", .replaces = true});
  EXPECT_FALSE(good(given[1]));
  EXPECT_TRUE(good(given[3]));
  ASSERT_TRUE(open().revoke_key(beta.fingerprint));
  for (size_t i = 1; i <= 3; ++i) EXPECT_FALSE(good(given[i])) << i;
  EXPECT_TRUE(good(given[4])) << "of another key";
  ASSERT_TRUE(open().revoke_node("beta"));
  for (size_t i = 1; i <= 4; ++i) EXPECT_FALSE(good(given[i])) << i << ": what was revoked stays so";
  EXPECT_TRUE(good(given[0])) << "of another node";
  EXPECT_EQ(open().revoke_key(std::string(64, '0')).error().code, ErrorCode::kUsage);
}

TEST_F(SiteTest, ATokenIsRememberedAsLongAsWhatItSigned) {
  const Token used = token({.lifetime_s = 200 * 24 * kHour}),
              unused = token({.lifetime_s = 200 * 24 * kHour});
  EXPECT_EQ(refused(Newcomer().ask(used, "beta")), "");
  const auto remembered = [&](const Token& one, int64_t days) {
    Site site = open();
    TokenRules later;
    later.made_unix_s = kNow + days * 24 * kHour;
    later.until_unix_s = later.made_unix_s + kHour;
    later.lifetime_s = kHour;
    EXPECT_TRUE(site.add_token(*make_token(site.fingerprint(), "hub:7401", ""), later));
    return fs::exists(root_ / "ca" / "tokens" / token_id(*public_key_of(one)));
  };
  EXPECT_TRUE(remembered(unused, 80));
  EXPECT_FALSE(remembered(unused, 100));
  EXPECT_TRUE(remembered(used, 280));
  EXPECT_FALSE(remembered(used, 300));
}

TEST_F(SiteTest, AKeyThatOthersMayReadIsNoKey) {
  ::chmod((root_ / "ca" / "key.pem").c_str(), 0644);
  EXPECT_TRUE(has(Site::open(root_ / "ca").error().message, "chmod 600"));
  EXPECT_FALSE(Site::create(root_ / "ca", {.name = "A", .lifetime_s = 1}));
}

TEST_F(SiteTest, OneProcessEnrolsAtATime) {
  Site first = open(), second = open();
  ASSERT_TRUE(first.lock());
  EXPECT_TRUE(has(second.lock().error().message, "another"));
}

TEST_F(SiteTest, AnAuthorityThatIsThereCanBeTaken) {
  const identity::Issued root = identity::make_authority("root");
  const identity::Issued below = identity::make_authority("below", identity::kYearForTest, &root);
  const SiteOptions options{.ca_pem = below.pem() + root.pem(), .key_pem = below.key_pem()};
  const Status made = Site::create(root_ / "theirs", options);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_FALSE(Site::create(root_ / "wrong", {.ca_pem = root.pem(), .key_pem = below.key_pem()}));
  Result<Site> opened = Site::open(root_ / "theirs");
  ASSERT_TRUE(opened) << opened.error().message;
  Site& site = *opened;
  const Token once = *make_token(site.fingerprint(), "", "");
  const Newcomer beta;
  ASSERT_TRUE(site.add_token(once, {.made_unix_s = kNow, .until_unix_s = kNow + kHour, .lifetime_s = kHour}));
  const auto enrolled = site.enrol(beta.ask(once, "beta"), kNow);
  ASSERT_TRUE(enrolled) << enrolled.error().message;
  EXPECT_EQ(identity::parse_certificates(enrolled->certificate_pem, 4)->size(), 2U);
  EXPECT_TRUE(enrolled->crl_pem.empty());
}

TEST(Token, IsReadAsItWasWritten) {
  const Token token = *make_token(std::string(64, 'a'), "hub.example.org:7401", "beta");
  const std::string text = to_text(token);
  const auto again = parse_token("  " + text + "\n");
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->seed, token.seed);
  EXPECT_EQ(again->address, token.address);
  EXPECT_EQ(again->name, "beta");
  for (size_t at = 0; at < text.size(); ++at) {
    EXPECT_FALSE(parse_token(text.substr(0, at)));
    std::string other = text;
    other[at] = other[at] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(parse_token(other)) << at;
  }
}

TEST(Token, APatternIsANameOrItsBeginning) {
  for (const char* good : {"beta", "*", "job-*"}) EXPECT_TRUE(valid_pattern(good)) << good;
  for (const char* bad : {"", "*a", "job-**", "Beta", "a/b*"}) EXPECT_FALSE(valid_pattern(bad)) << bad;
  EXPECT_TRUE(matches("job-*", "job-17"));
  EXPECT_FALSE(matches("job-*", "job"));
  EXPECT_FALSE(matches("beta", "beta2"));
}

}  // namespace
}  // namespace sluice::site
