// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/session_list.h"

#include <gtest/gtest.h>

#include <sstream>

#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

constexpr int64_t kNowNs = 1'795'348'800'000'000'000;  // 2026-11-22T12:00:00Z
constexpr int64_t kHourNs = 3'600'000'000'000;

api::Session* add(api::ListSessionsReply* reply, const std::string& id, api::Session::State state,
                  int64_t hours_ago = 1) {
  api::Session* const session = reply->add_sessions();
  session->set_id(id);
  session->set_state(state);
  session->set_direction("send");
  session->set_peer("beta");
  session->set_started_unix_ns(kNowNs - hours_ago * kHourNs);
  session->set_bytes_total(1ULL << 30);
  session->add_files()->set_source(
      "/srv/data/a-run-with-a-name-that-takes-room/events-of-the-first-night.h5");
  return session;
}

api::ListSessionsReply some() {
  api::ListSessionsReply reply;
  add(&reply, "aaaaaaaa00000000", api::Session::SUCCEEDED, 50)->set_bytes_done(1ULL << 30);
  api::Session* const partial = add(&reply, "bbbbbbbb00000000", api::Session::SUCCEEDED, 20);
  partial->set_error_code(static_cast<uint32_t>(ErrorCode::kPartial));
  partial->set_error(
      "1 of 3 names did not arrive, all others did: 'sluice session show' says why of each; mend that, and "
      "send "
      "the same again");
  api::Session* const served = add(&reply, "cccccccc00000000", api::Session::TRANSFERRING);
  served->set_direction("serve-receive");
  served->set_peer("a-peer-with-a-very-long-name-indeed");
  served->set_bytes_done(123);
  served->set_listing(true);
  api::Session* const waiting = add(&reply, "dddddddd00000000", api::Session::WAITING, 0);
  waiting->set_waiting_for("node beta");
  return reply;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::vector<std::string> ids(const ListFilter& filter) {
  std::vector<std::string> out;
  const api::ListSessionsReply kept = filtered(some(), filter);
  for (const api::Session& session : kept.sessions()) out.push_back(session.id().substr(0, 1));
  return out;
}
using Ids = std::vector<std::string>;

TEST(SessionTable, HasAHeadAndFitsTheTerminal) {
  for (const size_t columns : {80, 100, 120, 200}) {
    const std::vector<std::string> lines = lines_of(session_table(some(), columns, true, kNowNs));
    ASSERT_GE(lines.size(), 5U);
    EXPECT_EQ(lines[0].find("ID "), 0U) << lines[0];
    for (const char* const head : {"BEGAN", "STATE", "PEER", "DONE", "SIZE", "FILES"})
      EXPECT_NE(lines[0].find(head), std::string::npos) << head;
    for (const std::string& line : lines) EXPECT_LE(display_width(line), columns) << line;
  }
}

TEST(SessionTable, SaysWhenHowMuchAndWithWhom) {
  const std::string text = session_table(some(), 80, true, kNowNs);
  for (const char* const part : {"Nov 20 ", "Nov 22 ", "1.00 GiB", "100 %", "to beta", "from ", "night.h5"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

TEST(SessionTable, WhatLacksNamesIsPartialAndTheReasonStandsBeneath) {
  const std::vector<std::string> lines = lines_of(session_table(some(), 80, true, kNowNs));
  EXPECT_NE(lines[1].find("succeeded"), std::string::npos);
  EXPECT_NE(lines[2].find("partial"), std::string::npos) << lines[2];
  EXPECT_EQ(lines[2].find("succeeded"), std::string::npos) << lines[2];
  EXPECT_EQ(lines[3].find("          1 of 3 names did not arrive"), 0U) << lines[3];
  EXPECT_NE(lines.back().find("waiting for node beta"), std::string::npos) << lines.back();
}

TEST(SessionTable, AProgramGetsNamesWhole) {
  const std::string text = session_table(some(), 80, false, kNowNs);
  EXPECT_NE(text.find("events-of-the-first-night.h5\n"), std::string::npos) << text;
}

TEST(SessionFilter, TakesWhatFitsAllThatIsAskedFor) {
  EXPECT_EQ(ids({}), (Ids{"a", "b", "c", "d"}));
  EXPECT_EQ(ids({.states = {"succeeded"}, .peer = {}, .since_unix_ns = {}}), (Ids{"a"}));
  EXPECT_EQ(ids({.states = {"partial", "waiting"}, .peer = {}, .since_unix_ns = {}}), (Ids{"b", "d"}));
  EXPECT_EQ(ids({.states = {"ended"}, .peer = {}, .since_unix_ns = {}}), (Ids{"a", "b"}));
  EXPECT_EQ(ids({.states = {"active"}, .peer = {}, .since_unix_ns = {}}), (Ids{"c", "d"}));
  EXPECT_EQ(ids({.states = {}, .peer = "beta", .since_unix_ns = {}}), (Ids{"a", "b", "d"}));
  EXPECT_EQ(ids({.states = {}, .peer = {}, .since_unix_ns = kNowNs - 24 * kHourNs}), (Ids{"b", "c", "d"}));
  EXPECT_EQ(ids({.states = {"ended"}, .peer = "beta", .since_unix_ns = kNowNs - 24 * kHourNs}), (Ids{"b"}));
}

TEST(SessionFilter, AWordThatIsNoStateIsRefusedWithThoseThatAre) {
  EXPECT_TRUE(check_states({"partial", "active", "ended", "paused", "queued"}));
  const Status refused = check_states({"done"});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  for (const char* const word : {"'done'", "partial", "succeeded", "active"})
    EXPECT_NE(refused.error().message.find(word), std::string::npos) << refused.error().message;
  EXPECT_FALSE(check_states({"state_unspecified"}));
}

TEST(SessionList, OfSeveralSourcesTheFirstIsNamedAndEachIsFound) {
  api::ListSessionsReply reply;
  api::Session* const session = add(&reply, "aaaaaaaa00000000", api::Session::SUCCEEDED);
  session->set_direction("get");
  session->set_peer("alpha, beta, gamma");
  EXPECT_NE(session_table(reply, 80, true, kNowNs).find("from alpha +2 "), std::string::npos);
  for (const char* peer : {"alpha", "gamma"}) EXPECT_EQ(filtered(reply, {.peer = peer}).sessions_size(), 1);
  for (const char* peer : {"alp", "alpha, beta"})
    EXPECT_EQ(filtered(reply, {.peer = peer}).sessions_size(), 0);
}

}  // namespace
}  // namespace sluice::cli
