// sluice ls, stat, mkdir, mv and rm, against the API's own server.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <sstream>

#include "control/api/fake_sessions_for_test.h"
#include "tools/cli/app.h"
#include "tools/cli/cli_fixture_for_test.h"
#include "tools/cli/names_format.h"

namespace sluice::cli {
namespace {

using names::Type;
using service::FakeNames;

class NamesCommandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status served = control_.serve();
    ASSERT_TRUE(served) << served.error().message;
  }
  Outcome sluice(std::vector<std::string> arguments, std::function<std::string()> answer = {}) {
    std::ostringstream out, err;
    Environment environment{out, err};
    environment.answer = std::move(answer);
    environment.working_directory = "/w";
    environment.default_node = control_.directory;
    const int exit_code = run(arguments, environment);
    return {exit_code, out.str(), err.str()};
  }
  // How the peer answers from now on.
  template <typename Set>
  void peer(Set set) {
    control_.on_io([&] { set(control_.names); });
  }
  std::vector<std::pair<std::string, names::Request>> asked() {
    return control_.on_io([&] { return control_.names.asked; });
  }

  service::FakeControl control_;
};

TEST_F(NamesCommandsTest, LsPrintsNamesThatSteerNoTerminal) {
  peer([](FakeNames& names) {
    names.pages = {{{{.path = "a b"}, {.path = "c\n\x1b[2J"}, {.path = "d\xff\\"}, {.path = "\xc3\xbc"}}}};
  });
  const Outcome outcome = sluice({"ls", "beta:data/sub"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "a b\nc\\n\\x1b[2J\nd\\xff\\\\\n\xc3\xbc\n");
  EXPECT_EQ(asked()[0].first, "beta");
  const auto& list = std::get<names::List>(asked()[0].second);
  EXPECT_EQ(list.path, "data/sub");
  EXPECT_FALSE(list.recursive || list.glob || list.itself || list.unfinished);
}

TEST_F(NamesCommandsTest, LsPassesItsOptions) {
  EXPECT_EQ(sluice({"ls", "-R", "-a", "beta:data/*.h5"}).exit_code, 0);
  EXPECT_EQ(sluice({"ls", "--literal", "beta:data/*.h5"}).exit_code, 0);
  EXPECT_EQ(sluice({"ls", "beta:"}).exit_code, 0);
  const auto& list = std::get<names::List>(asked()[0].second);
  EXPECT_TRUE(list.recursive && list.glob && list.unfinished);
  EXPECT_FALSE(std::get<names::List>(asked()[1].second).glob);
  EXPECT_EQ(std::get<names::List>(asked()[2].second).path, "");
}

// What a list is written to, when its reader has left.
struct Broken : std::streambuf {
  int overflow(int) override { return traits_type::eof(); }
};

TEST_F(NamesCommandsTest, AReaderThatLeavesEndsAListWithoutAWord) {
  peer([](FakeNames& names) {
    names.pages = {{{{.path = "a"}}}, {{{.path = "b"}}}};
    names.silent = true;  // as a long list
  });
  for (const bool left : {true, false}) {
    Broken broken;
    std::ostream out(&broken);
    std::ostringstream err;
    Environment environment{.out = out, .err = err};
    environment.reader_left = [left] { return left; };
    environment.working_directory = "/w";
    environment.default_node = control_.directory;
    EXPECT_EQ(run({"ls", "beta:data"}, environment), left ? 0 : static_cast<int>(ErrorCode::kStorage));
    EXPECT_EQ(err.str().find("disk full") == std::string::npos, left) << err.str();
  }
}

TEST_F(NamesCommandsTest, LsPrintsWhatFitsAPatternWithItsDirectory) {
  peer([](FakeNames& names) { names.pages = {{{{.path = "run1/a.h5"}}}}; });
  EXPECT_EQ(sluice({"ls", "beta:/srv/data/run*/*.h5"}).out, "/srv/data/run1/a.h5\n");
  EXPECT_EQ(sluice({"ls", "-0", "beta:/srv/data/run*/*.h5"}).out, std::string("/srv/data/run1/a.h5\0", 20));
}

TEST_F(NamesCommandsTest, LsLongShowsWhatThereIs) {
  peer([](FakeNames& names) {
    names.pages = {{{{.path = "d", .type = Type::kDirectory, .mode = 01777, .uid = 5, .gid = 6, .links = 2},
                     {.path = "l", .type = Type::kLink, .size_bytes = 3, .mode = 0777, .target = "x\ty"}}}};
  });
  const Outcome outcome = sluice({"ls", "-l", "beta:data"});
  EXPECT_EQ(outcome.out.find("drwxrwxrwt   2     5     6              0 19"), 0U) << outcome.out;
  EXPECT_NE(outcome.out.find("lrwxrwxrwx"), std::string::npos);
  EXPECT_NE(outcome.out.find(" l -> x\\ty\n"), std::string::npos) << outcome.out;
}

TEST_F(NamesCommandsTest, LsJsonIsOneObjectWhateverTheBytes) {
  peer([](FakeNames& names) {
    names.pages = {{{{.path = "a\xff\""}}}, {{{.path = "b", .type = Type::kFile, .size_bytes = 7}}}};
  });
  const Outcome outcome = sluice({"ls", "--json", "beta:data"});
  EXPECT_EQ(outcome.out.find('\n'), outcome.out.size() - 1);
  const api::Json json = api::Json::parse(outcome.out);
  EXPECT_EQ(json["schema"], "sluice.names.v1");
  EXPECT_EQ(json["node"], "beta");
  EXPECT_EQ(json["path"], "data");
  EXPECT_EQ(json["entries"][0]["path"], "a\xef\xbf\xbd\"");
  EXPECT_EQ(json["entries"][0]["path_bytes"], "61ff22");
  EXPECT_FALSE(json["entries"][1].contains("path_bytes"));
  EXPECT_EQ(json["entries"][1]["size_bytes"], 7);
  EXPECT_EQ(json["entries"][1]["type"], "file");
  EXPECT_EQ(json["complete"], true);
  EXPECT_EQ(json["entry_count"], 2);
  peer([](FakeNames& names) { names.pages.clear(); });
  EXPECT_TRUE(api::Json::parse(sluice({"ls", "--json", "beta:data"}).out)["entries"].empty());
}

TEST_F(NamesCommandsTest, AnEntryWithAnErrorIsSaidAndTheListGoesOn) {
  peer([](FakeNames& names) {
    names.pages = {
        {{{.path = "d", .type = Type::kDirectory, .error_code = 7, .error = "/data/d: permission denied"},
          {.path = "e"}}}};
  });
  const Outcome outcome = sluice({"ls", "beta:data"});
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(outcome.out, "d\ne\n");
  EXPECT_EQ(outcome.err, "sluice: beta: /data/d: permission denied\n");
  EXPECT_EQ(api::Json::parse(sluice({"ls", "--json", "beta:data"}).out)["failed"], 1);
}

TEST_F(NamesCommandsTest, AListThatBreaksOffSaysSo) {
  peer([](FakeNames& names) {
    names.pages = {{{{.path = "a"}}}};
    names.end = Error{ErrorCode::kIncompatible, "beta: not in order"};
  });
  const Outcome outcome = sluice({"ls", "--json", "beta:data"});
  EXPECT_EQ(outcome.exit_code, 15);
  const api::Json json = api::Json::parse(outcome.out);
  EXPECT_EQ(json["complete"], false);
  EXPECT_EQ(json["error"]["code"], 15);
  EXPECT_EQ(outcome.err, "sluice: beta: not in order\n");
  peer([](FakeNames& names) { names.pages.clear(); });
  EXPECT_EQ(api::Json::parse(sluice({"ls", "--json", "beta:data"}).out)["schema"], "sluice.error.v1");
}

TEST_F(NamesCommandsTest, FilesOfThisNodeAreNotListed) {
  for (const char* command : {"ls", "stat", "mkdir", "rm"}) {
    const Outcome outcome = sluice({command, "/srv/data"});
    EXPECT_EQ(outcome.exit_code, 2);
    EXPECT_NE(outcome.err.find("is not NODE:PATH"), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(std::string("for files of this node use ") + command), std::string::npos)
        << outcome.err;
  }
  EXPECT_TRUE(asked().empty());
}

TEST_F(NamesCommandsTest, StatAsksForTheNameItself) {
  peer([](FakeNames& names) {
    names.pages = {{{{.type = Type::kFile, .size_bytes = 2048, .mode = 04755, .mtime_ns = 1'500'000'000}}}};
  });
  const Outcome outcome = sluice({"stat", "beta:data/x\xff"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("path       data/x\\xff\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("2.00 KiB (2048 bytes)"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("-rwsr-xr-x (4755)"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find(":01.500000000\n"), std::string::npos) << outcome.out;
  EXPECT_TRUE(std::get<names::List>(asked()[0].second).itself);
  const api::Json json = api::Json::parse(sluice({"stat", "--json", "beta:data/x"}).out);
  EXPECT_EQ(json["schema"], "sluice.stat.v1");
  EXPECT_EQ(json["entries"][0]["path"], "data/x");
  EXPECT_EQ(json["entries"][0]["mode"], "4755");
  EXPECT_EQ(sluice({"stat", "beta:"}).exit_code, 2);
}

TEST_F(NamesCommandsTest, ChangesPassTheirOptions) {
  EXPECT_EQ(sluice({"mkdir", "-p", "beta:data/a", "beta:data/b"}).exit_code, 0);
  EXPECT_EQ(sluice({"mv", "--force", "beta:data/a", "beta:data/b"}).exit_code, 0);
  EXPECT_EQ(sluice({"rm", "-r", "beta:data/b"}).exit_code, 0) << "nobody is there to be asked";
  const auto all = asked();
  ASSERT_EQ(all.size(), 4U);
  EXPECT_TRUE(std::get<names::MakeDirectory>(all[0].second).parents);
  EXPECT_EQ(std::get<names::MakeDirectory>(all[1].second).path, "data/b");
  EXPECT_EQ(std::get<names::Move>(all[2].second).to, "data/b");
  EXPECT_TRUE(std::get<names::Move>(all[2].second).replace);
  EXPECT_TRUE(std::get<names::Remove>(all[3].second).recursive);
}

TEST_F(NamesCommandsTest, MvStaysOnOneNode) {
  EXPECT_EQ(sluice({"mv", "beta:data/a", "gamma:data/b"}).exit_code, 2);
  EXPECT_EQ(sluice({"mv", "beta:data/a"}).exit_code, 2);
  EXPECT_EQ(sluice({"mv", "beta:data/a", "data/b"}).exit_code, 2);
  EXPECT_TRUE(asked().empty());
}

TEST_F(NamesCommandsTest, RmAsksSomebodyAtATerminal) {
  const Outcome no = sluice({"rm", "-r", "beta:data/a\x1b"}, [] { return ""; });
  EXPECT_EQ(no.exit_code, 12);
  EXPECT_NE(no.err.find("remove beta:data/a\\x1b and all that is in it? [y/N]"), std::string::npos) << no.err;
  EXPECT_NE(no.err.find("nothing was removed"), std::string::npos);
  EXPECT_TRUE(asked().empty());
  EXPECT_EQ(sluice({"rm", "beta:data/a"}, [] { return "y"; }).exit_code, 0);
  EXPECT_EQ(sluice({"rm", "--yes", "beta:data/a"}, [] { return "n"; }).exit_code, 0);
  EXPECT_EQ(asked().size(), 2U);
}

TEST_F(NamesCommandsTest, WhatCouldNotBeRemovedIsSaid) {
  peer([](FakeNames& names) {
    names.done = {.entries = 3,
                  .failed = 2,
                  .problems = {{.path = "x", .error_code = 16, .error = "/data/a/x: mounted"}}};
  });
  const Outcome outcome = sluice({"rm", "-r", "beta:data/a"});
  EXPECT_EQ(outcome.exit_code, 16);
  EXPECT_EQ(outcome.err,
            "sluice: beta: /data/a/x: mounted\nsluice: beta: 1 further names could not be removed\n");
  const api::Json json = api::Json::parse(sluice({"rm", "-r", "--json", "beta:data/a"}).out);
  EXPECT_EQ(json["schema"], "sluice.changed.v1");
  EXPECT_EQ(json["entry_count"], 3);
  EXPECT_EQ(json["failed"], 2);
  EXPECT_EQ(json["problems"][0]["path"], "data/a/x");
}

TEST_F(NamesCommandsTest, OneThatFailsDoesNotStopTheOthers) {
  peer([](FakeNames& names) { names.end = Error{ErrorCode::kSourceUnreadable, "beta: no such name"}; });
  const Outcome outcome = sluice({"rm", "beta:data/a", "beta:data/b"});
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_EQ(outcome.err, "sluice: beta: no such name\nsluice: beta: no such name\n");
  EXPECT_EQ(asked().size(), 2U);
  peer([](FakeNames& names) { names.refusal = Error{ErrorCode::kPeerUnreachable, "beta: nobody there"}; });
  EXPECT_EQ(sluice({"rm", "beta:data/a", "beta:data/b"}).exit_code, 6);
  EXPECT_EQ(asked().size(), 3U) << "whoever cannot be reached is not called again";
}

TEST(Escaped, TellsTheBytes) {
  EXPECT_EQ(escaped("plain \xc3\xa9"), "plain \xc3\xa9");
  EXPECT_EQ(escaped(std::string("\0\x7f\x1b\t\r", 5)), "\\x00\\x7f\\x1b\\t\\r");
  EXPECT_EQ(escaped("\xc2\x9b\xe2\x80\xae"), "\\xc2\\x9b\\xe2\\x80\\xae")
      << "C1, and a mark that turns writing";
  EXPECT_EQ(escaped("\xc3"), "\\xc3");
}

}  // namespace
}  // namespace sluice::cli
