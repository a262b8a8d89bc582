// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/bench.h"

#include "tools/cli/bench_pace.h"
#include "tools/cli/cli_fixture_for_test.h"

namespace sluice::cli {
namespace {

api::Session at(double seconds, uint64_t bytes, uint64_t lost = 0) {
  api::Session session;
  session.set_state(api::Session::TRANSFERRING);
  session.set_data_elapsed_s(seconds);
  session.set_bytes_done(bytes);
  session.set_chunks(bytes / 1000);
  session.set_retransmits(lost);
  session.set_lost(lost);
  session.add_lane_progress()->set_bytes(bytes / 2);
  session.add_lane_progress()->set_bytes(bytes - bytes / 2);
  return session;
}

TEST(BenchMeter, TellsAnIntervalWithTheFirstNewsBehindIt) {
  BenchMeter meter({.omit_s = 0, .counted_s = 10, .interval_s = 1}, 0);
  EXPECT_TRUE(meter.see(at(0, 0)).empty()) << "nothing moves yet";
  EXPECT_TRUE(meter.see(at(0.9, 900)).empty());
  const auto first = meter.see(at(1.2, 1200, 3));
  ASSERT_EQ(first.size(), 1U);
  EXPECT_DOUBLE_EQ(first[0].from_s, 0);
  EXPECT_DOUBLE_EQ(first[0].until_s, 1.2);
  EXPECT_EQ(first[0].bytes, 1200U);
  EXPECT_EQ(first[0].lost, 3U);
  EXPECT_EQ(first[0].lane_bytes, (std::vector<uint64_t>{600, 600}));
  EXPECT_DOUBLE_EQ(first[0].rate_bps(), 8000);
  EXPECT_TRUE(meter.see(at(1.9, 1900, 3)).empty());
  const auto second = meter.see(at(2.0, 2400, 4));
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].bytes, 1200U);
  EXPECT_EQ(second[0].retransmits, 1U);
  EXPECT_TRUE(meter.finish().empty()) << "nothing came behind it";
  EXPECT_FALSE(meter.over());
}

TEST(BenchMeter, WhatIsOmittedIsToldAndNotCounted) {
  BenchMeter meter({.omit_s = 2, .counted_s = 3, .interval_s = 1}, 0);
  EXPECT_TRUE(meter.see(at(1, 10)).front().omitted);
  EXPECT_TRUE(meter.see(at(1.9, 19)).empty());
  EXPECT_TRUE(meter.see(at(2.1, 20)).front().omitted) << "it ends there, whatever its length";
  EXPECT_FALSE(meter.see(at(3, 1020)).front().omitted);
  EXPECT_FALSE(meter.over());
  EXPECT_EQ(meter.see(at(5.6, 3520)).size(), 1U);
  EXPECT_TRUE(meter.over());
  EXPECT_EQ(meter.total().bytes, 3500U);
  EXPECT_DOUBLE_EQ(meter.total().rate_bps(), 8000);
}

TEST(BenchMeter, EndsWithItsBytesOrItsTime) {
  BenchMeter sized({.omit_s = 0, .counted_s = 0, .interval_s = 1}, 500);
  (void)sized.see(at(60, 499));
  EXPECT_FALSE(sized.over()) << "no time was given";
  EXPECT_EQ(sized.see(at(60.1, 500)).size(), 1U) << "what is left of the last one";
  EXPECT_TRUE(sized.over());
}

TEST(BenchMeter, AnEndedSessionKeepsWhatItsLanesHad) {
  BenchMeter meter({.omit_s = 0, .counted_s = 0, .interval_s = 1}, 0);
  (void)meter.see(at(0.5, 500));
  api::Session ended = at(0.8, 800);
  ended.clear_lane_progress();
  EXPECT_TRUE(meter.see(ended).empty());
  const auto last = meter.finish();
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].lane_bytes, (std::vector<uint64_t>{250, 250}));
  EXPECT_EQ(last[0].bytes, 800U);
}

TEST(BenchMeter, NoTimeIsNoRate) { EXPECT_EQ(BenchMeter({}, 0).total().rate_bps(), 0); }

// 1,000 payloads of 8192 bytes are 8,330,000 on the wire; IPv6 has 20 more around each.
TEST(BenchPace, CountsWhatThePacerCounts) {
  const BenchInterval moving{
      .from_s = 1, .until_s = 2, .sent_bytes = 8'192'000, .chunks = 1000, .lane_bytes = {}};
  const auto pace = bench_pace(moving, 66'640'000, false);
  ASSERT_TRUE(pace);
  EXPECT_DOUBLE_EQ(pace->wire_bps, 66'640'000);
  EXPECT_TRUE(pace->held());
  EXPECT_DOUBLE_EQ(bench_pace(moving, 66'640'000, true)->wire_bps, 66'800'000);
  EXPECT_TRUE(bench_pace(moving, 66'900'000, false)->held());
  EXPECT_FALSE(bench_pace(moving, 67'000'000, false)->held());
  EXPECT_FALSE(bench_pace(moving, 66'300'000, false)->held()) << "too much is no better";
  EXPECT_TRUE(pace_json(*bench_pace(moving, 67'000'000, false))["held_gbps"].is_null());
  EXPECT_FALSE(bench_pace(moving, 0, false));
  EXPECT_FALSE(bench_pace({}, 1'000, false));
}

TEST(BenchPace, BeginsWithTheFirstNewsOfData) {
  const auto sent = [](double seconds, uint64_t chunks) {
    api::Session session = at(seconds, chunks * 1000);
    session.set_bytes_sent(chunks * 1000);
    return session;
  };
  BenchMeter meter({.omit_s = 0, .counted_s = 9, .interval_s = 1}, 0);
  (void)meter.see(sent(0.4, 0));
  (void)meter.see(sent(0.5, 100));
  (void)meter.see(sent(2.5, 500));
  EXPECT_DOUBLE_EQ(meter.moving().seconds(), 2);
  EXPECT_EQ(meter.moving().sent_bytes, 400'000U);
  EXPECT_EQ(meter.total().sent_bytes, 500'000U);
}

class BenchCommand : public CliTest {
 protected:
  void moving(double seconds, uint64_t bytes) {
    control_.on_io([&] {
      api::Session& session = control_.sessions.prototype;
      session = at(seconds, bytes);
      session.mutable_bottleneck()->set_cause("network");
      session.mutable_bottleneck()->set_share(0.9);
    });
  }
};

TEST_F(BenchCommand, GoesFromMemoryToMemoryAndEndsTheSession) {
  moving(10, 1'250'000'000);
  const Outcome outcome = sluice({"bench", "beta"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("1.00 Gbit/s"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("limited by: network, 90 % of the time"), std::string::npos) << outcome.out;
  const auto sent = control_.sessions.last_send;
  ASSERT_TRUE(sent);
  EXPECT_TRUE(sent->sources(0).starts_with("memory:"));
  EXPECT_EQ(sent->peer() + ":" + sent->destination(), "beta:null:");
  EXPECT_EQ(control_.sessions.sessions.at("s1").state(), api::Session::CANCELLED);
  EXPECT_EQ(sent->options().deadline_policy(), "end") << "the node ends it if this command is killed";
  EXPECT_GT(sent->options().deadline_unix_ns(), 0);
}

TEST_F(BenchCommand, BothWaysHaveIperfsKeys) {
  moving(10, 1'250'000'000);
  const Outcome outcome = sluice({"bench", "beta", "--bidir", "--json", "-P", "2", "-b", "2G"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  const api::Json json = outcome.json();
  EXPECT_EQ(json["schema"], "sluice.bench.v1");
  EXPECT_EQ(json["end"]["sum_received"]["bits_per_second"], 1e9);
  EXPECT_EQ(json["end"]["sum_received_bidir_reverse"]["bytes"], 1'250'000'000);
  EXPECT_EQ(json["end"]["limited_by"]["cause"], "network");
  EXPECT_EQ(json["intervals"].size(), 2U);
  EXPECT_EQ(json["intervals"][0]["streams"].size(), 2U);
  EXPECT_EQ(control_.sessions.last_send->options().lanes(), 2U);
  EXPECT_EQ(control_.sessions.last_get->options().rate_bps(), 2'000'000'000U);
}

TEST_F(BenchCommand, SaysNothingOfAPaceThatNobodyAskedFor) {
  moving(10, 1'250'000'000);
  EXPECT_FALSE(sluice({"bench", "beta", "--json"}).json()["end"].contains("pacing"));
}

TEST_F(BenchCommand, OfADiskOneEndIsAFile) {
  moving(10, uint64_t{5} << 30);
  EXPECT_EQ(sluice({"bench", "beta", "--to", "data/in"}).exit_code, 0);
  EXPECT_TRUE(control_.sessions.last_send->destination().starts_with("data/in/sluice-bench-"));
  EXPECT_EQ(sluice({"bench", "beta", "-R", "--to", "/mnt/x"}).exit_code, 0);
  EXPECT_TRUE(control_.sessions.last_get->destination().starts_with("/mnt/x/sluice-bench-"));
  EXPECT_EQ(sluice({"bench", "beta", "-t", "5", "--from", "file.bin"}).exit_code, 0);
  EXPECT_EQ(control_.sessions.last_send->sources(0), "/w/file.bin");
  EXPECT_EQ(control_.sessions.last_send->destination(), "null:");
  expect_one_line_error(sluice({"bench", "beta", "--from", "/"}), ErrorCode::kUsage);
}

TEST_F(BenchCommand, AnEndThatNobodyAskedForIsAnError) {
  moving(3, 1000);
  sessions_are(api::Session::FAILED, ErrorCode::kPeerUnreachable, "beta is gone");
  const Outcome outcome = sluice({"bench", "beta"});
  EXPECT_EQ(outcome.exit_code, static_cast<int>(ErrorCode::kPeerUnreachable));
  EXPECT_EQ(outcome.err, "sluice: beta is gone\n");
}

TEST_F(BenchCommand, WhatDoesNotGoTogetherIsRefused) {
  const std::vector<std::vector<std::string>> wrong = {{"bench", "beta:data/x"},
                                                       {"bench", "beta", "-n", "0"},
                                                       {"bench", "beta", "-n", "many"},
                                                       {"bench", "beta", "--bidir", "--to", "data"},
                                                       {"bench", "beta", "--from", "x", "-n", "1G"},
                                                       {"bench", "beta", "--from", "x", "--to", "data"},
                                                       {"bench", "beta", "--bidir", "-R"},
                                                       {"bench", "beta", "-t", "0"},
                                                       {"bench", "beta", "-O", "-1"},
                                                       {"bench", "beta", "-b", "10"}};
  for (const auto& words : wrong) expect_one_line_error(sluice(words), ErrorCode::kUsage);
}

}  // namespace
}  // namespace sluice::cli
