// `sluice node rotate`: whom the end of a rotation cuts off is said before.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <sstream>

#include "tools/cli/app.h"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

class Rotate : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(place_);
    for (const char* name : {"a", "b"}) {
      ASSERT_EQ(sluice({"node", "init", (place_ / name).string(), "--name", name}), 0) << err_.str();
    }
  }
  void TearDown() override { fs::remove_all(place_); }

  // `answer`: of somebody who is asked; nothing: nobody is there.
  int sluice(const std::vector<std::string>& words, const std::optional<std::string>& answer = {}) {
    out_.str("");
    err_.str("");
    Environment environment{out_, err_};
    environment.working_directory = place_;
    environment.default_node = place_ / "a";
    if (answer) environment.answer = [&answer] { return *answer; };
    return run(words, environment);
  }
  void trust_b() {
    ASSERT_EQ(sluice({"node", "trust", "b", (place_ / "b/identity/cert.pem").string(), "--address", "h:1"}),
              0)
        << err_.str();
  }
  bool warned() const { return err_.str().find("warning") != std::string::npos; }
  bool under_way() { return sluice({"node", "show", "--certificate", "--next"}) == 0; }

  const fs::path place_ = fs::temp_directory_path() / ("rotate-test-" + std::to_string(::getpid()));
  std::ostringstream out_, err_;
};

TEST_F(Rotate, AtATerminalTheEndIsAskedFor) {
  trust_b();
  ASSERT_EQ(sluice({"node", "rotate"}), 0) << err_.str();
  EXPECT_EQ(sluice({"node", "rotate", "--finish"}, "n"), static_cast<int>(ErrorCode::kCancelled));
  EXPECT_TRUE(warned()) << err_.str();
  EXPECT_NE(err_.str().find("Peers: b."), std::string::npos) << err_.str();
  EXPECT_TRUE(under_way()) << "nothing has changed";
  EXPECT_EQ(sluice({"node", "rotate", "--finish"}, "y"), 0) << err_.str();
  EXPECT_FALSE(under_way());
}

TEST_F(Rotate, WhereNobodyIsItIsSaid) {
  trust_b();
  ASSERT_EQ(sluice({"node", "rotate"}), 0);
  EXPECT_EQ(sluice({"node", "rotate", "--finish", "--json"}), 0);
  EXPECT_TRUE(warned()) << err_.str();
  EXPECT_EQ(out_.str().find("warning"), std::string::npos);
  EXPECT_EQ(sluice({"node", "rotate", "--now"}), 0);
  EXPECT_TRUE(warned());
}

TEST_F(Rotate, YesAsksNothing) {
  trust_b();
  EXPECT_EQ(sluice({"node", "rotate", "--now", "--yes"}, "n"), 0) << err_.str();
  EXPECT_TRUE(warned());
}

TEST_F(Rotate, WithoutPeersNobodyIsCutOff) {
  ASSERT_EQ(sluice({"node", "rotate"}), 0);
  EXPECT_EQ(sluice({"node", "rotate", "--finish"}, "n"), 0) << err_.str();
  EXPECT_FALSE(warned());
}

TEST_F(Rotate, WhatIsNotUnderWayIsNoReasonToWarn) {
  trust_b();
  EXPECT_EQ(sluice({"node", "rotate", "--finish"}), static_cast<int>(ErrorCode::kConfiguration));
  EXPECT_FALSE(warned()) << err_.str();
}

TEST_F(Rotate, AModeThatIsNoneIsNamed) {
  fs::create_directory(place_ / "x:rx");
  EXPECT_EQ(sluice({"node", "init", (place_ / "c").string(), "--export", "data=/tmp:rx"}),
            static_cast<int>(ErrorCode::kUsage));
  EXPECT_NE(err_.str().find("':rx' is no mode"), std::string::npos) << err_.str();
  EXPECT_EQ(
      sluice({"node", "init", (place_ / "c").string(), "--export", "data=" + (place_ / "x:rx").string()}), 0)
      << "a directory of that name: " << err_.str();
}

}  // namespace
}  // namespace sluice::cli
