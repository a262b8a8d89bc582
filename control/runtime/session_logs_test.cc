// Which network logs are kept: those of sessions that go on, and of the last that have ended.
// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/session_logs.h"

#include <gtest/gtest.h>

namespace sluice::runtime {
namespace {

TEST(SessionLogs, TheLastThatEndedAreKept) {
  SessionLogs logs;
  logs.begin("first", board::LogLevel::kPackets);
  EXPECT_EQ(logs.of("first")->level(), board::LogLevel::kPackets);
  EXPECT_EQ(logs.of("of a peer")->level(), board::LogLevel::kEvents);
  EXPECT_EQ(logs.find("nobody"), nullptr);
  logs.ended("first");
  logs.ended("first");
  for (size_t n = 1; n < SessionLogs::kEndedKept; ++n) logs.ended(std::to_string(n));
  EXPECT_NE(logs.find("first"), nullptr);
  logs.ended("one more");
  EXPECT_EQ(logs.find("first"), nullptr);
  EXPECT_NE(logs.find("of a peer"), nullptr) << "it goes on";
}

TEST(SessionLogs, OneThatIsBegunAnewIsNotForgottenWithThoseThatEnded) {
  SessionLogs logs;
  (void)logs.of("again");
  logs.ended("again");
  const auto log = logs.of("again");
  for (size_t n = 0; n <= SessionLogs::kEndedKept; ++n) logs.ended(std::to_string(n));
  EXPECT_EQ(logs.find("again"), log.get());
}

}  // namespace
}  // namespace sluice::runtime
