// send --sync and get --sync, against the API's own server.
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/sync.h"

#include <gtest/gtest.h>

#include "control/selection/name_list.h"
#include "tools/cli/cli_fixture_for_test.h"

namespace sluice::cli {
namespace {

using names::Entry;
using names::Type;

class SyncTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    sessions_are(api::Session::SUCCEEDED);
  }
  static Entry file(const std::string& path, uint64_t size = 1) {
    return {.path = path, .type = Type::kFile, .size_bytes = size};
  }
  static Entry directory(const std::string& path) { return {.path = path, .type = Type::kDirectory}; }
  static std::vector<names::Page> pages(const std::vector<Entry>& entries) {
    if (entries.empty()) return {};
    return {{entries}};
  }
  // What this node has, and what its peer; `then`: in one of its directories, after something was sent.
  void there_are(const std::vector<Entry>& own, const std::vector<Entry>& theirs,
                 const std::vector<Entry>& then = {}) {
    control_.on_io([&] {
      control_.names.own_pages = pages(own);
      control_.names.pages = pages(theirs);
      control_.names.pages_of_one = pages(then);
      control_.names.asked.clear();
      control_.sessions.last_send.reset();
      control_.sessions.last_get.reset();
    });
  }
  std::vector<std::string> removed() {
    return control_.on_io([&] {
      std::vector<std::string> paths;
      for (const auto& [peer, request] : control_.names.asked) {
        if (const auto* remove = std::get_if<names::Remove>(&request))
          paths.push_back(peer + ":" + remove->path + (remove->recursive ? "/" : ""));
      }
      return paths;
    });
  }
  size_t sessions() {
    return control_.on_io([&] { return control_.sessions.sessions.size(); });
  }
  std::optional<api::SendRequest> sent() {
    return control_.on_io([&] { return control_.sessions.last_send; });
  }
};
using Paths = std::vector<std::string>;

TEST_F(SyncTest, OfTheSameNothingIsSent) {
  there_are({file("a"), file("b")}, {file("a"), file("b")});
  const Outcome outcome = sluice({"send", "--sync", "--delete", "t", "b:data/"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "nothing to do: 2 names are the same\n");
  EXPECT_EQ(sessions(), 0U);
  EXPECT_TRUE(removed().empty());
}

TEST_F(SyncTest, NamesThatDifferAreSentBetweenTheComparedDirectories) {
  there_are({directory("d"), file("d/a"), file("\xff", 2)}, {directory("d"), file("\xff")});
  const Outcome outcome = sluice({"send", "--sync", "--exclude", "x", "t", "b:data"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const auto request = sent();
  ASSERT_TRUE(request);
  EXPECT_EQ(request->sources(0), "/w/t/");
  EXPECT_EQ(request->destination(), "data/t/");
  EXPECT_TRUE(request->options().overwrite());
  EXPECT_EQ(request->options().rules_size(), 0) << "the comparison judged by them";
  EXPECT_EQ(Paths(request->options().names().begin(), request->options().names().end()),
            (Paths{"d/a", "\xff"}));
  const auto asked = control_.on_io([&] { return control_.names.asked; });
  EXPECT_EQ(std::get<names::List>(asked.at(0).second).path, "/w/t");
  EXPECT_EQ(std::get<names::List>(asked.at(1).second).path, "data/t");
}

TEST_F(SyncTest, WithASlashTheContentsAreCompared) {
  there_are({file("a")}, {file("b")});
  EXPECT_EQ(sluice({"send", "--sync", "t/", "b:data"}).exit_code, 0);
  EXPECT_EQ(sent()->destination(), "data/");
  EXPECT_EQ(sluice({"get", "--sync", "b:data", "/w"}).exit_code, 0)
      << "an export by its name is its contents";
  const auto got = control_.on_io([&] { return control_.sessions.last_get; });
  EXPECT_EQ(got->sources(0), "data/");
  EXPECT_EQ(got->destination(), "/w/");
}

TEST_F(SyncTest, WhereNothingIsThereItIsAnOrdinaryTransfer) {
  there_are({file("a")}, {});
  EXPECT_EQ(sluice({"send", "--sync", "--exclude", "x", "t", "b:data/"}).exit_code, 0);
  EXPECT_EQ(sent()->sources(0), "/w/t");
  EXPECT_EQ(sent()->destination(), "data/");
  EXPECT_EQ(sent()->options().names_size(), 0);
  EXPECT_EQ(sent()->options().rules_size(), 1);
  EXPECT_TRUE(sent()->options().overwrite());
}

TEST_F(SyncTest, MoreThanOneListHoldsAreSeveralSessions) {
  std::vector<Entry> many;
  for (size_t i = 0; i <= selection::kNamesMax; ++i) many.push_back(file(std::to_string(1'000'000 + i)));
  there_are(many, {file("x")});
  const Outcome outcome = sluice({"send", "--sync", "t", "b:data/"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(sessions(), 2U);
  EXPECT_EQ(sent()->options().names_size(), 1);
}

TEST_F(SyncTest, WhatTheSourceLacksIsRemovedAfterwards) {
  const std::vector<Entry> theirs = {directory("d"), file("d/x"), directory("gone"), file("gone/y"),
                                     file("z")};
  there_are({directory("d"), file("new")}, theirs);
  EXPECT_EQ(sluice({"send", "--sync", "t", "b:data/"}).exit_code, 0);
  EXPECT_TRUE(removed().empty()) << "not without --delete";
  there_are({directory("d"), file("new")}, theirs,
            {directory("d"), directory("gone"), file("new"), file("z")});
  control_.on_io([&] {
    control_.names.done = {.entries = 1};
    control_.sessions.prototype.mutable_names()->set_done(3);  // with the directories above
  });
  const Outcome outcome = sluice({"send", "--sync", "--delete", "--json", "t", "b:data/"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(removed(), (Paths{"b:data/t/d/x", "b:data/t/gone/", "b:data/t/z"}));
  EXPECT_EQ(outcome.json()["removed"], 3);
  EXPECT_EQ(outcome.json()["sessions"].size(), 2U);
  EXPECT_EQ(sent()->options().names(0), "d") << "its time is set again";
  EXPECT_EQ(outcome.json()["sent"], 1) << "as a dry run says, whatever a session counts";
  EXPECT_EQ(outcome.json()["bytes"], 1);
}

TEST_F(SyncTest, WhatTheDestinationListsUnderAnotherNameThanItWasSentIsNotRemoved) {
  there_are({file("d/x"), file("README")}, {file("d/x"), file("readme")}, {file("readme")});
  const Outcome outcome = sluice({"send", "--sync", "--delete", "t", "b:data/"});
  EXPECT_EQ(outcome.exit_code, 21) << outcome.err;
  EXPECT_NE(outcome.err.find("README"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("nothing was removed"), std::string::npos) << outcome.err;
  EXPECT_TRUE(removed().empty());
}

TEST_F(SyncTest, OfAGetOwnNamesAreRemoved) {
  there_are({file("a"), file("mine")}, {file("a")});
  EXPECT_EQ(sluice({"get", "--sync", "--delete", "b:data/t", "/w"}).exit_code, 0);
  EXPECT_EQ(removed(), (Paths{"own:/w/t/mine"}));
}

TEST_F(SyncTest, NothingIsRemovedUnlessAllWasSentAndKnown) {
  sessions_are(api::Session::SUCCEEDED, ErrorCode::kPartial, "1 name is missing");
  there_are({file("a")}, {file("z")});
  Outcome outcome = sluice({"send", "--sync", "--delete", "t", "b:data/"});
  EXPECT_EQ(outcome.exit_code, 21);
  EXPECT_NE(outcome.err.find("nothing was removed"), std::string::npos) << outcome.err;
  EXPECT_TRUE(removed().empty());

  sessions_are(api::Session::SUCCEEDED);
  Entry closed = directory("a");
  closed.error_code = 7;
  closed.error = "no permission";
  there_are({closed}, {file("z")});
  outcome = sluice({"send", "--sync", "--delete", "t", "b:data/"});
  EXPECT_EQ(outcome.exit_code, 21);
  EXPECT_NE(outcome.err.find("a: no permission"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("nothing was removed"), std::string::npos) << outcome.err;
  EXPECT_TRUE(removed().empty());

  there_are({file("a")}, {file("z")});
  control_.on_io([&] { control_.names.end = Error{ErrorCode::kPeerUnreachable, "b is gone"}; });
  expect_one_line_error(sluice({"send", "--sync", "--delete", "t", "b:data/"}), ErrorCode::kPeerUnreachable);
  EXPECT_TRUE(removed().empty());
}

TEST_F(SyncTest, AFailureEndsIt) {
  sessions_are(api::Session::FAILED, ErrorCode::kNoSpace, "b: no space");
  there_are({directory("d"), file("new")}, {directory("d"), file("d/x"), file("z")});
  const Outcome outcome = sluice({"send", "--sync", "--delete", "t", "b:data/"});
  EXPECT_EQ(outcome.exit_code, static_cast<int>(ErrorCode::kNoSpace));
  EXPECT_EQ(sessions(), 1U);
  EXPECT_TRUE(removed().empty());
}

TEST_F(SyncTest, ADryRunOnlyTells) {
  there_are({file("new\n")}, {directory("old"), file("z")});
  const Outcome outcome = sluice({"send", "--sync", "--delete", "-n", "t", "b:data/"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "send new\\n\nremove old/\nremove z\n0 names are the same, 1 would be sent (1 B), 2 would be "
            "removed\n");
  EXPECT_EQ(sessions(), 0U);
  EXPECT_TRUE(removed().empty());
}

TEST_F(SyncTest, WhatIsOfAnotherKindAtTheDestinationWouldFailAndDoes) {
  const std::vector<Entry> own = {file("d"), file("new")};
  const std::vector<Entry> theirs = {directory("d"), file("z")};
  there_are(own, theirs);
  Outcome outcome = sluice({"send", "--sync", "--delete", "-n", "t", "b:data/"});
  EXPECT_EQ(outcome.exit_code, 21);
  EXPECT_EQ(outcome.out,
            "send new\n0 names are the same, 1 would be sent (1 B), 0 would be removed, 1 would fail\n");
  EXPECT_NE(outcome.err.find("would fail: d: is of another kind there: a directory"), std::string::npos)
      << outcome.err;
  EXPECT_NE(outcome.err.find("nothing would be removed"), std::string::npos) << outcome.err;
  there_are(own, theirs);
  outcome = sluice({"send", "--sync", "--delete", "--json", "t", "b:data/"});
  EXPECT_EQ(outcome.exit_code, 21);
  EXPECT_EQ(sent()->options().names_size(), 1) << "new alone";
  EXPECT_EQ(outcome.json()["failed"], 1);
  EXPECT_EQ(outcome.json()["problems"][0]["path"], "d");
  EXPECT_EQ(outcome.err.find("same again"), std::string::npos) << outcome.err;
  EXPECT_TRUE(removed().empty());
}

TEST_F(SyncTest, OptionsThatContradictItAreRefused) {
  for (const Paths& arguments :
       {Paths{"--delete", "t"}, Paths{"--checksum", "t"}, Paths{"--sync", "t", "u"},
        Paths{"--sync", "memory:1K"}, Paths{"--sync", "--detach", "t"},
        Paths{"--sync", "--files-from", "x", "t"}, Paths{"--sync", "--exclude", "t", "t"}}) {
    Paths command = {"send"};
    command.insert(command.end(), arguments.begin(), arguments.end());
    command.push_back("b:data/");
    expect_one_line_error(sluice(command), ErrorCode::kUsage);
  }
  EXPECT_EQ(sessions(), 0U);
}

}  // namespace
}  // namespace sluice::cli
