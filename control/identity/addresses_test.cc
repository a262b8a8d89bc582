// Where peers listen, of one file for all.
// SPDX-License-Identifier: Apache-2.0
#include "control/identity/addresses.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>

#include "control/identity/authority_for_test.h"
#include "control/identity/trust.h"

namespace sluice::identity {
namespace {

namespace fs = std::filesystem;

std::string problem_of(const std::string& text) {
  const Addresses found = Addresses::parse(text, "peers");
  return found.problems().empty() ? "" : found.problems().front().message;
}

TEST(Addresses, ALineHasANameAndAnAddress) {
  const Addresses found = Addresses::parse(
      "# of the site\n\nbeta beta.example.org:7500  # the old one\n\tgamma 10.0.0.3\r\ndelta [fd77::4]:7400\n"
      "eta [fd77::5]",
      "peers");
  EXPECT_TRUE(found.problems().empty()) << found.problems().front().message;
  EXPECT_EQ(found.find("beta"), "beta.example.org:7500");
  EXPECT_EQ(found.find("gamma"), "10.0.0.3:7400");
  EXPECT_EQ(found.find("delta"), "[fd77::4]:7400");
  EXPECT_EQ(found.find("eta"), "[fd77::5]:7400");
  EXPECT_EQ(found.find("zeta"), "");
  EXPECT_EQ(found.all().size(), 4U);
}

TEST(Addresses, AnErrorNamesItsLineAndTheOthersCount) {
  const std::pair<const char*, const char*> wrong[] = {
      {"a 10.0.0.1\nBeta 10.0.0.2\n", "peers:2: 'Beta' is no node name"},
      {"beta\n", "peers:1: a line has a name and an address"},
      {"beta 10.0.0.2 10.0.0.3\n", "peers:1: a line has"},
      {"\nbeta 10.0.0.2:0\n", "peers:2: port 0"},
      {"beta 10.0.0.2:70000\n", "peers:1: "},
      {"beta 10.0.0.2\nbeta 10.0.0.3\n", "peers:2: beta stands in line 1 already"}};
  for (const auto& [text, why] : wrong) EXPECT_EQ(problem_of(text).find(why), 0U) << problem_of(text);
  EXPECT_EQ(Addresses::parse("a 10.0.0.1\nBeta 10.0.0.2\nc 10.0.0.3", "peers").all().size(), 2U);
  std::string many;
  for (int i = 0; i < 100; ++i) many += "?\n";
  EXPECT_EQ(Addresses::parse(many, "peers").problems().size(), Addresses::kProblemsMax);
}

class AddressesFileTest : public testing::Test {
 protected:
  AddressesFileTest() {
    char name[] = "/tmp/sluice-addresses-XXXXXX";
    root_ = ::mkdtemp(name);
    EXPECT_TRUE(create(root_ / "alpha", "alpha"));
    node_.directory = root_ / "alpha";
    node_.name = "alpha";
    node_.ca_file = root_ / "ca.pem";
    node_.ca_domain = "dtn.example";
    node_.addresses_file = root_ / "peers";
    std::ofstream(node_.ca_file) << ca_.pem();
    ::chmod(node_.ca_file.c_str(), 0644);
  }
  ~AddressesFileTest() override { fs::remove_all(root_); }
  void write(const std::string& text) const {
    std::ofstream(root_ / "new") << text;
    ::chmod((root_ / "new").c_str(), 0644);
    fs::rename(root_ / "new", node_.addresses_file);
  }
  std::string address_of(const std::string& name) const {
    const auto peer = find_peer(node_, name);
    return peer ? peer->address : peer.error().message;
  }

  fs::path root_;
  config::Node node_;
  const Issued ca_ = make_authority("a");
};

TEST_F(AddressesFileTest, AThousandPeersAreOneFile) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += "n" + std::to_string(i) + " 10.1." + std::to_string(i / 250) + "." + std::to_string(i % 250 + 1) +
            "\n";
  write(text);
  const auto trust = Trust::load(node_);
  ASSERT_TRUE(trust && trust->problems().empty());
  EXPECT_EQ(trust->addresses()->all().size(), 1000U);
  EXPECT_EQ(trust->find("n999")->address, "10.1.3.250:7400");
  // Each of them is who its certificate says, and listens there; nothing of that is read again.
  const Issued peer = make_peer(ca_, "DNS:n17.dtn.example");
  const auto judged = trust->judge({.certificate = peer.certificate.get()}, std::time(nullptr));
  ASSERT_TRUE(judged) << judged.error().message;
  EXPECT_EQ(judged->address, "10.1.0.18:7400");
  EXPECT_EQ(Trust::load(node_)->addresses(), trust->addresses());
}

TEST_F(AddressesFileTest, ItIsReadAnewWhenItChanges) {
  write("beta 10.0.0.2:7500\n");
  EXPECT_EQ(address_of("beta"), "10.0.0.2:7500");
  EXPECT_EQ(address_of("gamma"), "gamma.dtn.example:7400");
  write("beta 10.0.0.3:7500\n");
  EXPECT_EQ(address_of("beta"), "10.0.0.3:7500");
  // What was said of one peer alone counts more.
  ASSERT_TRUE(set_address(node_, "beta", "10.0.0.4:7400"));
  EXPECT_EQ(address_of("beta"), "10.0.0.4:7400");
}

TEST_F(AddressesFileTest, AlsoForAPinnedPeerThatHasNone) {
  node_.ca_file.clear();
  write("beta 10.0.0.2\n");
  ASSERT_TRUE(
      trust(node_.directory, "beta", "", *to_pem(issue({.common_name = "b"}).certificate.get()), false));
  EXPECT_EQ(address_of("beta"), "10.0.0.2:7400");
  EXPECT_NE(address_of("gamma").find("not trusted"), std::string::npos);
}

TEST_F(AddressesFileTest, AFileThatCannotBeUsedIsTold) {
  const auto problem = [this] {
    const auto trust = Trust::load(node_);
    return trust && !trust->problems().empty() ? trust->problems().front().message : "";
  };
  EXPECT_NE(problem().find("addresses_file"), std::string::npos) << problem();
  write("beta 10.0.0.2\n");
  ::chmod(node_.addresses_file.c_str(), 0666);
  EXPECT_NE(problem().find("chmod"), std::string::npos) << problem();
  write("beta\n");
  EXPECT_NE(problem().find("peers:1: "), std::string::npos) << problem();
}

}  // namespace
}  // namespace sluice::identity
