// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/commands.h"

#include <gtest/gtest.h>

namespace sluice::emulator {
namespace {

TEST(SettingsFile, BothComesFirstThenEachDirection) {
  const auto settings = settings_of(Json::parse(
      R"({"b_to_a": {"loss": {"probability": 0.5}}, "both": {"loss": {"probability": 0.1, "every_nth": 4}}})"));
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ((*settings)[0].loss.probability, 0.1);
  EXPECT_EQ((*settings)[1].loss.probability, 0.5);
  EXPECT_EQ((*settings)[1].loss.every_nth, 4U);
}

TEST(SettingsFile, NamesWhatIsWrong) {
  const auto error = [](const char* text) {
    const auto settings = settings_of(Json::parse(text));
    return settings ? std::string("accepted") : settings.error().message;
  };
  EXPECT_EQ(error(R"({"a_to_b": {"loss": {"probability": 2}}})"),
            "a_to_b.loss.probability: expected a number from 0 to 1");
  EXPECT_NE(error(R"({"a_to_c": {}})").find("a_to_c"), std::string::npos);
  EXPECT_EQ(error("[]"), "expected an object");
}

// An engine that does not run yet would wait for its thread; its end is as good as its beginning.
class CommandsTest : public testing::Test {
 protected:
  CommandsTest() {
    engine_.stop();
    engine_.run();
  }
  Json ask(const char* line) { return Json::parse(commands_.answer(line)); }

  Engine engine_{{}, {}};
  Commands commands_{engine_, [] { return Json{{"a", 1}}; }};
};

TEST_F(CommandsTest, SetChangesTheNamedDirectionAndGetTells) {
  EXPECT_EQ(ask(R"({"command": "set", "direction": "b_to_a", "settings": {"loss": {"every_nth": 5}}})"),
            Json::parse(R"({"ok": true})"));
  EXPECT_TRUE(ask(R"({"command": "set", "settings": {"delay": {"fixed_us": 3}}})")["ok"]);
  const Json got = ask(R"({"command": "get"})")["settings"];
  EXPECT_EQ(got["a_to_b"]["loss"]["every_nth"], 0);
  EXPECT_EQ(got["b_to_a"]["loss"]["every_nth"], 5);
  EXPECT_EQ(got["a_to_b"]["delay"]["fixed_us"], 3.0);
  EXPECT_EQ(got["b_to_a"]["delay"]["fixed_us"], 3.0);
}

TEST_F(CommandsTest, AWrongSettingChangesNothing) {
  const Json before = ask(R"({"command": "get"})");
  const Json reply =
      ask(R"({"command": "set", "settings": {"loss": {"every_nth": 5}, "delay": {"fixed": 3}}})");
  EXPECT_EQ(reply["ok"], false);
  EXPECT_EQ(reply["error"], "delay.fixed: is no setting: see docs/WIRE-EMULATOR.md");
  EXPECT_EQ(ask(R"({"command": "get"})"), before);
}

TEST_F(CommandsTest, SaysWhatIsWrongWithARequest) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "expected one JSON object"},
      {"[1]", "expected one JSON object"},
      {"{\"command\": \xff}", "expected one JSON object"},
      {"{}", "command: expected"},
      {R"({"command": 5})", "command: expected"},
      {R"({"command": "sett"})", "command: expected"},
      {R"({"command": "get", "direction": "both"})", "direction: is no key"},
      {R"({"command": "set"})", "settings: is missing"},
      {R"({"command": "set", "direction": "up", "settings": {}})", "direction: expected"},
      {R"({"command": "blackhole"})", "seconds: expected"},
      {R"({"command": "blackhole", "seconds": -1})", "seconds: expected"},
  };
  for (const auto& [line, expected] : cases) {
    const Json reply = ask(line);
    EXPECT_EQ(reply["ok"], false) << line;
    EXPECT_NE(reply["error"].get<std::string>().find(expected), std::string::npos) << reply;
  }
}

}  // namespace
}  // namespace sluice::emulator
