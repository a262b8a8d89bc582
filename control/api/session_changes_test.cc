// SPDX-License-Identifier: Apache-2.0
#include "control/api/session_changes.h"

#include <gtest/gtest.h>

#include "control/api/fake_sessions_for_test.h"

namespace sluice::service {
namespace {

using Events = std::vector<api::SessionEvent>;

class Changes : public testing::Test {
 protected:
  api::Session& add(const std::string& id) {
    api::Session& session = sessions_.sessions[id];
    session.set_id(id);
    session.set_state(api::Session::TRANSFERRING);
    return session;
  }
  static Events look(SessionChanges& changes, const FakeSessions& sessions) {
    const Result<Events> events = changes.look(sessions, 5);
    EXPECT_TRUE(events);
    return events ? *events : Events();
  }
  static std::vector<std::string> names(const Events& events) {
    std::vector<std::string> names;
    for (const api::SessionEvent& event : events) names.push_back(event.event());
    return names;
  }

  FakeSessions sessions_;
};

using Names = std::vector<std::string>;

TEST_F(Changes, BeginWithHowEachStandsAndTellWhatIsNew) {
  add("s1");
  SessionChanges changes("");
  EXPECT_EQ(names(look(changes, sessions_)), Names({"state"}));
  EXPECT_TRUE(look(changes, sessions_).empty());
  add("s2");
  const Events events = look(changes, sessions_);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].session(), "s2");
  EXPECT_EQ(events[0].unix_ns(), 5);
  EXPECT_EQ(events[0].state(), "transferring");
}

TEST_F(Changes, ProgressIsToldOnceASecondToWhoAskedForIt) {
  api::Session& session = add("s1");
  SessionChanges with("", true), without("");
  look(with, sessions_);
  look(without, sessions_);
  size_t told = 0;
  for (uint64_t looks = 1; looks <= 3 * SessionChanges::kLooksForProgress; ++looks) {
    session.set_bytes_done(looks);
    session.set_rtt_us(7);
    for (const api::SessionEvent& event : look(with, sessions_)) {
      EXPECT_EQ(event.event(), "progress");
      EXPECT_EQ(event.rtt_us(), 7);
      ++told;
    }
    EXPECT_TRUE(look(without, sessions_).empty());
  }
  EXPECT_EQ(told, 3U);
  session.set_state(api::Session::WAITING);
  for (uint64_t looks = 0; looks <= SessionChanges::kLooksForProgress; ++looks)
    look(with, sessions_);  // the last bytes are told
  for (uint64_t looks = 0; looks <= SessionChanges::kLooksForProgress; ++looks)
    EXPECT_TRUE(look(with, sessions_).empty()) << "nothing moves, and there is no figure";
}

TEST_F(Changes, AnEndThatLacksNamesIsPartial) {
  api::Session& session = add("s1");
  SessionChanges changes("s1");
  look(changes, sessions_);
  session.set_state(api::Session::SUCCEEDED);
  session.set_error_code(static_cast<uint32_t>(ErrorCode::kPartial));
  const Events events = look(changes, sessions_);
  ASSERT_EQ(names(events), Names({"state", "error"}));
  EXPECT_EQ(events[0].state(), "partial");
  EXPECT_TRUE(changes.over());
}

TEST_F(Changes, EachKindIsToldOnce) {
  api::Session& session = add("s1");
  SessionChanges changes("s1");
  look(changes, sessions_);
  session.set_waiting_for("source disk");
  EXPECT_EQ(names(look(changes, sessions_)), Names({"waiting"}));
  session.set_waiting_for("");
  EXPECT_EQ(names(look(changes, sessions_)), Names({"waiting"})) << "it waits no more";
  session.set_rate_limit_bps(7);
  EXPECT_EQ(names(look(changes, sessions_)), Names({"rate"}));
  session.mutable_bottleneck()->set_cause("limit");
  EXPECT_EQ(names(look(changes, sessions_)), Names({"bottleneck"}));
  session.mutable_bottleneck()->set_share(0.5);
  EXPECT_TRUE(look(changes, sessions_).empty()) << "the same cause";
  session.set_error_code(3);
  session.set_error("no");
  EXPECT_EQ(names(look(changes, sessions_)), Names({"error"}));
}

TEST_F(Changes, FilesAreToldWhenTheyAreDoneOrWillNotBe) {
  api::Session& session = add("s1");
  for (const char* const name : {"a", "b"}) session.add_files()->set_source(name);
  SessionChanges changes("s1");
  look(changes, sessions_);
  session.mutable_files(0)->set_done(true);
  Events events = look(changes, sessions_);
  ASSERT_EQ(names(events), Names({"file"}));
  EXPECT_EQ(events[0].file().source(), "a");
  EXPECT_FALSE(changes.over());
  session.set_state(api::Session::FAILED);
  events = look(changes, sessions_);
  ASSERT_EQ(names(events), Names({"state", "file"}));
  EXPECT_FALSE(events[1].file().done());
  EXPECT_TRUE(changes.over());
}

TEST_F(Changes, OfAllSessionsTheEndIsToldAlsoOfOneThatWasNeverSeen) {
  add("s1").add_files()->set_done(true);
  SessionChanges changes("");
  look(changes, sessions_);
  sessions_.sessions["s1"].set_state(api::Session::SUCCEEDED);
  add("s2").set_state(api::Session::FAILED);
  const Events events = look(changes, sessions_);
  EXPECT_EQ(names(events), Names({"state", "file", "state"}));
  EXPECT_TRUE(look(changes, sessions_).empty());
  EXPECT_FALSE(changes.over());
}

TEST_F(Changes, WhatHadEndedBeforeIsNoNews) {
  add("s1").set_state(api::Session::FAILED);
  SessionChanges changes("");
  EXPECT_TRUE(look(changes, sessions_).empty());
}

TEST_F(Changes, MoreThanAReaderCanTakeAreCounted) {
  api::Session& session = add("s1");
  for (size_t i = 0; i < SessionChanges::kEventsMax + 10; ++i) session.add_files()->set_done(true);
  SessionChanges changes("s1");
  const Events events = look(changes, sessions_);
  ASSERT_EQ(events.size(), SessionChanges::kEventsMax + 1);
  EXPECT_EQ(events.back().event(), "dropped");
  EXPECT_EQ(events.back().dropped(), 11U);
  EXPECT_TRUE(look(changes, sessions_).empty());
}

TEST_F(Changes, OfNoSuchSessionAreAnError) {
  SessionChanges changes("nobody");
  EXPECT_EQ(changes.look(sessions_, 1).error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace sluice::service
