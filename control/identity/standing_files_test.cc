// That trust is read again when a file of it has changed, and only then.
// SPDX-License-Identifier: Apache-2.0
#include "control/identity/standing_files.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <chrono>
#include <ctime>
#include <fstream>

#include "control/identity/node_for_test.h"

namespace sluice::identity {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

// Files of a test are never old. What it changes gets another inode or another size, so no clock decides.
constexpr std::chrono::nanoseconds kAtOnce = -std::chrono::hours(1);

class StandingFilesTest : public NodeOfAuthority {
 protected:
  StandingFilesTest() { pin("beta", "192.0.2.1:7400"); }
  void pin(const std::string& name, const std::string& address = "") {
    const auto pinned =
        identity::trust(node_.directory, name, address, issue({.common_name = name}).pem(), true);
    EXPECT_TRUE(pinned) << pinned.error().message;
  }
  static Standing look(StandingFiles& files) {
    Result<Standing> standing = files.now(steady_clock::now());
    EXPECT_TRUE(standing) << standing.error().message;
    return standing ? *standing : Standing();
  }
  // Whether `change` is seen by the next look, and by that one alone.
  template <typename Change>
  void expect_seen(StandingFiles& files, const std::string& what, Change change) {
    const Standing before = look(files);
    EXPECT_EQ(look(files).trust, before.trust) << "before " << what;
    change();
    const Standing after = look(files);
    EXPECT_NE(after.trust, before.trust) << what;
    EXPECT_EQ(look(files).trust, after.trust) << "after " << what;
  }
};

TEST_F(StandingFilesTest, NothingIsReadAgainWhereNothingChanged) {
  StandingFiles files(node_, kAtOnce);
  const Standing first = look(files);
  ASSERT_EQ(first.trust->pinned().size(), 1U);
  for (int i = 0; i < 3; ++i) {
    const Standing again = look(files);
    EXPECT_EQ(again.trust, first.trust);
    EXPECT_EQ(again.self, first.self);
  }
}

TEST_F(StandingFilesTest, WhateverSaysWhomToTrustIsSeenAtOnce) {
  node_.crl_file = root_ / "crl.pem";
  node_.addresses_file = root_ / "peers";
  write(node_.crl_file, make_list(ca_, nullptr));
  write(node_.addresses_file, "delta 192.0.2.4\n");
  StandingFiles files(node_, kAtOnce);
  const fs::path trusted = node_.directory / "trusted";
  expect_seen(files, "a new pin", [&] { pin("gamma"); });
  EXPECT_EQ(look(files).trust->pinned().size(), 2U);
  expect_seen(files, "another key under a name", [&] { pin("gamma"); });
  expect_seen(files, "an address, edited in place",
              [&] { std::ofstream(trusted / "beta.toml") << "address = \"192.0.2.77:7400\"\n"; });
  EXPECT_EQ(look(files).trust->find("beta")->address, "192.0.2.77:7400");
  expect_seen(files, "a pin that was appended to",
              [&] { std::ofstream(trusted / "beta.pem", std::ios::app) << "\n"; });
  expect_seen(files, "an address that has gone", [&] { fs::remove(trusted / "beta.toml"); });
  expect_seen(files, "a pin that has gone", [&] { ASSERT_TRUE(distrust(node_.directory, "gamma")); });
  EXPECT_EQ(look(files).trust->pinned().size(), 1U);
  expect_seen(files, "a name that is barred", [&] { ASSERT_TRUE(bar(node_, "epsilon")); });
  expect_seen(files, "a name that is allowed again", [&] { ASSERT_TRUE(*allow(node_, "epsilon")); });
  expect_seen(files, "a list of addresses", [&] { write(node_.addresses_file, "delta 192.0.2.44\n"); });
  expect_seen(files, "a list of what is revoked", [&] {
    const Issued gone = make_peer(ca_, "DNS:gone");
    write(node_.crl_file, make_list(ca_, &gone));
  });
  expect_seen(files, "an authority that follows",
              [&] { write(node_.ca_file, ca_.pem() + make_authority("next").pem()); });
  expect_seen(files, "the key of this node", [&] {
    fs::remove_all(node_.directory / "identity");
    ASSERT_TRUE(create(node_.directory, "alpha"));
  });
}

TEST_F(StandingFilesTest, ThroughALinkItIsTheFileBehindItThatCounts) {
  const fs::path real = root_ / "elsewhere.pem";
  fs::rename(node_.directory / "trusted/beta.pem", real);
  fs::create_symlink(real, node_.directory / "trusted/beta.pem");
  StandingFiles files(node_, kAtOnce);
  expect_seen(files, "the file behind a link",
              [&] { write(real, issue({.common_name = "another"}).pem() + "\n"); });
}

TEST_F(StandingFilesTest, WhatChangedJustNowIsReadEachTime) {
  StandingFiles files(node_, std::chrono::hours(1));
  EXPECT_NE(look(files).trust, look(files).trust) << "its times could be those of a change to come";
}

TEST_F(StandingFilesTest, WhoAskedBeforeALookBeganTakesWhatItFound) {
  StandingFiles files(node_, std::chrono::hours(1));  // each look reads
  const auto asked = steady_clock::now();
  const Result<Standing> first = files.now(asked);
  const Result<Standing> second = files.now(asked);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->trust, second->trust);
  pin("gamma");
  EXPECT_EQ(look(files).trust->pinned().size(), 2U) << "and who asks later does not";
}

TEST_F(StandingFilesTest, AProblemIsToldEachTimeUntilItIsMended) {
  StandingFiles files(node_, kAtOnce);
  EXPECT_TRUE(look(files).trust->problems().empty());
  write(node_.directory / "trusted/bad.pem", "junk");
  for (int i = 0; i < 2; ++i) EXPECT_EQ(look(files).trust->problems().size(), 1U);
  fs::remove(node_.directory / "trusted/bad.pem");
  EXPECT_TRUE(look(files).trust->problems().empty());
  const std::string aside = (root_ / "aside").string();
  fs::rename(node_.directory / "identity", aside);
  EXPECT_FALSE(files.now(steady_clock::now()));
  fs::rename(aside, node_.directory / "identity");
  EXPECT_TRUE(files.now(steady_clock::now()));
}

}  // namespace
}  // namespace sluice::identity
