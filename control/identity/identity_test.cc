// Identities and trust on real files.
// SPDX-License-Identifier: Apache-2.0
#include "control/identity/identity.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>

#include "control/identity/trust.h"

namespace sluice::identity {
namespace {

namespace fs = std::filesystem;

class IdentityTest : public testing::Test {
 protected:
  IdentityTest() {
    char name[] = "/tmp/sluice-identity-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~IdentityTest() override { fs::remove_all(root_); }

  fs::path make(const std::string& name) {
    const fs::path node = root_ / name;
    const auto status = create(node, name);
    EXPECT_TRUE(status) << status.error().message;
    return node;
  }
  static std::string certificate_of(const fs::path& node) {
    const auto identity = load(node);
    EXPECT_TRUE(identity);
    return identity ? identity->certificate_pem : "";
  }
  static mode_t mode_of(const fs::path& file) {
    struct stat info {};
    EXPECT_EQ(::stat(file.c_str(), &info), 0);
    return info.st_mode & 07777;
  }
  static size_t files_in(const fs::path& directory) {
    return static_cast<size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
  }

  static Trust trust_of(const fs::path& node) {
    config::Node settings;
    settings.directory = node;
    return *Trust::load(settings);
  }

  fs::path root_;
};

TEST_F(IdentityTest, ANewIdentityLoadsWithItsNameAndFingerprint) {
  const fs::path node = make("alpha");
  const auto identity = load(node);
  ASSERT_TRUE(identity) << identity.error().message;
  EXPECT_EQ(identity->name, "alpha");
  EXPECT_EQ(identity->fingerprint.size(), 64U);
  EXPECT_EQ(*fingerprint_of_pem(identity->certificate_pem), identity->fingerprint);
  EXPECT_EQ(mode_of(identity->key_file), 0600U);
  EXPECT_EQ(mode_of(identity->certificate_file), 0644U);
  EXPECT_EQ(files_in(node / "identity"), 2U) << "no temporary file is left";
}

TEST_F(IdentityTest, TwoIdentitiesDiffer) {
  EXPECT_NE(load(make("alpha"))->fingerprint, load(make("beta"))->fingerprint);
}

TEST_F(IdentityTest, AnIdentityIsNeverOverwritten) {
  const fs::path node = make("alpha");
  const std::string before = load(node)->fingerprint;
  const auto again = create(node, "alpha");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kConfiguration);
  EXPECT_EQ(load(node)->fingerprint, before);

  fs::remove(node / "identity" / "cert.pem");
  EXPECT_FALSE(create(node, "alpha")) << "a key alone is worth keeping as well";
}

TEST_F(IdentityTest, BadNamesAreRefused) {
  for (const char* name : {"", "Alpha", "-a", "a/b", "..", "a b"}) {
    EXPECT_FALSE(create(root_ / "x", name)) << name;
  }
  EXPECT_FALSE(fs::exists(root_ / "x"));
}

TEST_F(IdentityTest, AMissingIdentityNamesTheRemedy) {
  const auto identity = load(root_);
  ASSERT_FALSE(identity);
  EXPECT_NE(identity.error().message.find("sluice node init"), std::string::npos);
}

TEST_F(IdentityTest, AKeyThatOthersCanReadIsRefused) {
  const fs::path node = make("alpha");
  ::chmod((node / "identity" / "key.pem").c_str(), 0640);
  const auto identity = load(node);
  ASSERT_FALSE(identity);
  EXPECT_NE(identity.error().message.find("chmod 600"), std::string::npos);
}

// Whoever may write the directory of the node may put another trusted/ there, and another node.toml.
TEST_F(IdentityTest, APlaceThatOthersMayWriteIsRefused) {
  const mode_t before = ::umask(0);
  const fs::path node = make("alpha");
  ::umask(before);
  EXPECT_TRUE(load(node)) << "none is made, whatever the umask is";
  std::ofstream(node / "node.toml") << "";
  for (const fs::path& each : {node, node / "node.toml"}) {
    ::chmod(each.c_str(), 0777);
    const auto identity = load(node);
    ASSERT_FALSE(identity) << each;
    EXPECT_NE(identity.error().message.find("chmod o-w " + each.string()), std::string::npos);
    ::chmod(each.c_str(), 0755);
  }
  EXPECT_TRUE(load(node));
}

TEST_F(IdentityTest, AKeyOfAnotherCertificateIsRefused) {
  const fs::path alpha = make("alpha");
  const fs::path beta = make("beta");
  fs::copy_file(beta / "identity" / "cert.pem", alpha / "identity" / "cert.pem",
                fs::copy_options::overwrite_existing);
  EXPECT_FALSE(load(alpha));
}

TEST_F(IdentityTest, NobodyIsTrustedAtFirst) {
  const auto peers = load_peers(make("alpha"));
  ASSERT_TRUE(peers);
  EXPECT_TRUE(peers->empty());
}

TEST_F(IdentityTest, TrustedPeersAreLoadedInOrder) {
  const fs::path alpha = make("alpha");
  const std::string gamma = certificate_of(make("gamma"));
  const std::string beta = certificate_of(make("beta"));
  ASSERT_TRUE(trust(alpha, "gamma", "", gamma, false));
  ASSERT_TRUE(trust(alpha, "beta", "[fd77::1]:7400", beta, false));
  const auto peers = load_peers(alpha);
  ASSERT_TRUE(peers) << peers.error().message;
  ASSERT_EQ(peers->size(), 2U);
  EXPECT_EQ((*peers)[0].name, "beta");
  EXPECT_EQ((*peers)[0].address, "[fd77::1]:7400");
  EXPECT_EQ((*peers)[0].fingerprint, *fingerprint_of_pem(beta));
  EXPECT_EQ((*peers)[1].address, "");
}

TEST_F(IdentityTest, AnotherKeyUnderAKnownNameNeedsReplace) {
  const fs::path alpha = make("alpha");
  const std::string old_key = certificate_of(make("beta"));
  const std::string new_key = certificate_of(make("beta2"));
  ASSERT_TRUE(trust(alpha, "beta", "h:1", old_key, false));
  const auto refused = trust(alpha, "beta", "h:1", new_key, false);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kConfiguration);
  EXPECT_EQ((*load_peers(alpha))[0].fingerprint, *fingerprint_of_pem(old_key));
  ASSERT_TRUE(trust(alpha, "beta", "h:1", new_key, true));
  EXPECT_EQ((*load_peers(alpha))[0].fingerprint, *fingerprint_of_pem(new_key));
}

TEST_F(IdentityTest, TheSameKeyAgainChangesTheAddressAndKeepsItWhenNoneIsGiven) {
  const fs::path alpha = make("alpha");
  const std::string beta = certificate_of(make("beta"));
  ASSERT_TRUE(trust(alpha, "beta", "h:1", beta, false));
  ASSERT_TRUE(trust(alpha, "beta", "h:2", beta, false));
  EXPECT_EQ((*load_peers(alpha))[0].address, "h:2");
  EXPECT_EQ(trust(alpha, "beta", "", beta, false)->address, "h:2");
}

TEST_F(IdentityTest, OneKeyHasOneNameAndIsNotOurOwn) {
  const fs::path alpha = make("alpha");
  const std::string beta = certificate_of(make("beta"));
  ASSERT_TRUE(trust(alpha, "beta", "", beta, false));
  EXPECT_FALSE(trust(alpha, "other", "", beta, false));
  EXPECT_FALSE(trust(alpha, "me", "", certificate_of(alpha), false));
}

TEST_F(IdentityTest, OnlyTheCertificateIsKept) {
  const fs::path alpha = make("alpha");
  const std::string beta = certificate_of(make("beta"));
  ASSERT_TRUE(trust(alpha, "beta", "", beta + "and something else\n", false));
  EXPECT_EQ((*load_peers(alpha))[0].certificate_pem, beta);
}

TEST_F(IdentityTest, NonsenseIsRefusedAndNothingIsWritten) {
  const fs::path alpha = make("alpha");
  const std::string beta = certificate_of(make("beta"));
  EXPECT_FALSE(trust(alpha, "beta", "", "not a certificate", false));
  EXPECT_FALSE(trust(alpha, "beta", "nowhere", beta, false));
  EXPECT_FALSE(trust(alpha, "beta", "h:0", beta, false));
  EXPECT_FALSE(trust(alpha, "../beta", "", beta, false));
  EXPECT_FALSE(fs::exists(alpha / "trusted"));
}

TEST_F(IdentityTest, WhoIsForgottenIsAStranger) {
  const fs::path alpha = make("alpha");
  const std::string pem = load(make("beta"))->certificate_pem;
  ASSERT_TRUE(trust(alpha, "beta", "beta:1", pem, false));
  const Result<Peer> beta = find_peer(alpha, "beta");
  ASSERT_TRUE(beta);
  EXPECT_TRUE(trust_of(alpha).check_still(*beta));
  ASSERT_TRUE(distrust(alpha, "beta"));
  EXPECT_FALSE(trust_of(alpha).check_still(*beta));
  EXPECT_EQ(find_peer(alpha, "beta").error().code, ErrorCode::kPeerUntrusted);
  EXPECT_EQ(files_in(alpha / "trusted"), 0U);
  const Status again = distrust(alpha, "beta");
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::kPeerUntrusted);
  EXPECT_FALSE(distrust(alpha, "../identity/key"));
  // Another key under the name is not the one that was trusted.
  ASSERT_TRUE(trust(alpha, "beta", "", load(make("gamma"))->certificate_pem, false));
  EXPECT_FALSE(trust_of(alpha).check_still(*beta));
}

TEST_F(IdentityTest, WhoseFileIsBrokenCanBeForgotten) {
  const fs::path alpha = make("alpha");
  fs::create_directory(alpha / "trusted");
  std::ofstream(alpha / "trusted/beta.pem") << "junk";
  EXPECT_TRUE(distrust(alpha, "beta"));
  EXPECT_TRUE(load_peers(alpha));
}

TEST_F(IdentityTest, ABrokenTrustFileIsNamed) {
  const fs::path alpha = make("alpha");
  ASSERT_TRUE(trust(alpha, "beta", "h:1", certificate_of(make("beta")), false));
  std::ofstream(alpha / "trusted" / "beta.toml") << "adress = \"h:1\"\n";
  const auto peers = load_peers(alpha);
  ASSERT_FALSE(peers);
  EXPECT_NE(peers.error().message.find("beta.toml:1"), std::string::npos) << peers.error().message;
}

TEST_F(IdentityTest, ABrokenTrustFileTakesTheTrustOfItsOwnPeerOnly) {
  const fs::path alpha = make("alpha");
  ASSERT_TRUE(trust(alpha, "beta", "h:1", certificate_of(make("beta")), false));
  std::ofstream(alpha / "trusted" / "x.pem") << "junk\n";
  EXPECT_TRUE(find_peer(alpha, "beta"));
  EXPECT_EQ(find_peer(alpha, "x").error().code, ErrorCode::kConfiguration);
  EXPECT_EQ(find_peer(alpha, "../alpha").error().code, ErrorCode::kPeerUntrusted);
  const auto usable = load_usable_peers(alpha);
  ASSERT_TRUE(usable);
  ASSERT_EQ(usable->peers.size(), 1U);
  EXPECT_EQ(usable->peers[0].name, "beta");
  ASSERT_EQ(usable->problems.size(), 1U);
  EXPECT_NE(usable->problems[0].message.find("x.pem"), std::string::npos);
}

}  // namespace
}  // namespace sluice::identity
