// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/progress.h"

#include <gtest/gtest.h>

#include "control/proto/session_state.h"
#include "dataplane/base/error.h"
#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

api::Session running() {
  api::Session session;
  session.set_id("4f2a");
  session.set_state(api::Session::TRANSFERRING);
  api::FileProgress* file = session.add_files();
  file->set_source("/data/run 7/events.bin");
  session.set_bytes_total(1000ULL << 20);
  session.set_bytes_done(450ULL << 20);
  session.set_rate_bps(8e9);
  session.set_chunks(9900);
  session.set_retransmits(100);
  session.set_lost(1);
  return session;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(ProgressLine, SaysNameBarPercentBytesRateEtaLossAndRetransmits) {
  const std::string line = progress_line(running(), 200);
  EXPECT_EQ(line.find("events.bin  [============>"), 0U) << line;
  for (const char* part :
       {"45 %", "450 MiB of 1000 MiB", "8.00 Gbit/s", "ETA 0:01", "loss 0.01 %", "100 retransmits"}) {
    EXPECT_TRUE(has(line, part)) << part << " in " << line;
  }
}

TEST(ProgressLine, SaysWhyWhereTheNetworkLostNothing) {
  api::Session session = running();
  session.set_lost(0);
  session.set_no_room(100);
  const std::string line = progress_line(session, 200);
  EXPECT_TRUE(has(line, "loss 0 %  100 retransmits (100 had no room at the destination)")) << line;
}

TEST(ProgressLine, SaysNoRateBeforeThereIsAFigure) {
  api::Session session = running();
  session.clear_rate_bps();
  EXPECT_TRUE(has(progress_line(session, 200), "starting"));
  EXPECT_FALSE(has(progress_line(session, 200), "bit/s"));
  session.set_state(api::Session::QUEUED);
  EXPECT_FALSE(has(progress_line(session, 200), "starting"));
  EXPECT_FALSE(has(progress_text(session), "bit/s"));
  session.set_state(api::Session::TRANSFERRING);
  session.set_rate_bps(0);
  EXPECT_TRUE(has(progress_text(session), "0 bit/s")) << "that is a figure";
}

// Columns are those of the line, one less than the terminal's.
TEST(ProgressLine, SeveralFilesAreLegibleOnEveryTerminal) {
  api::Session session = running();
  session.add_files()->set_done(true);
  session.add_files();
  session.mutable_names()->set_done(1);
  EXPECT_EQ(progress_line(session, 119),
            "3 files (1 done)  [========>          ]  45 %  450 MiB of 1000 MiB  8.00 Gbit/s  ETA 0:01  "
            "loss 0.01 %  100 retransmits");
  EXPECT_EQ(progress_line(session, 79),
            "3 files (1 done)  [==>   ]  45 %  450 MiB of 1000 MiB  8.00 Gbit/s  ETA 0:01");
  EXPECT_EQ(progress_line(session, 69),
            "1/3 files  [==>   ]  45 %  450 MiB of 1000 MiB  8.00 Gbit/s  ETA 0:01");
  EXPECT_EQ(progress_line(session, 39), "1/3 files  45 %  8.00 Gbit/s  ETA 0:01");
  session.mutable_names()->set_total(1234567);
  session.mutable_names()->set_left_out(1);
  EXPECT_EQ(progress_line(session, 79).find("1/1234567 names  ["), 0U) << progress_line(session, 79);
  session.mutable_names()->set_total(3);
  session.set_listing(true);
  EXPECT_TRUE(has(progress_line(session, 39), "1/3+ files")) << progress_line(session, 39);
}

TEST(ProgressLine, KeepsTheNameRatherThanWhatIsMereDetail) {
  EXPECT_EQ(progress_line(running(), 79).find("events.bin  [=="), 0U) << progress_line(running(), 79);
}

TEST(ProgressLine, WhatMayHoldDirectoriesIsNotCalledFiles) {
  api::Session session = running();
  session.mutable_files(0)->set_names(16);
  session.mutable_names()->set_total(16);
  EXPECT_EQ(session_subject(session), "16 names (0 done)");
  session.mutable_names()->set_left_out(1);
  EXPECT_EQ(session_subject(session), "16 names (0 done, 1 left out)");
  EXPECT_EQ(short_subject(session), "0/16 names");
  EXPECT_EQ(summary_text(session).find("16 names, "), 0U) << summary_text(session);
}

TEST(StateName, OfASessionThatLacksNamesIsPartial) {
  api::Session session = running();
  session.set_state(api::Session::SUCCEEDED);
  EXPECT_EQ(api::state_name(session), "succeeded");
  session.set_error_code(static_cast<uint32_t>(ErrorCode::kPartial));
  EXPECT_EQ(api::state_name(session), "partial");
  EXPECT_TRUE(has(progress_text(session), "partial"));
  session.set_error_code(static_cast<uint32_t>(ErrorCode::kLate));
  EXPECT_EQ(api::state_name(session), "succeeded") << "all of it is there, if late";
}

TEST(ProgressLine, ShowsWhenItEndsRatherThanABar) {
  const std::string line = progress_line(running(), 60);
  EXPECT_TRUE(has(line, "ETA 0:01")) << line;
  EXPECT_FALSE(has(line, "[=")) << line;
}

TEST(ProgressLine, NeverExceedsItsWidthAndKeepsThePercentage) {
  api::Session session = running();
  session.mutable_files(0)->set_source("/data/ein sehr langer Name 数据数据数据数据数据数据数据.bin");
  for (size_t width = 1; width < 200; ++width) {
    const std::string line = progress_line(session, width);
    EXPECT_LE(display_width(line), width) << line;
    EXPECT_TRUE(width < 20 || has(line, "45 %")) << line;
  }
}

TEST(ProgressLine, NamesWhatTheSessionWaitsForFirst) {
  api::Session session = running();
  session.set_waiting_for("the peer's disk");
  EXPECT_TRUE(has(progress_line(session, 60), "waiting: the peer's disk"));
  EXPECT_TRUE(has(progress_text(session), "waiting: the peer's disk"));
}

TEST(ProgressLine, SeveralFilesAreCounted) {
  api::Session session = running();
  session.add_files()->set_done(true);
  session.mutable_names()->set_done(1);
  session.add_files();
  EXPECT_EQ(session_subject(session), "3 files (1 done)");
}

// Nobody knows how much of it there is: a percentage would go back.
TEST(ProgressLine, SaysSoFarWhileTheListOfFilesIsRead) {
  api::Session session = running();
  session.set_listing(true);
  session.add_files();
  for (const std::string& line : {progress_line(session, 200), progress_text(session)}) {
    EXPECT_TRUE(has(line, "450 MiB of 1000 MiB so far")) << line;
    EXPECT_TRUE(has(line, "2 files so far (0 done)")) << line;
    EXPECT_FALSE(has(line, "45 %")) << line;
    EXPECT_FALSE(has(line, "ETA")) << line;
    EXPECT_FALSE(has(line, "[=")) << line;
  }
  EXPECT_FALSE(eta_s(session));
  session.set_bytes_done(session.bytes_total());
  EXPECT_FALSE(eta_s(session)) << "all that was found is not all";
}

TEST(ProgressLine, FileNamesCannotSteerTheTerminal) {
  api::Session session = running();
  session.mutable_files(0)->set_source("/data/\x1b[2J\r\n");
  const std::string line = progress_line(session, 120) + progress_text(session) + summary_text(session);
  EXPECT_FALSE(has(line, "\x1b"));
  EXPECT_FALSE(has(line, "\r"));
}

TEST(Eta, IsUnknownWithoutARateAndZeroAtTheEnd) {
  api::Session session = running();
  session.set_rate_bps(0);
  EXPECT_FALSE(eta_s(session));
  session.set_goodput_bps(1e9);
  EXPECT_NEAR(*eta_s(session), 4.61, 0.01);
  session.set_bytes_done(session.bytes_total());
  EXPECT_EQ(*eta_s(session), 0);
}

TEST(Summary, GivesBytesSecondsGoodputRetransmitsAndBothDigests) {
  api::Session session = running();
  session.set_state(api::Session::SUCCEEDED);
  session.set_goodput_bps(7.5e9);
  session.set_data_elapsed_s(1.25);
  session.set_crc("crc64");
  session.mutable_files(0)->set_destination("/in/events.bin");
  session.mutable_files(0)->set_digest_source("00aa");
  session.mutable_files(0)->set_digest_destination("00aa");
  EXPECT_EQ(summary_text(session),
            "1 file, 1048576000 bytes (1000 MiB) in 1.250 s: 7.50 Gbit/s, 100 retransmits, loss 0.01 %\n"
            "/data/run 7/events.bin -> /in/events.bin: crc64 source 00aa destination 00aa identical\n");
  session.mutable_files(0)->set_digest_destination("00ab");
  EXPECT_TRUE(has(summary_text(session), "DIFFERENT"));
  session.mutable_files(0)->clear_digest_destination();
  EXPECT_TRUE(has(summary_text(session), "crc64 source 00aa destination - not stored"));
}

TEST(Summary, WhatIsPackedCountsAsNames) {
  api::Session session = running();
  session.set_state(api::Session::SUCCEEDED);
  session.mutable_files(0)->set_packed(true);
  EXPECT_EQ(summary_text(session).find("1 name, "), 0U) << "a directory without files";
}

TEST(Summary, NamesTheBottleneckWithItsEvidence) {
  api::Session session = running();
  session.set_state(api::Session::SUCCEEDED);
  session.mutable_bottleneck()->set_cause("none");
  EXPECT_FALSE(has(summary_text(session), "bottleneck"));
  session.mutable_bottleneck()->set_cause("source disk");
  session.mutable_bottleneck()->set_share(0.83);
  session.mutable_bottleneck()->add_evidence("a read took\x1b 41 ms");
  session.mutable_bottleneck()->add_evidence("more");
  EXPECT_TRUE(
      has(summary_text(session), "bottleneck: source disk, 83 % of the time; a read took? 41 ms; more\n"));
}

TEST(ProgressPace, ATerminalIsRedrawnAtMostTenTimesASecond) {
  ProgressPace pace(true);
  api::Session session = running();
  EXPECT_TRUE(pace.due(session, 0));
  session.set_state(api::Session::FINISHING);
  EXPECT_FALSE(pace.due(session, kSecondNs / 10 - 1));
  EXPECT_TRUE(pace.due(session, kSecondNs / 10));
}

TEST(ProgressPace, ALogGetsChangesOfStateAndOneLineInFiveSeconds) {
  ProgressPace pace(false);
  api::Session session = running();
  EXPECT_TRUE(pace.due(session, 0));
  session.set_bytes_done(500ULL << 20);
  EXPECT_FALSE(pace.due(session, 5 * kSecondNs - 1));
  EXPECT_TRUE(pace.due(session, 5 * kSecondNs));
  session.set_state(api::Session::FINISHING);
  EXPECT_TRUE(pace.due(session, 5 * kSecondNs + 1));
  EXPECT_FALSE(pace.due(session, 5 * kSecondNs + 2));
}

TEST(ProgressPace, ALogGetsAWaitThatLasts) {
  ProgressPace pace(false);
  api::Session session = running();
  EXPECT_TRUE(pace.due(session, 0));
  session.set_waiting_for("credit");
  EXPECT_FALSE(pace.due(session, kSecondNs - 1));
  EXPECT_TRUE(pace.due(session, kSecondNs));
  session.clear_waiting_for();
  EXPECT_FALSE(pace.due(session, kSecondNs + 1));
  EXPECT_TRUE(pace.due(session, 2 * kSecondNs));
}

}  // namespace
}  // namespace sluice::cli
