// The page of `session watch` and the chart of `session show --plot`.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "tools/cli/chart.h"
#include "tools/cli/format.h"
#include "tools/cli/terminal.h"
#include "tools/cli/watch_page.h"

namespace sluice::cli {
namespace {

constexpr int64_t kASecondNs = 1'000'000'000;

api::Session session_with(int lanes, int points = 20) {
  api::Session session;
  session.set_id("0123456789abcdef0123456789abcdef");
  session.set_state(api::Session::TRANSFERRING);
  session.set_direction("send");
  session.set_peer("beta");
  session.set_bytes_total(1000);
  session.set_bytes_done(450);
  session.set_rate_bps(8e9);
  session.mutable_bottleneck()->set_cause("limit");
  session.mutable_bottleneck()->set_share(0.9);
  session.mutable_bottleneck()->add_evidence("paced at 8.00 Gbit/s");
  auto* file = session.add_files();
  file->set_source("/data/run42.h5");
  for (int i = 0; i < points; ++i) {
    api::RatePoint* const point = session.add_history();
    point->set_seconds(0.5);
    point->set_rate_bps(i < points / 2 ? 4e9 : 8e9);
  }
  for (int i = 0; i < lanes; ++i) session.add_lane_progress()->set_lane(static_cast<uint32_t>(i));
  return session;
}

bool shows(const std::vector<std::string>& lines, std::string_view text) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(text) != std::string::npos; });
}

size_t marks(const std::vector<std::string>& lines, char mark) {
  size_t sum = 0;
  for (size_t i = 0; i + 1 < lines.size(); ++i)
    sum += static_cast<size_t>(std::count(lines[i].begin(), lines[i].end(), mark));
  return sum;
}

// 47 columns for 10 s, of which the first half had half the rate.
TEST(Chart, IsALineThatJumpsWhereTheRateDoes) {
  const std::vector<std::string> lines = rate_chart(session_with(1), 60, 4);
  ASSERT_EQ(lines.size(), 5U);
  EXPECT_EQ(lines[0].find("8.00 Gbit/s |"), 0U) << lines[0];
  EXPECT_EQ(std::count(lines[0].begin(), lines[0].end(), '#'), 23) << lines[0];
  EXPECT_NE(lines[1].find('#'), std::string::npos) << "the rise";
  EXPECT_EQ(std::count(lines[2].begin(), lines[2].end(), '#'), 23) << lines[2];
  EXPECT_EQ(lines[3].find('#'), std::string::npos) << "no wall beneath it";
  EXPECT_NE(lines[4].find("0:10"), std::string::npos) << lines[4];
}

api::Session steady(double change, uint64_t limit_bps = 0) {
  api::Session session;
  for (int i = 0; i < 100; ++i) {
    api::RatePoint* const point = session.add_history();
    point->set_seconds(0.5);
    point->set_rate_bps(i < 3 ? 1e9 : 8e9 * (1 + (i % 2 == 0 ? change : -change)));
  }
  session.set_rate_limit_bps(limit_bps);
  return session;
}

TEST(Chart, ASteadyRateIsOneLineAndNoWall) {
  for (const double change : {0.0, 0.005, 0.05}) {
    const std::vector<std::string> lines = rate_chart(steady(change), 80, 8);
    EXPECT_LE(marks(lines, '#'), 67 * 3U) << change;
    EXPECT_EQ(lines[7].find("1.00"), std::string::npos) << "it does not begin at what the start had";
    EXPECT_NE(lines[7].find('v'), std::string::npos) << "what is beneath the scale is no figure of it";
    EXPECT_NE(lines[8].find("v below"), std::string::npos) << lines[8];
  }
}

TEST(Chart, TheLimitIsALineWhereItIsNear) {
  const std::vector<std::string> near = rate_chart(steady(0.01, 10'000'000'000), 80, 8);
  EXPECT_EQ(near[0].find("10.0 Gbit/s |-----"), 0U) << near[0];
  EXPECT_NE(near[8].find("- limit"), std::string::npos) << near[8];
  const std::vector<std::string> far = rate_chart(steady(0.01, 100'000'000'000), 80, 8);
  EXPECT_EQ(marks(far, '-'), 0U);
  EXPECT_EQ(far[8].find("limit"), std::string::npos);
  const std::vector<std::string> reached = rate_chart(steady(0, 8'000'000'000), 80, 8);
  EXPECT_GT(marks(reached, '#'), 60U) << "the rate is drawn over it";
}

TEST(Chart, IsNoneWhereThereIsNothingToDrawOrNoRoom) {
  EXPECT_TRUE(rate_chart(api::Session(), 80, 4).empty());
  EXPECT_TRUE(rate_chart(session_with(1), kChartColumnsMin - 1, 4).empty());
  EXPECT_TRUE(rate_chart(session_with(1), 80, 0).empty());
  api::Session still;
  still.add_history()->set_seconds(3);
  EXPECT_TRUE(rate_chart(still, 80, 4).empty());
}

TEST(WatchPage, FitsEveryTerminalAndTellsHowToLeave) {
  WatchPage page;
  page.session(session_with(128), 0);
  for (size_t columns = 1; columns <= 200; columns += 7) {
    for (size_t rows = 1; rows <= 60; rows += 3) {
      const std::vector<std::string> lines = page.lines(columns, rows);
      ASSERT_LE(lines.size(), rows);
      for (const std::string& line : lines) ASSERT_LE(display_width(line), columns) << line;
      if (columns >= kPageColumnsMin && rows >= kPageRowsMin) {
        EXPECT_TRUE(shows(lines, "q quits")) << columns << " x " << rows;
        EXPECT_TRUE(shows(lines, "01234567")) << columns << " x " << rows;
      }
    }
  }
}

TEST(WatchPage, HasAllOfItAtEightyColumns) {
  WatchPage page;
  api::Session session = session_with(2);
  session.set_waiting_for("its turn");
  session.set_queue_place(3);
  session.set_queue_length(5);
  session.set_rtt_us(1200);
  page.session(session, 0);
  page.counters({}, 0);
  const std::vector<std::string> lines = page.lines(80, 30);
  for (const char* const text :
       {"send to beta", "run42.h5", "limit, 90 % of the time", "paced at 8.00 Gbit/s", "place 3 of 5",
        "its turn", "1.20 ms", "ETA", "credit", "#"}) {
    EXPECT_TRUE(shows(lines, text)) << text;
  }
}

TEST(WatchPage, IsWholeAtFortyColumns) {
  WatchPage page;
  api::Session session = session_with(2);
  session.mutable_bottleneck()->set_cause("destination disk");
  session.mutable_bottleneck()->add_evidence("the destination says that its disk keeps up with 3.85 Gbit/s");
  session.set_rate_limit_bps(10'000'000'000);
  session.set_rate_state("at the rate");
  session.set_rtt_us(1200);
  page.session(session, 0);
  page.counters({}, kASecondNs);
  page.counters({}, 2 * kASecondNs);
  std::string all;
  for (const std::string& line : page.lines(40, 40)) {
    EXPECT_FALSE(line.ends_with(">")) << "cut: " << line;
    all += " " + line.substr(std::min(line.find_first_not_of(' '), line.size()));
  }
  for (const char* const text :
       {"to beta  transferring", "45 %", "destination disk, 90 %", "3.85 Gbit/s", "10.0 Gbit/s", "loss 0 %",
        "writes/s", "CPUs busy", "lane", "#", "q quits"}) {
    EXPECT_NE(all.find(text), std::string::npos) << text << " in" << all;
  }
  EXPECT_TRUE(shows(page.lines(40, 24), "#")) << "text is cut before the picture goes";
}

TEST(WatchPage, WhatWaitsIsHeldByWhatItWaitsFor) {
  for (const char* const waiting_for : {"", "its turn"}) {
    WatchPage page;
    api::Session session = session_with(1);
    session.clear_bottleneck();
    session.set_waiting_for(waiting_for);
    page.session(session, 0);
    EXPECT_EQ(shows(page.lines(80, 30), "bottleneck"), *waiting_for == '\0') << waiting_for;
  }
}

TEST(WatchPage, ALaneHasTheRateAndTheLossBetweenTwoLooks) {
  WatchPage page;
  api::Session session = session_with(1);
  api::LaneProgress* const lane = session.mutable_lane_progress(0);
  lane->set_bytes(1'000'000);
  page.session(session, kASecondNs);
  EXPECT_TRUE(shows(page.lines(80, 30), "lane"));
  lane->set_bytes(126'000'000);
  lane->set_chunks(1000);
  lane->set_lost(20);
  page.session(session, 2 * kASecondNs);
  EXPECT_TRUE(shows(page.lines(80, 30), "1.00 Gbit/s"));
  EXPECT_TRUE(shows(page.lines(80, 30), "2.00 %"));
}

TEST(WatchPage, WhatANameHidesIsShownAsText) {
  WatchPage page;
  api::Session session = session_with(1);
  session.mutable_files(0)->set_source("/data/\x1b[2J\x07run");
  session.set_peer("be\nta");
  page.session(session, 0);
  for (const std::string& line : page.lines(80, 30)) {
    EXPECT_TRUE(std::none_of(line.begin(), line.end(), [](char c) {
      return static_cast<unsigned char>(c) < 0x20;
    })) << line;
  }
}

TEST(WatchPage, TheDiskIsThatOfTheTimeBetweenTwoLooks) {
  WatchPage page;
  page.session(session_with(1), 0);
  api::CountersReply counters;
  const auto set = [&](const char* name, uint64_t value) {
    auto* counter = counters.add_counters();
    counter->set_name(name);
    counter->set_value(value);
  };
  page.counters(counters, kASecondNs);
  set("disk_writes", 20);
  set("disk_write_ns", 200'000'000);
  set("busy_ns", 500'000'000);
  page.counters(counters, 2 * kASecondNs);
  EXPECT_TRUE(shows(page.lines(80, 30), "20 writes/s of 10.0 ms"));
}

TEST(Terminal, OneOfNoKindGetsNoEscapes) {
  for (const char* kind : {"", "dumb", "unknown"}) EXPECT_FALSE(knows_escapes(kind)) << kind;
  EXPECT_FALSE(knows_escapes(nullptr));
  EXPECT_TRUE(knows_escapes("xterm-256color"));
}

}  // namespace
}  // namespace sluice::cli
