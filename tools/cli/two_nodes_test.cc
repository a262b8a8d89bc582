// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/two_nodes.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "tools/cli/transfer_flags.h"

namespace sluice::cli {
namespace {

class TwoNodes : public testing::Test {
 protected:
  TwoNodes() { std::filesystem::create_directories(here_); }
  ~TwoNodes() override { std::filesystem::remove_all(here_); }

  Result<std::optional<api::SendRequest>> parse(const std::vector<std::string>& words,
                                                bool sends = true) const {
    const auto knows = [](const std::string& name) { return name == "alpha" || name == "beta"; };
    return two_nodes(words, sends, knows, here_);
  }
  bool is_own(const std::vector<std::string>& words, bool sends = true) const {
    const auto parsed = parse(words, sends);
    return parsed && !*parsed;
  }
  void expect_usage(const std::vector<std::string>& words, const std::string& word, bool sends = true) const {
    const auto parsed = parse(words, sends);
    ASSERT_FALSE(parsed) << word;
    EXPECT_EQ(parsed.error().code, ErrorCode::kUsage);
    EXPECT_NE(parsed.error().message.find(word), std::string::npos) << parsed.error().message;
  }

  const std::filesystem::path here_ =
      std::filesystem::temp_directory_path() / ("sluice-two-nodes-" + std::to_string(::getpid()));
};

TEST_F(TwoNodes, AreTheSourceAndTheDestination) {
  for (const bool sends : {true, false}) {
    const auto parsed = parse({"alpha:data/x", "alpha:data/y z", "beta:in/"}, sends);
    ASSERT_TRUE(parsed && *parsed);
    EXPECT_EQ((*parsed)->from(), "alpha");
    EXPECT_EQ((*parsed)->peer(), "beta");
    EXPECT_EQ((*parsed)->destination(), "in/");
    ASSERT_EQ((*parsed)->sources_size(), 2);
    EXPECT_EQ((*parsed)->sources(1), "data/y z");
  }
}

TEST_F(TwoNodes, AreNotMeantByWordsOfThisNode) {
  EXPECT_TRUE(is_own({"x", "beta:in/"}));
  EXPECT_TRUE(is_own({"./alpha:x", "beta:in/"}));
  std::ofstream(here_ / "nobody:x") << "here";
  EXPECT_TRUE(is_own({"nobody:x", "beta:in/"}));  // a file here that is called so
  EXPECT_TRUE(is_own({"alpha:x", "nobody:in/"}, false));
  EXPECT_TRUE(is_own({"alpha:x", "./beta:in"}, false));
  EXPECT_TRUE(is_own({"alpha:x", "/beta:in"}, false));
  EXPECT_TRUE(is_own({"alpha:x", "null:"}, false));
  EXPECT_TRUE(is_own({"memory:1M", "beta:in/"}));
  EXPECT_TRUE(is_own({"beta:x", "beta:y"}));  // target.h says what is wrong with it
  EXPECT_TRUE(is_own({"beta:y"}));
  EXPECT_TRUE(is_own({}));
}

TEST_F(TwoNodes, ANodeThatNobodyKnowsIsNoFileHere) {
  expect_usage({"nobody:data/x", "beta:in/"}, "nobody is no peer");
  expect_usage({"x", "nobody:data/x", "beta:in/"}, "nobody is no peer");
  const auto knows = [](const std::string& name) { return name == "alpha"; };
  const auto stores_here = [&](const std::string& word) {
    return static_cast<bool>(check_destination_here(word, knows, here_));
  };
  EXPECT_FALSE(stores_here("nobody:in/"));
  EXPECT_FALSE(stores_here("nobody:in/x"));
  std::filesystem::create_directories(here_ / "nobody:in");
  for (const char* word :
       {"nobody:in/", "nobody:x", "./nobody:x/y", "alpha:x/y", "x", "x/y", "null:", "/x:/y"})
    EXPECT_TRUE(stores_here(word)) << word;
}

TEST_F(TwoNodes, AFileHereThatIsCalledSoIsNotTakenForTheOther) {
  std::ofstream(here_ / "alpha:x") << "here";
  expect_usage({"alpha:x", "beta:in/"}, "./alpha:x");
  EXPECT_TRUE(*parse({"alpha:x", "beta:in/"}, false));  // `get` reads no file here
}

TEST_F(TwoNodes, SourcesAreAtOneOfThem) {
  expect_usage({"alpha:x", "y", "beta:in/"}, "one by one");
  expect_usage({"alpha:x", "beta:y", "beta:in/"}, "one by one");
  expect_usage({"alpha:x", "beta:y", "beta:in/"}, "two nodes", false);
  EXPECT_TRUE(is_own({"x", "alpha:y", "beta:in/"}));  // which the node then does not find
}

TEST_F(TwoNodes, PathsAreGiven) {
  expect_usage({"alpha:", "beta:in/"}, "alpha:EXPORT");
  expect_usage({"alpha:x", "beta:"}, "beta:EXPORT");
  expect_usage({"alpha:x", "alpha:y"}, "both", false);
  expect_usage({"alpha:\xff", "beta:in/"}, "UTF-8");
}

TEST_F(TwoNodes, GeneratedBytesAreTheSourcesToMake) {
  const auto parsed = parse({"alpha:memory:1KiB", "beta:null:"});
  ASSERT_TRUE(parsed && *parsed);
  EXPECT_EQ((*parsed)->sources(0), "memory:1024");
  EXPECT_EQ((*parsed)->destination(), "null:");
}

TEST_F(TwoNodes, OptionsOfATransferGoWithIt) {
  TransferFlags flags;
  flags.paths = {"alpha:x", "beta:in/"};
  flags.switches["overwrite"] = true;
  const auto knows = [](const std::string&) { return true; };
  const auto request = transfer_request(Direction::kGet, flags, here_, nullptr, knows);
  ASSERT_TRUE(request);
  const auto* const send = std::get_if<api::SendRequest>(&*request);
  ASSERT_NE(send, nullptr);
  EXPECT_EQ(send->from(), "alpha");
  EXPECT_TRUE(send->options().overwrite());
  flags.dry_run = true;
  EXPECT_FALSE(transfer_request(Direction::kGet, flags, here_, nullptr, knows));
  flags.dry_run = false;
  flags.from = {"alpha", "gamma"};
  EXPECT_FALSE(transfer_request(Direction::kGet, flags, here_, nullptr, knows));
}

}  // namespace
}  // namespace sluice::cli
