// send --manifest and --write-manifest, against the API's own server.
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/transfer_lists.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "control/digests/kind.h"
#include "tools/cli/cli_fixture_for_test.h"

namespace sluice::cli {
namespace {

class TransferListsTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    sessions_are(api::Session::SUCCEEDED);
  }
  static std::string sha256(char digit) { return std::string(64, digit); }
  std::string list(const std::string& text) const {
    std::ofstream(control_.directory / "list") << text;
    return (control_.directory / "list").string();
  }
  // What the destination computed: a name, and the digit of its digest.
  void arrived(const std::vector<std::pair<std::string, char>>& names) {
    control_.on_io([&] {
      control_.sessions.named.clear();
      for (const auto& [path, digit] : names) {
        api::NameDigests& one = control_.sessions.named.emplace_back();
        one.set_path(path);
        one.set_size(1);
        api::Digest* const digest = one.add_digests();
        digest->set_kind("sha256");
        digest->set_hex(sha256(digit));
      }
    });
  }
  Outcome send(std::vector<std::string> options) {
    control_.on_io([&] { control_.sessions.last_send.reset(); });
    options.insert(options.begin(), "send");
    options.insert(options.end(), {"run", "b:data/"});
    return sluice(options);
  }
  std::optional<api::SendRequest> sent() {
    return control_.on_io([&] { return control_.sessions.last_send; });
  }
};

TEST_F(TransferListsTest, ADashIsTheStandardOutputWhichTheListHasAlone) {
  arrived({{"run/a", 'a'}});
  const Outcome outcome = send({"--write-manifest", "-"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, sha256('a') + "  run/a\n");
  EXPECT_NE(outcome.err.find("bytes (100 B) in"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists("-"));
  const Outcome json = send({"--write-manifest", "-", "--json"});
  EXPECT_EQ(json.exit_code, static_cast<int>(ErrorCode::kUsage));
  EXPECT_EQ(json.json()["schema"], "sluice.error.v1");
  EXPECT_FALSE(sent()) << "nothing was begun";
}

TEST_F(TransferListsTest, NamesBeginInTheDirectoryThatIsSentOrBesideItOrAreAbsolute) {
  arrived({{"run/a", 'a'}, {"run/b", 'b'}, {"run/c", 'c'}});
  const std::string file =
      list(sha256('a') + "  a\n" + sha256('b') + "  ./run/b\n" + sha256('c') + "  /w/run/c\n");
  const Outcome outcome = send({"--manifest", file});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.out << outcome.err;
  const std::optional<api::SendRequest> request = sent();
  ASSERT_TRUE(request);
  const api::TransferOptions& options = request->options();
  EXPECT_EQ(options.digests(), digests::bit_of(digests::Kind::kSha256));
  std::set<std::string> expected;
  for (const api::NameDigests& name : options.expected()) expected.insert(name.path());
  EXPECT_EQ(expected, (std::set<std::string>{"a", "run/a", "run/b", "run/run/b", "run/c"}));
}

TEST_F(TransferListsTest, WhatIsNotAsListedIsToldByName) {
  arrived({{"run/a", 'a'}, {"run/b", 'x'}, {"run/new", 'd'}});
  const std::string file = list(sha256('a') + "  a\n" + sha256('b') + "  b\n" + sha256('c') + "  c\n");
  const Outcome outcome = send({"--json", "--manifest", file});
  EXPECT_EQ(outcome.exit_code, static_cast<int>(ErrorCode::kIntegrity)) << outcome.err;
  const api::Json found = outcome.json()["manifest"];
  EXPECT_EQ(found["good"], 1);
  EXPECT_EQ(found["differs"], 1);
  EXPECT_EQ(found["missing"], 1);
  EXPECT_EQ(found["extra"], 1);
  std::set<std::string> problems;
  for (const api::Json& each : found["problems"])
    problems.insert(each["problem"].get<std::string>() + " " + each["name"].get<std::string>());
  EXPECT_EQ(problems, (std::set<std::string>{"differs run/b", "extra run/new", "missing c"}));
}

TEST_F(TransferListsTest, AListThatIsNoneIsRefusedBeforeAnythingIsSent) {
  const std::string two = sha256('a') + "  a\n" + sha256('b') + "  a\n";
  for (const std::filesystem::path& file : {control_.directory / "nowhere", control_.directory})
    expect_one_line_error(send({"--manifest", file.string()}), ErrorCode::kUsage);
  for (const std::string& text : {std::string("nothing of the kind\n"), std::string(), two})
    expect_one_line_error(send({"--manifest", list(text)}), ErrorCode::kUsage);
  EXPECT_FALSE(sent());
}

TEST_F(TransferListsTest, TheListOfWhatArrivedIsWrittenOnceAndInOrder) {
  arrived({{"run/b", 'b'}, {"run/a", 'a'}});
  const std::filesystem::path written = control_.directory / "written";
  ASSERT_EQ(send({"--write-manifest", written.string()}).exit_code, 0);
  std::ostringstream text;
  text << std::ifstream(written).rdbuf();
  EXPECT_EQ(text.str(), sha256('a') + "  run/a\n" + sha256('b') + "  run/b\n");
  const Outcome again = send({"--write-manifest", written.string()});
  EXPECT_EQ(again.exit_code, static_cast<int>(ErrorCode::kDestinationExists)) << again.err;
  EXPECT_FALSE(sent()) << "before anything is sent";
  EXPECT_EQ(send({"--overwrite", "--write-manifest", written.string()}).exit_code, 0);
}

}  // namespace
}  // namespace sluice::cli
