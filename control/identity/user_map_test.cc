// Whom peers' users are here.
// SPDX-License-Identifier: Apache-2.0
#include "control/identity/user_map.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>

#include "control/identity/standing_files.h"

namespace sluice::identity {
namespace {

namespace fs = std::filesystem;
using Answer = UserMap::Answer;
using Verdict = UserMap::Verdict;

UserMap map_of(const std::string& text) {
  const Result<UserMap> map = UserMap::parse(text, "users.map");
  EXPECT_TRUE(map) << map.error().message;
  return map ? *map : UserMap();
}

// A map that was cut short would let everybody in as before there was one.
TEST(UserMap, WithoutALineIsWrong) {
  for (const char* const text : {"", "\n", "# to be written\n\n"}) {
    const Result<UserMap> map = UserMap::parse(text, "users.map");
    ASSERT_FALSE(map) << text;
    EXPECT_NE(map.error().message.find("users.map: has no line"), std::string::npos) << map.error().message;
  }
}

TEST(UserMap, ALineSaysWhoAUserIsHere) {
  const UserMap map =
      map_of("# of the site\n\nalice@alpha asmith  # since May\n\tbob@alpha bob\r\n*@gamma *\n");
  EXPECT_EQ(map.lines(), 3U);
  EXPECT_EQ(map.judge("alpha", "alice"), (Verdict{.answer = Answer::kLocal, .local = "asmith", .line = 3}));
  EXPECT_EQ(map.judge("alpha", "bob"), (Verdict{.answer = Answer::kLocal, .local = "bob", .line = 4}));
  EXPECT_EQ(map.judge("gamma", "carol"), (Verdict{.answer = Answer::kLocal, .local = "carol", .line = 5}));
}

TEST(UserMap, TheFirstLineThatFitsCounts) {
  const UserMap map =
      map_of("eve@* deny\nalice@alpha first\nalice@alpha second\na*@al?ha guest\n[bc]*@* group\n");
  EXPECT_EQ(map.judge("alpha", "eve"), (Verdict{.answer = Answer::kDenied, .line = 1}));
  EXPECT_EQ(map.judge("alpha", "alice").local, "first");
  EXPECT_EQ(map.judge("alpha", "anna").local, "guest");
  EXPECT_EQ(map.judge("beta", "bob").local, "group");
  EXPECT_EQ(map.judge("beta", "anna"), (Verdict{.answer = Answer::kDenied}));
}

TEST(UserMap, WhoFitsNoLineIsRefusedWhereTheNodeHasLines) {
  const UserMap map = map_of("alice@alpha asmith\n@delta deny\n");
  EXPECT_EQ(map.judge("alpha", "bob"), (Verdict{.answer = Answer::kDenied}));
  EXPECT_EQ(map.judge("delta", "bob"), (Verdict{.answer = Answer::kDenied}));
  EXPECT_EQ(map.judge("beta", "bob"), Verdict());
  EXPECT_TRUE(map.has_lines_for("alpha"));
  EXPECT_FALSE(map.has_lines_for("beta"));
}

TEST(UserMap, OperatorsHaveLinesOfTheirOwn) {
  const UserMap map = map_of("*@* guest\n@beta helper\n@gamma deny\n");
  EXPECT_EQ(map.judge("alpha", ""), Verdict());
  EXPECT_EQ(map.judge("beta", ""), (Verdict{.answer = Answer::kLocal, .local = "helper", .line = 2}));
  EXPECT_EQ(map.judge("gamma", ""), (Verdict{.answer = Answer::kDenied, .line = 3}));
}

TEST(UserMap, NamesMayHaveAnAtOfTheirOwn) {
  const UserMap map =
      map_of("alice@corp.example@alpha alice@corp.example\n*@corp.example@alpha deny\n*@alpha *\n");
  EXPECT_EQ(map.judge("alpha", "alice@corp.example").local, "alice@corp.example");
  EXPECT_EQ(map.judge("alpha", "bob@corp.example").answer, Answer::kDenied);
  EXPECT_EQ(map.judge("alpha", "bob").local, "bob");
}

TEST(UserMap, TheSameNameIsOneThatAUserCanHaveAndNotRoot) {
  const UserMap map = map_of("*@alpha *\n");
  for (const char* const user : {"../ada", "root", "a b", "a:b", "*"})
    EXPECT_EQ(map.judge("alpha", user), (Verdict{.answer = Answer::kDenied, .line = 1})) << user;
}

TEST(UserMap, ABadLineIsNamedAndNothingCounts) {
  const std::pair<const char*, const char*> wrong[] = {
      {"a@b c\nalice asmith\n", "users.map:2: 'alice' has no @; write USER@NODE"},
      {"alice@alpha\n", "users.map:1: a line has USER@NODE and LOCAL"},
      {"alice@alpha # asmith\n", "users.map:1: a line has USER@NODE and LOCAL"},
      {"alice@alpha asmith guest\n", "users.map:1: a line has USER@NODE and LOCAL"},
      {"\nalice@ asmith\n", "users.map:2: '' is no node name"},
      {"alice@Alpha asmith\n", "users.map:1: 'Alpha' is no node name"},
      {"alice@alpha root\n", "users.map:1: nobody is root here"},
      {"@alpha *\n", "users.map:1: operators have no name"},
      {"*@alpha a*\n", "users.map:1: 'a*' is no name of a user"},
      {"*@alpha a/b\n", "users.map:1: 'a/b' is no name of a user"},
      {"*@alpha a:b\n", "users.map:1: 'a:b' is no name of a user"}};
  for (const auto& [text, why] : wrong) {
    const Result<UserMap> map = UserMap::parse(text, "users.map");
    ASSERT_FALSE(map) << text;
    EXPECT_EQ(map.error().code, ErrorCode::kConfiguration);
    EXPECT_EQ(map.error().message.find(why), 0U) << map.error().message;
  }
  std::string many;
  for (size_t i = 0; i <= UserMap::kLinesMax; ++i) many += "a@b c\n";
  const Result<UserMap> map = UserMap::parse(many, "users.map");
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().message, "users.map:20001: more than 20000 lines; use patterns");
}

class UserMapFileTest : public testing::Test {
 protected:
  UserMapFileTest() {
    char name[] = "/tmp/sluice-users-map-XXXXXX";
    root_ = ::mkdtemp(name);
    EXPECT_TRUE(create(root_ / "beta", "beta"));
    node_.directory = root_ / "beta";
    node_.name = "beta";
    node_.users_map_file = root_ / "users.map";
  }
  ~UserMapFileTest() override { fs::remove_all(root_); }
  void write(const std::string& text, mode_t mode = 0644) const {
    std::ofstream(root_ / "new") << text;
    ::chmod((root_ / "new").c_str(), mode);
    fs::rename(root_ / "new", node_.users_map_file);
  }

  fs::path root_;
  config::Node node_;
};

TEST_F(UserMapFileTest, IsReadAnewWhenItChanges) {
  write("alice@alpha asmith\n");
  StandingFiles files(node_);
  const auto local = [&] {
    const auto standing = files.now(std::chrono::steady_clock::now());
    EXPECT_TRUE(standing) << standing.error().message;
    EXPECT_FALSE(standing->users_problem) << standing->users_problem->message;
    return standing->users->judge("alpha", "alice").local;
  };
  EXPECT_EQ(local(), "asmith");
  write("alice@alpha guest\n");
  EXPECT_EQ(local(), "guest");
}

TEST_F(UserMapFileTest, TheLastGoodOneCountsWhileItIsBad) {
  write("alice@alpha asmith\n");
  StandingFiles files(node_);
  ASSERT_TRUE(files.now(std::chrono::steady_clock::now()));
  const auto expect_former = [&](const char* why) {
    const auto standing = files.now(std::chrono::steady_clock::now());
    ASSERT_TRUE(standing) << standing.error().message;
    ASSERT_TRUE(standing->users_problem);
    EXPECT_NE(standing->users_problem->message.find(why), std::string::npos)
        << standing->users_problem->message;
    EXPECT_EQ(standing->users->judge("alpha", "alice").local, "asmith");
  };
  write("alice@alpha guest\nbob\n");
  expect_former("users.map:2: a line has");
  write("alice@alpha guest\n", 0666);
  expect_former("users.map");
  fs::remove(node_.users_map_file);
  expect_former("[control] users_map_file must name a file");
  write("alice@alpha guest\n");
  const auto standing = files.now(std::chrono::steady_clock::now());
  ASSERT_TRUE(standing);
  EXPECT_FALSE(standing->users_problem);
  EXPECT_EQ(standing->users->judge("alpha", "alice").local, "guest");
}

TEST_F(UserMapFileTest, NobodyIsJudgedWithoutOne) {
  StandingFiles files(node_);
  const auto standing = files.now(std::chrono::steady_clock::now());
  ASSERT_FALSE(standing);
  EXPECT_EQ(standing.error().code, ErrorCode::kConfiguration);
  node_.users_map_file.clear();
  StandingFiles without(node_);
  const auto plain = without.now(std::chrono::steady_clock::now());
  ASSERT_TRUE(plain) << plain.error().message;
  EXPECT_EQ(plain->users, nullptr);
}

}  // namespace
}  // namespace sluice::identity
