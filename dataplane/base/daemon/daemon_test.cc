// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/daemon/daemon.h"

#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <vector>

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
  start_log("sluice-thing", "info");
  spdlog::debug("too little");
  spdlog::info("a name\nwith \x1b[31mcolour");
  spdlog::set_default_logger(before);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(log.find('\n'), log.size() - 1) << log;
  EXPECT_NE(log.find(" info a name"), std::string::npos) << log;
  EXPECT_EQ(log.find('\x1b'), std::string::npos) << log;
}

}  // namespace
}  // namespace sluice::daemon
