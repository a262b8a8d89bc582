// sluice get and run of patterns, against the API's own server.
// SPDX-License-Identifier: Apache-2.0
#include <fstream>

#include "tools/cli/cli_fixture_for_test.h"

namespace sluice::cli {
namespace {

using names::Type;

class RemotePatternsTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    sessions_are(api::Session::SUCCEEDED);
  }
  void there_is(std::vector<names::Entry> entries) {
    control_.on_io([&] {
      control_.names.pages = {{std::move(entries)}};
      control_.names.itself = std::vector<names::Page>();  // and none whose name is the pattern
    });
  }
  std::vector<std::string> fetched() {
    return control_.on_io([&] {
      std::vector<std::string> sources;
      if (const auto& get = control_.sessions.last_get)
        sources.assign(get->sources().begin(), get->sources().end());
      return sources;
    });
  }
};

using Paths = std::vector<std::string>;

TEST_F(RemotePatternsTest, GetFetchesTheFilesThatFit) {
  there_is({{.path = "1/a.h5", .type = Type::kFile}, {.path = "2/b.h5", .type = Type::kFile}});
  const Outcome outcome = sluice({"get", "beta:data/run/*/*.h5", "beta:data/c", "/tmp/"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(fetched(), (Paths{"data/run/1/a.h5", "data/run/2/b.h5", "data/c"}));
  const auto asked = control_.on_io([&] { return control_.names.asked; });
  ASSERT_EQ(asked.size(), 1U);
  EXPECT_EQ(asked[0].first, "beta");
  const auto& list = std::get<names::List>(asked[0].second);
  EXPECT_EQ(list.path, "data/run/*/*.h5");
  EXPECT_TRUE(list.glob);
  EXPECT_FALSE(list.recursive || list.unfinished);
}

TEST_F(RemotePatternsTest, WhatIsNoFileIsLeftOutAndTold) {
  there_is({{.path = "a", .type = Type::kFile},
            {.path = "d", .type = Type::kDirectory},
            {.path = "l", .type = Type::kLink}});
  const Outcome outcome = sluice({"get", "-q", "beta:data/*", "/tmp/"});
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(fetched(), Paths{"data/a"});
  EXPECT_EQ(outcome.err, "sluice: beta:data/*: left out what fits and is no file: 2\n");
}

TEST_F(RemotePatternsTest, APatternThatFitsNothingIsTheNameItself) {
  for (const Type type : {Type::kFile, Type::kDirectory}) {
    there_is({});
    control_.on_io([&] { control_.names.itself = {{{names::Entry{.path = "", .type = type}}}}; });
    EXPECT_EQ(sluice({"get", "-q", "beta:data/[a]", "/tmp/"}).exit_code, 0);
    EXPECT_EQ(fetched(), Paths{"data/[a]"});
  }
  control_.on_io([&] { control_.names.end = Error{ErrorCode::kSourceUnreadable, "nothing fits"}; });
  EXPECT_EQ(sluice({"get", "-q", "beta:data/[b]", "/tmp/"}).exit_code, 0) << "as a node says it";
  EXPECT_EQ(fetched(), Paths{"data/[b]"});
  control_.on_io([&] { control_.names.end.reset(); });
  there_is({{.path = "a", .type = Type::kFile}});
  EXPECT_EQ(sluice({"get", "-q", "beta:data/[a]", "/tmp/"}).exit_code, 0);
  EXPECT_EQ(fetched(), Paths{"data/a"}) << "it fits";
  there_is({});
  control_.on_io([&] { control_.names.itself = {{{names::Entry{.path = "", .type = Type::kFifo}}}}; });
  expect_one_line_error(sluice({"get", "-q", "beta:data/[a]", "/tmp/"}), ErrorCode::kSourceUnreadable);
}

TEST_F(RemotePatternsTest, NothingIsFetchedUnlessAllThatFitsIsKnown) {
  there_is({{.path = "d", .type = Type::kDirectory}});
  expect_one_line_error(sluice({"get", "beta:data/*", "/tmp/"}), ErrorCode::kSourceUnreadable);
  there_is({{.path = "a", .type = Type::kFile},
            {.path = "d", .type = Type::kDirectory, .error_code = 7, .error = "/data/d: permission denied"}});
  const Outcome outcome = sluice({"get", "beta:data/*/x", "/tmp/"});
  expect_one_line_error(outcome, ErrorCode::kSourceUnreadable);
  EXPECT_NE(outcome.err.find("permission denied"), std::string::npos);
  control_.on_io([&] { control_.names.end = Error{ErrorCode::kPeerUnreachable, "beta hung up"}; });
  there_is({{.path = "a", .type = Type::kFile}});
  expect_one_line_error(sluice({"get", "beta:data/*", "/tmp/"}), ErrorCode::kPeerUnreachable);
  EXPECT_TRUE(fetched().empty());
}

// A command has names of UTF-8 alone; the others are no reason to fetch nothing.
TEST_F(RemotePatternsTest, ANameThatIsNoUtf8IsLeftOutAndNamed) {
  there_is({{.path = "a", .type = Type::kFile}, {.path = "b\xff", .type = Type::kFile}});
  const Outcome outcome = sluice({"get", "-q", "beta:data/*", "/tmp/", "--json"});
  EXPECT_EQ(outcome.exit_code, static_cast<int>(ErrorCode::kPartial));
  EXPECT_EQ(fetched(), Paths{"data/a"});
  EXPECT_NE(outcome.err.find("beta:data/b\\xff: left out"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.json()["error_code"], 21);
  EXPECT_EQ(outcome.json()["left_out"], api::Json{"data/b\\xff"});
  there_is({{.path = "b\xff", .type = Type::kFile}});
  EXPECT_EQ(sluice({"get", "-q", "beta:data/*", "/tmp/"}).exit_code, 7) << "nothing is left to fetch";
  there_is({{.path = "a", .type = Type::kFile}, {.path = "b\xff", .type = Type::kFile}});
  const auto file = control_.directory / "night.toml";
  std::ofstream(file) << "retry = 1\n[[get]]\nsources = \"beta:data/*\"\nto = \"/tmp/\"\n";
  control_.on_io([this] { control_.sessions.sessions.clear(); });
  EXPECT_EQ(sluice({"run", "-q", file.string()}).exit_code, 21);
  control_.on_io(
      [this] { EXPECT_EQ(control_.sessions.sessions.size(), 1U) << "a retry would bring no more"; });
}

TEST_F(RemotePatternsTest, LiteralMeansTheNamesThemselves) {
  EXPECT_EQ(sluice({"get", "--literal", "beta:data/a[1]*", "/tmp/"}).exit_code, 0);
  EXPECT_EQ(fetched(), Paths{"data/a[1]*"});
  EXPECT_TRUE(control_.on_io([&] { return control_.names.asked.empty(); }));
}

TEST_F(RemotePatternsTest, RunTakesThemToo) {
  there_is({{.path = "a.h5", .type = Type::kFile}});
  const auto file = control_.directory / "night.toml";
  std::ofstream(file) << "[[get]]\nsources = \"beta:data/*.h5\"\nto = \"/tmp/\"\n";
  const Outcome outcome = sluice({"run", "-q", file.string()});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(fetched(), Paths{"data/a.h5"});
}

}  // namespace
}  // namespace sluice::cli
