// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/daemon/daemon.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <vector>

#include "dataplane/base/log.h"

namespace sluice::daemon {
namespace {

Result<std::optional<Options>> parsed(std::vector<const char*> words) {
  words.insert(words.begin(), "sluice-thing");
  return parse({"sluice-thing", "A thing."}, static_cast<int>(words.size()), words.data());
}

TEST(Daemon, TakesItsNodeFromTheOptionElseTheEnvironmentElseTheUsualPlace) {
  ::unsetenv("SLUICE_NODE");
  EXPECT_EQ((*parsed({}))->node, "/etc/sluice");
  EXPECT_EQ((*parsed({}))->log_level, "");
  EXPECT_EQ((*parsed({}))->log_level_or("warn"), "warn");
  ::setenv("SLUICE_NODE", "/srv/a", 1);
  EXPECT_EQ((*parsed({}))->node, "/srv/a");
  EXPECT_EQ((*parsed({"--node", "/srv/b/", "--log-level", "debug"}))->node, "/srv/b");
  EXPECT_EQ((*parsed({"--node", "/srv/b", "--log-level", "debug"}))->log_level, "debug");
  EXPECT_EQ((*parsed({"--log-level", "debug"}))->log_level_or("warn"), "debug");
  ::unsetenv("SLUICE_NODE");
  EXPECT_TRUE((*parsed({"--node", "here"}))->node.is_absolute());
}

TEST(Daemon, RefusesWhatItDoesNotKnow) {
  for (const auto& words : {std::vector<const char*>{"--log-level", "loud"}, {"--nod", "x"}, {"x"}}) {
    const auto options = parsed(words);
    ASSERT_FALSE(options);
    EXPECT_EQ(options.error().code, ErrorCode::kUsage);
    EXPECT_NE(options.error().message.find("sluice-thing --help"), std::string::npos);
  }
}

TEST(Daemon, LogsOneLineWhateverIsInAMessage) {
  ::testing::internal::CaptureStderr();
  const auto before = spdlog::default_logger();
  start_log("sluice-thing", std::array{"thing"}, [](const char*) { return "info"; });
  spdlog::debug("too little");
  spdlog::info("a name\nwith \x1b[31mcolour");
  spdlog::set_default_logger(before);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(log.find('\n'), log.size() - 1) << log;
  EXPECT_NE(log.find(" info a name"), std::string::npos) << log;
  EXPECT_EQ(log.find('\x1b'), std::string::npos) << log;
}

TEST(Daemon, EachComponentHasALevelThatChangesWhileItRuns) {
  ::testing::internal::CaptureStderr();
  const auto before = spdlog::default_logger();
  start_log("sluice-thing", log::kOfControl, [](const char* component) {
    return std::string_view(component) == log::kBoard ? "error" : "info";
  });
  log::set_level(log::kPeer, *log::level_of("debug"));
  log::of(log::kPeer)->debug("of a peer");
  log::of(log::kSession)->debug("of a session");
  log::set_level(log::kPeer, *log::level_of("off"));
  log::of(log::kPeer)->critical("nothing more");
  log::of("unknown")->info("of nobody");
  EXPECT_STREQ(log::level_name(log::level(log::kPeer)), "off");
  EXPECT_STREQ(log::level_name(log::level(log::kControl)), "info");
  EXPECT_STREQ(log::level_name(log::level(log::kBoard)), "error");
  EXPECT_FALSE(log::level_of("loud"));
  spdlog::set_default_logger(before);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find(" debug of a peer\n"), std::string::npos) << log;
  EXPECT_NE(log.find(" info of nobody\n"), std::string::npos) << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 2) << log;
}

}  // namespace
}  // namespace sluice::daemon
