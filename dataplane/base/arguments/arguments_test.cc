// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/arguments/arguments.h"

#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <sstream>

namespace sluice::arguments {
namespace {

using Words = std::vector<std::string>;

// One of each kind of option and operand that our programs have.
struct Program {
  std::vector<std::string> paths;
  std::vector<std::string> exports;
  std::vector<std::string> noted;
  std::vector<uint32_t> cores;
  std::string id, text;
  std::optional<uint32_t> lanes;
  int32_t priority = 0;
  double seconds = 0;
  bool json = false, quiet = false, four = false;
  CLI::App app{"A test", "prog"};

  Program() {
    app.fallthrough();
    app.require_subcommand(0, 1);
    app.add_flag("--json", json);
    app.add_option("--node", text);
    CLI::App* const send = app.add_subcommand("send", "It sends");
    send->add_option("paths", paths)->required()->type_name("SRC...");
    send->add_flag("-q,--quiet", quiet);
    send->add_flag("-4,--ipv4", four);
    send->add_option("-P,--lanes", lanes)->transform(whole(1, 4096));
    send->add_option("--time", seconds)->transform(number(0.1, 99.5));
    send->add_option("--export", exports);
    send->add_option("--cores", cores)->delimiter(',');
    send->add_option("--kind", text)->check(CLI::IsMember({"crc64", "crc32c"}));
    send->add_option_function<std::string>("--exclude", [this](const std::string& p) { noted.push_back(p); })
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
        ->trigger_on_parse();
    CLI::App* const session = app.add_subcommand("session", "Sessions");
    session->require_subcommand(1);
    session->add_subcommand("show", "Show")->add_option("id", id)->required()->type_name("ID");
    session->add_subcommand("rank", "Rank")->add_option("priority", priority)->transform(whole(-100, 100));
  }

  // Empty, or the error.
  std::string parse(const Words& words) {
    const auto parsed = arguments::parse(app, words, out);
    asked = parsed && !*parsed;
    return parsed ? "" : parsed.error().message;
  }
  std::ostringstream out;
  bool asked = false;
};

const Words kOddWords = {"[a]",
                         "[a,b]",
                         "[]",
                         "a,b",
                         "{}",
                         "%%",
                         "++",
                         "\"a\"",
                         "'a'",
                         "`a`",
                         "a=b",
                         "=",
                         "@a",
                         "$HOME",
                         "~",
                         "a b",
                         " ",
                         "\t",
                         "\n",
                         "/a",
                         "send",
                         "show",
                         "true",
                         "0x10",
                         "--",
                         "-",
                         "-a",
                         "--a",
                         "--json",
                         "-4",
                         "--a=b",
                         "!",
                         "{a,b}",
                         "*",
                         "\xff\xfe",
                         "\x01"
                         "0",
                         "help",
                         "#",
                         "a\\b",
                         "%s"};

TEST(Arguments, OperandsBehindTheMarkAreTheirBytes) {
  for (const std::string& odd : kOddWords) {
    Program program;
    EXPECT_EQ(program.parse({"send", "--", odd, odd, "x"}), "") << odd;
    EXPECT_EQ(program.paths, (Words{odd, odd, "x"})) << odd;
    Program later;
    EXPECT_EQ(later.parse({"send", "first", "--", odd, "x"}), "") << odd;
    EXPECT_EQ(later.paths, (Words{"first", odd, "x"})) << odd;
    Program one;
    EXPECT_EQ(one.parse({"session", "show", "--", odd}), "") << odd;
    EXPECT_EQ(one.id, odd);
  }
}

TEST(Arguments, OperandsWithoutAHyphenNeedNoMark) {
  for (const std::string& odd : kOddWords) {
    if (odd.starts_with('-') && odd != "-") continue;
    Program program;
    EXPECT_EQ(program.parse({"send", odd, "-q", odd}), "") << odd;
    EXPECT_EQ(program.paths, (Words{odd, odd})) << odd;
    EXPECT_TRUE(program.quiet);
  }
}

TEST(Arguments, ValuesOfOptionsAreTheirBytes) {
  for (const std::string& odd : kOddWords) {
    Program program;
    EXPECT_EQ(program.parse({"send", "--export", odd, "--export=" + odd, "--exclude", odd, "--exclude=" + odd,
                             "--node", odd, "a", "b"}),
              "")
        << odd;
    EXPECT_EQ(program.exports, (Words{odd, odd})) << odd;
    EXPECT_EQ(program.noted, (Words{odd, odd})) << odd;
    EXPECT_EQ(program.text, odd);
    EXPECT_EQ(program.paths, (Words{"a", "b"}));
  }
}

TEST(Arguments, AnOptionTakesOneValueAndLeavesTheMark) {
  Program program;
  EXPECT_EQ(program.parse({"send", "--export", "x", "a", "--export", "y", "--", "-q"}), "");
  EXPECT_EQ(program.exports, (Words{"x", "y"}));
  EXPECT_EQ(program.paths, (Words{"a", "-q"}));
  EXPECT_FALSE(program.quiet);
}

TEST(Arguments, ShortOptionsAreJoined) {
  Program program;
  EXPECT_EQ(program.parse({"send", "-q4P8", "a", "--cores", "0,2", "--cores=3"}), "");
  EXPECT_TRUE(program.quiet && program.four);
  EXPECT_EQ(program.lanes, 8U);
  EXPECT_EQ(program.cores, (std::vector<uint32_t>{0, 2, 3}));
  Program number;
  EXPECT_EQ(number.parse({"session", "rank", "-3", "--json"}), "");
  EXPECT_EQ(number.priority, -3);
  EXPECT_TRUE(number.json) << "an option of every command";
}

TEST(Arguments, NumbersAreDecimal) {
  Program program;
  EXPECT_EQ(program.parse({"send", "a", "-P", "010"}), "");
  EXPECT_EQ(program.lanes, 10U);
  Program seconds;
  EXPECT_EQ(seconds.parse({"send", "a", "--time", "02.50"}), "");
  EXPECT_EQ(seconds.seconds, 2.5);
  for (const char* wrong : {"nan", "inf", "0.09", "100", "0x1p2", "1s", "-1"}) {
    Program other;
    EXPECT_NE(other.parse({"send", "a", "--time", wrong}).find("number from 0.1 to 99.5"), std::string::npos)
        << wrong;
  }
  for (const char* wrong : {"0x10", "true", "1.5", "8 ", "4097", "0", "[8]", "99999999999999999999"}) {
    Program other;
    EXPECT_NE(other.parse({"send", "a", "-P", wrong}).find("whole number from 1 to 4096"), std::string::npos)
        << wrong;
  }
}

TEST(Arguments, NothingEmptyIsTakenForSomethingLeftOut) {
  for (const Words& words : std::vector<Words>{{"send", "--node", "", "a"},
                                               {"send", "--node=", "a"},
                                               {"send", "-P", "", "a"},
                                               {"send", "", "a"},
                                               {"session", "show", "--", ""}}) {
    Program program;
    EXPECT_NE(program.parse(words).find("empty"), std::string::npos);
    EXPECT_EQ(program.paths, Words());
  }
}

TEST(Arguments, WhatIsWrongIsOneLineThatNamesTheHelp) {
  const auto error = [](const Words& words) { return Program().parse(words); };
  EXPECT_EQ(error({"snd", "x"}), "no command 'snd'; did you mean 'send'?; see 'prog --help'");
  EXPECT_EQ(error({"session", "sohw"}), "no command 'sohw'; did you mean 'show'?; see 'prog session --help'");
  EXPECT_EQ(error({"frobnicate"}), "no command 'frobnicate'; see 'prog --help'");
  EXPECT_EQ(error({"send", "--quite", "a"}),
            "no option '--quite'; did you mean '--quiet'?; see 'prog send --help'");
  EXPECT_EQ(error({"send", "-z"}),
            "no option '-z'; a name that begins with - stands behind --; see 'prog send --help'");
  EXPECT_EQ(error({"send", "-4.txt"}),
            "no option '-4.txt'; a name that begins with - stands behind --; see 'prog send --help'");
  EXPECT_EQ(error({"send", "a", "--lanes"}), "--lanes needs a value; see 'prog send --help'");
  EXPECT_EQ(error({"send", "a", "--quiet=false"}), "--quiet takes no value; see 'prog send --help'");
  EXPECT_EQ(error({"session", "show"}), "ID is required; see 'prog session show --help'")
      << "as --help has it";
  EXPECT_EQ(error({"session", "show", "a", "b"}),
            "'b' is one argument too many; see 'prog session show --help'");
  EXPECT_EQ(error({"send"}).find("SRC... is required; "), 0U);
  EXPECT_NE(error({"send", "a", "--kind", "[md5]"}).find("[md5]"), std::string::npos);
  EXPECT_EQ(error({"send", "a", "--kind", "[md5]"}).find('\n'), std::string::npos);
}

TEST(Arguments, HelpIsPrintedAndNothingElseHappens) {
  Program program;
  EXPECT_EQ(program.parse({"send", "--help"}), "");
  EXPECT_TRUE(program.asked);
  EXPECT_NE(program.out.str().find("--exclude"), std::string::npos);
  Program front;
  EXPECT_EQ(front.parse({"--help", "session", "show"}), "");
  EXPECT_NE(front.out.str().find("id"), std::string::npos);
}

TEST(Arguments, WhatAnOptionTakesIsSaidInWords) {
  Program program;
  CLI::App& send = *program.app.get_subcommand("send");
  send.add_option("--listen")->type_name("HOST:PORT|none");
  EXPECT_EQ(value_words(*send.get_option("--lanes")).allowed(), "1 to 4096");
  EXPECT_EQ(value_words(*send.get_option("--time")->type_name("S")).allowed(), "0.1 to 99.5");
  EXPECT_EQ(value_words(*send.get_option("--time")).name, "S");
  EXPECT_EQ(value_words(*send.get_option("--kind")).allowed(), "crc64 or crc32c");
  EXPECT_EQ(value_words(*send.get_option("--listen")).name, "HOST:PORT|none");
  EXPECT_EQ(value_words(*send.get_option("--listen")).allowed(), "");
}

TEST(Arguments, WordsAreOfferedThatAValueMayBe) {
  CLI::App app;
  const auto offered = [&app](const char* name, const char* type) {
    return value_words(*app.add_option(name)->type_name(type)).offered();
  };
  EXPECT_EQ(offered("--then", "keep|remove|move:DIR"), (Words{"keep", "remove"}));
  EXPECT_EQ(offered("--listen", "HOST:PORT|none"), Words{"none"});
  for (const char* const type : {"FILE", "NAME|FINGERPRINT", "NAME=PATH[:r|w|rw]", ""})
    EXPECT_EQ(offered(("--" + std::to_string(app.get_options().size())).c_str(), type), Words{}) << type;
  std::string level;
  CLI::Option* const told_of =
      app.add_option("--level", level)->type_name("LEVEL")->check(told({"off", "info"}));
  EXPECT_EQ(value_words(*told_of).offered(), (Words{"off", "info"}));
  EXPECT_EQ(value_words(*told_of).allowed(), "off or info");
  std::ostringstream out;
  ASSERT_TRUE(parse(app, {"--level", "session=info"}, out)) << "who reads it judges";
  EXPECT_EQ(level, "session=info");
}

TEST(Arguments, OneThatIsNearIsMeant) {
  const Words known = {"send", "session", "get", "rm", "ls", "--overwrite"};
  EXPECT_EQ(nearest("sned", known), "send");
  EXPECT_EQ(nearest("sessoin", known), "session");
  EXPECT_EQ(nearest("--overwite", known), "--overwrite");
  EXPECT_EQ(nearest("x", known), "");
  EXPECT_EQ(nearest("upload", known), "");
}

}  // namespace
}  // namespace sluice::arguments
