// Whom a node trusts: pins, an authority, what is barred, and ends of validity.
// SPDX-License-Identifier: Apache-2.0
#include "control/identity/trust.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <ctime>
#include <fstream>

#include "control/identity/node_for_test.h"

namespace sluice::identity {
namespace {

namespace fs = std::filesystem;

class TrustTest : public NodeOfAuthority {
 protected:
  Trust trust() const {
    Result<Trust> loaded = Trust::load(node_);
    EXPECT_TRUE(loaded) << loaded.error().message;
    return *loaded;
  }
  // Who it is; otherwise why nobody.
  std::string who(const Issued& shown, const Issued* between = nullptr, int purpose = 0) const {
    return who(trust(), shown, between, purpose);
  }
  static std::string who(const Trust& trust, const Issued& shown, const Issued* between = nullptr,
                         int purpose = 0) {
    STACK_OF(X509)* others = sk_X509_new_null();
    if (between != nullptr) sk_X509_push(others, between->certificate.get());
    const Result<Peer> peer = trust.judge(
        {.certificate = shown.certificate.get(), .others = others, .purpose = purpose}, std::time(nullptr));
    sk_X509_free(others);
    if (peer) return peer->name;
    EXPECT_EQ(peer.error().code, ErrorCode::kPeerUntrusted);
    return peer.error().message;
  }
  // What is wrong with the authority; empty: nothing.
  std::string problem() const {
    const Trust loaded = trust();
    return loaded.problems().empty() ? "" : loaded.problems().front().message;
  }
  void pin(const std::string& name, const Issued& key) {
    const auto pinned = identity::trust(node_.directory, name, "", key.pem(), false);
    EXPECT_TRUE(pinned) << pinned.error().message;
  }
};

void expect_says(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << text;
}

TEST_F(TrustTest, OnlyPinnedKeysCountUnlessAnAuthorityIsNamed) {
  node_.ca_file.clear();
  const Issued beta = make_peer(ca_, "DNS:beta");
  expect_says(who(beta), "not pinned");
  pin("other", beta);
  EXPECT_EQ(who(beta), "other");
}

TEST_F(TrustTest, AnAuthorityNamesItsPeers) {
  EXPECT_EQ(who(make_peer(ca_, "DNS:beta")), "beta");
  EXPECT_EQ(who(make_peer(ca_, "DNS:Beta")), "beta") << "DNS knows no case";
  EXPECT_EQ(who(make_peer(ca_, "DNS:beta,DNS:beta.example.org,IP:10.0.0.1")), "beta");
  const Issued stranger = make_authority("CA of the test");
  EXPECT_NE(who(make_peer(stranger, "DNS:beta")), "beta") << "of another of the same name";
  EXPECT_NE(who(issue({.common_name = "beta", .extensions = {{NID_subject_alt_name, "DNS:beta"}}})), "beta");
}

TEST_F(TrustTest, OneNameAndNoOther) {
  expect_says(who(make_peer(ca_, "DNS:beta,DNS:gamma")), "two peers");
  expect_says(who(make_peer(ca_, "DNS:beta.example.org")), "ca_domain");
  expect_says(who(make_peer(ca_, "URI:sluice:beta,email:beta@example.org")), "names no peer");
  expect_says(who(issue({.common_name = "beta"}, &ca_)), "names no peer");  // common names
  expect_says(who(make_peer(ca_, "DNS:*")), "names no peer");
  expect_says(who(make_peer(ca_, "DNS:alpha")), "name of this node");
}

TEST_F(TrustTest, ADomainIsCutOffAndNamesOfOthersAreNone) {
  node_.ca_domain = "dtn.example.org";
  EXPECT_EQ(who(make_peer(ca_, "DNS:beta.dtn.example.org")), "beta");
  EXPECT_EQ(who(make_peer(ca_, "DNS:beta.dtn.example.org,DNS:www.example.org")), "beta");
  expect_says(who(make_peer(ca_, "DNS:beta")), "LABEL.dtn.example.org");
  expect_says(who(make_peer(ca_, "DNS:beta.evil.org")), "names no peer");
  expect_says(who(make_peer(ca_, "DNS:x.beta.dtn.example.org")), "names no peer");
  expect_says(who(make_peer(ca_, "DNS:betadtn.example.org")), "names no peer");
  EXPECT_EQ(trust().find("beta")->address, "beta.dtn.example.org:7400");
  ASSERT_TRUE(set_address(node_, "beta", "10.0.0.1:7000"));
  EXPECT_EQ(trust().find("beta")->address, "10.0.0.1:7000");
}

TEST_F(TrustTest, NameConstraintsOfAnAuthorityBelowHold) {
  node_.ca_domain = "example.org";
  const Issued below = make_authority("site", kYearForTest, &ca_,
                                      {{NID_name_constraints, "critical,permitted;DNS:beta.example.org"}});
  EXPECT_EQ(who(make_peer(below, "DNS:beta.example.org"), &below), "beta");
  expect_says(who(make_peer(below, "DNS:gamma.example.org"), &below), "permitted subtree violation");
  expect_says(who(make_peer(below, "DNS:beta.example.org")), "unable to get local issuer");
}

TEST_F(TrustTest, DatesAndPurposesOfAnAuthoritysPeersAreJudged) {
  expect_says(who(make_peer(ca_, "DNS:beta", -60)), "expired");
  expect_says(
      who(issue({.common_name = "x", .extensions = {{NID_subject_alt_name, "DNS:beta"}}, .begins_s = 3600},
                &ca_)),
      "not yet valid");
  const Issued calls =
      issue({.common_name = "x",
             .extensions = {{NID_subject_alt_name, "DNS:beta"}, {NID_ext_key_usage, "clientAuth"}}},
            &ca_);
  EXPECT_EQ(who(calls, nullptr, X509_PURPOSE_SSL_CLIENT), "beta");
  expect_says(who(calls, nullptr, X509_PURPOSE_SSL_SERVER), "purpose");
}

TEST_F(TrustTest, WhatRevokesAPeer) {
  const Issued beta = make_peer(ca_, "DNS:beta");
  const Issued gamma = make_peer(ca_, "DNS:gamma");
  node_.crl_file = root_ / "crl.pem";
  write(node_.crl_file, make_list(ca_, &beta));
  expect_says(who(beta), "revoked");
  EXPECT_EQ(who(gamma), "gamma");
  write(node_.crl_file, make_list(ca_, nullptr));
  EXPECT_EQ(who(beta), "beta");
  write(node_.crl_file, make_list(ca_, nullptr, -60));
  expect_says(who(beta), "CRL has expired; a new one is needed, unless the clock");
  write(node_.crl_file, make_list(ca_, nullptr, kYearForTest, 3600));
  expect_says(who(beta), "CRL is not yet valid; the clock of this host, which says 2");
  write(node_.crl_file, make_list(make_authority("other"), nullptr));
  expect_says(who(beta), "unable to get certificate CRL");
  write(node_.crl_file, "");
  expect_says(problem(), "crl.pem");
  EXPECT_NE(who(beta), "beta") << "without the list nobody knows";
}

TEST_F(TrustTest, WhatIsNoAuthorityIsNamed) {
  write(node_.ca_file, "");
  expect_says(problem(), "ca.pem: is empty");
  write(node_.ca_file, "words\n");
  expect_says(problem(), "no certificate in PEM form");
  write(node_.ca_file, ca_.pem().substr(0, 300));
  expect_says(problem(), "damaged");
  write(node_.ca_file, make_peer(ca_, "DNS:beta").pem());
  expect_says(problem(), "no basicConstraints");
  write(node_.ca_file,
        issue({.common_name = "x", .extensions = {{NID_basic_constraints, "CA:FALSE"}}}).pem());
  expect_says(problem(), "may not sign certificates");
  std::string bundle;
  for (int i = 0; i < 5; ++i) bundle += make_authority("CA " + std::to_string(i)).pem();
  write(node_.ca_file, bundle);
  expect_says(problem(), "more than 4 certificates");
  write(node_.ca_file, ca_.pem());
  ::chmod(node_.ca_file.c_str(), 0664);
  expect_says(problem(), "chmod go-w");
  fs::remove(node_.ca_file);
  expect_says(problem(), "No such file");
}

TEST_F(TrustTest, AnAuthorityThatIsOutOfDateLetsNobodyIn) {
  const Issued old = make_authority("old", -60);
  write(node_.ca_file, old.pem());
  expect_says(who(make_peer(old, "DNS:beta")), "expired");
  EXPECT_EQ(trust().expiries().front().kind, "ca");
}

TEST_F(TrustTest, OneAuthorityMayFollowAnother) {
  const Issued next = make_authority("next");
  write(node_.ca_file, ca_.pem() + next.pem());
  EXPECT_EQ(who(make_peer(ca_, "DNS:beta")), "beta");
  EXPECT_EQ(who(make_peer(next, "DNS:beta")), "beta");
}

TEST_F(TrustTest, ANameThatIsPinnedBelongsToItsPin) {
  const Issued pinned = issue({.common_name = "x"});
  const Issued beta = make_peer(ca_, "DNS:beta");
  pin("beta", pinned);
  EXPECT_EQ(who(pinned), "beta");
  expect_says(who(beta), "pinned to another key");
  // A pin that cannot be read gives its name to nobody.
  write(node_.directory / "trusted/beta.pem", "junk");
  expect_says(who(beta), "pinned to another key");
}

TEST_F(TrustTest, APinOfAnAuthoritysKeyCounts) {
  const Issued beta = make_peer(ca_, "DNS:beta");
  pin("mine", beta);
  EXPECT_EQ(who(beta), "mine");
}

TEST_F(TrustTest, WhoIsBarredIsAStrangerWhateverTheAuthoritySays) {
  const Issued beta = make_peer(ca_, "DNS:beta");
  const Peer connected = *trust().judge({.certificate = beta.certificate.get()}, std::time(nullptr));
  EXPECT_TRUE(trust().check_still(connected));
  ASSERT_TRUE(bar(node_, "beta"));
  expect_says(who(beta), "distrusted");
  EXPECT_FALSE(trust().check_still(connected));
  EXPECT_FALSE(trust().find("beta"));
  EXPECT_TRUE(*allow(node_, "beta"));
  EXPECT_EQ(who(beta), "beta");
  ASSERT_TRUE(bar(node_, connected.fingerprint));
  expect_says(who(beta), "distrusted");
  EXPECT_FALSE(trust().check_still(connected));
  EXPECT_EQ(who(make_peer(ca_, "DNS:beta")), "beta") << "under a new key";
  expect_says(identity::trust(node_.directory, "beta", "", beta.pem(), true).error().message,
              "sluice node allow");
  EXPECT_FALSE(bar(node_, "../x"));
  EXPECT_FALSE(*allow(node_, "beta"));
}

TEST_F(TrustTest, WhatStandsEndsByRevocationAndNotByAge) {
  const Issued beta = make_peer(ca_, "DNS:beta", 3600);
  Peer connected = *trust().judge({.certificate = beta.certificate.get()}, std::time(nullptr));
  const Issued old = make_peer(ca_, "DNS:beta", -60);
  connected.certificate_pem = old.pem();  // as an hour later
  EXPECT_TRUE(trust().check_still(connected));
  node_.crl_file = root_ / "crl.pem";
  write(node_.crl_file, make_list(ca_, &old, -60));
  EXPECT_FALSE(trust().check_still(connected));
  node_.crl_file.clear();
  node_.ca_file.clear();
  EXPECT_FALSE(trust().check_still(connected)) << "the authority is not trusted any more";
}

// Every two seconds this is asked for each connection of the node, on the thread that must not wait.
TEST_F(TrustTest, AConnectionThatWasGoodIsNotVerifiedAgainUntilSomethingChanges) {
  const Issued beta = make_peer(ca_, "DNS:beta");
  const Peer connected = *trust().judge({.certificate = beta.certificate.get()}, std::time(nullptr));
  const Trust now = trust();
  EXPECT_TRUE(now.check_still(connected));
  EXPECT_EQ(now.found_good(), 1U);
  EXPECT_TRUE(now.check_still(connected));
  EXPECT_EQ(now.found_good(), 1U);
  Peer other = connected;
  other.name = "gamma";
  EXPECT_FALSE(now.check_still(other)) << "the same key under another name is another connection";
  other = connected;
  other.certificate_pem = make_peer(make_authority("other"), "DNS:beta").pem();
  EXPECT_FALSE(now.check_still(other));
  EXPECT_EQ(now.found_good(), 1U) << "what is bad is judged each time";
  node_.crl_file = root_ / "crl.pem";
  write(node_.crl_file, make_list(ca_, &beta));
  EXPECT_FALSE(trust().check_still(connected));
}

TEST_F(TrustTest, APinThatIsOutOfDateIsRefusedUnlessItsOperatorSaysOtherwise) {
  const Issued old = issue({.common_name = "beta", .ends_s = -60});
  const Issued early = issue({.common_name = "gamma", .begins_s = 86'400});
  pin("beta", old);
  pin("gamma", early);
  expect_says(who(old), "has expired on");
  EXPECT_EQ(who(early), "gamma") << "a clock that is behind shuts nobody out";
  node_.expired_pins = "accept";
  EXPECT_EQ(who(old), "beta");
}

TEST_F(TrustTest, FilesThatOthersMayWriteAreRefused) {
  pin("beta", issue({.common_name = "beta"}));
  ::chmod((node_.directory / "trusted").c_str(), 0757);
  const Result<Trust> refused = Trust::load(node_);
  ASSERT_FALSE(refused);
  expect_says(refused.error().message, "chmod o-w");
  ::chmod((node_.directory / "trusted").c_str(), 0755);
  ::chmod((node_.directory / "trusted/beta.pem").c_str(), 0646);
  expect_says(problem(), "chmod o-w");
  ::chmod((node_.directory / "trusted/beta.pem").c_str(), 0644);
  ASSERT_TRUE(bar(node_, "x"));
  ::chmod((node_.directory / "distrusted").c_str(), 0757);
  EXPECT_FALSE(Trust::load(node_));
  ::chmod((node_.directory / "identity").c_str(), 0720);
  const Result<Identity> self = load(node_.directory);
  ASSERT_FALSE(self);
  expect_says(self.error().message, "chmod go-w");
}

}  // namespace
}  // namespace sluice::identity
