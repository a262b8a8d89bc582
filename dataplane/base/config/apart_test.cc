// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/config/apart.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace sluice::config {
namespace {

class ApartTest : public testing::Test {
 protected:
  void SetUp() override {
    char made[] = "/tmp/sluice-apart-XXXXXX";
    root_ = std::filesystem::canonical(::mkdtemp(made));
    for (const char* const name : {"home/node/identity", "home/data", "state"})
      std::filesystem::create_directories(root_ / name);
    std::filesystem::create_directory_symlink(root_ / "home", root_ / "link");
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  Status check(const std::string& path, const std::string& state = "") {
    Node node;
    node.directory = root_ / "link/node";
    if (!state.empty()) node.state_dir = root_ / state;
    node.exports.push_back({.name = "data", .path = root_ / path});
    return check_apart(node, exports_);
  }
  Paths exports_ = Paths::kFollowed;
  std::filesystem::path root_;
};

TEST_F(ApartTest, AnExportBesideTheNodeOrOfItsOwnWithinIsFine) {
  EXPECT_TRUE(check("home/data"));
  EXPECT_TRUE(check("home/node-data")) << "a name that only begins alike";
  EXPECT_TRUE(check("home/node/data"));
}

TEST_F(ApartTest, OneThatHoldsTheNodeIsRefusedWithTheReasonAndTheRemedy) {
  for (const char* const path : {"home", "", "link", "home/node", "home/../home"}) {
    const Status status = check(path);
    ASSERT_FALSE(status) << path;
    EXPECT_EQ(status.error().code, ErrorCode::kConfiguration);
    EXPECT_NE(status.error().message.find("export data"), std::string::npos) << status.error().message;
    EXPECT_NE(status.error().message.find("export another directory"), std::string::npos);
  }
}

TEST_F(ApartTest, WithoutALookAtTheExportItsPathDecides) {
  exports_ = Paths::kAsWritten;
  for (const char* const path : {"home", "", "link", "home/node", "home/../home"})
    EXPECT_FALSE(check(path)) << path;
  std::filesystem::create_directory_symlink(root_, root_ / "other");
  EXPECT_TRUE(check("other")) << "sluice-control looks, when it opens it";
  exports_ = Paths::kFollowed;
  EXPECT_FALSE(check("other"));
}

TEST_F(ApartTest, SoIsOneThatLiesWhereTheKeyIsOrHoldsTheState) {
  EXPECT_FALSE(check("home/node/identity"));
  std::filesystem::create_directories(root_ / "home/node/trusted/peers");
  EXPECT_FALSE(check("home/node/trusted/peers"));
  EXPECT_FALSE(check("state", "state/of/node"));
  EXPECT_TRUE(check("home/data", "state"));
}

}  // namespace
}  // namespace sluice::config
