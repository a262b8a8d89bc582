// sluice session log: its lines for people and programs, in front of the real client and server.
// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/cli_fixture_for_test.h"
#include "tools/cli/log_format.h"

namespace sluice::cli {
namespace {

api::LogRecord record(const std::string& kind, uint32_t lane = 0) {
  api::LogRecord one;
  one.set_kind(kind);
  one.set_lane(lane);
  one.set_unix_ns(1'700'000'000'000'000'000);
  one.set_session_ns(1'250'000'000);
  return one;
}

TEST(LogFormat, SaysWhatEachKindHas) {
  api::LogRecord gap = record("gap", 3);
  gap.set_tx_seq(17);
  gap.set_count(2);
  EXPECT_EQ(log_text(gap), "    1.250000000  lane 3   gap             tx_seq 17  2 lost\n");
  api::LogRecord again = record("retransmission");
  again.set_tx_seq(20);
  again.set_object(1);
  again.set_offset(8192);
  again.set_length(512);
  EXPECT_NE(log_text(again).find("tx_seq 20  object 1  512 bytes at 8192\n"), std::string::npos);
  api::LogRecord rate = record("rate");
  rate.set_rate_bps(2'000'000'000);
  EXPECT_NE(log_text(rate).find("2.00 Gbit/s\n"), std::string::npos);
  EXPECT_EQ(log_text(record("closed")).back(), '\n');
  api::LogRecord dropped = record("dropped");
  dropped.set_count(9);
  EXPECT_NE(log_text(dropped).find("9 records are missing here"), std::string::npos);
}

class LogCommandTest : public CliTest {
 protected:
  void SetUp() override {
    CliTest::SetUp();
    control_.on_io([&] { control_.sessions.sessions["s1"].set_id("s1"); });
  }
};

TEST_F(LogCommandTest, EachRecordIsALine) {
  control_.on_io([&] {
    api::LogReply part;
    *part.add_records() = record("closed", 1);
    *part.add_records() = record("rate", 0);
    control_.sessions.log_parts = {part};
  });
  const Outcome lines = sluice({"session", "log", "s1", "--json", "--lane", "1"});
  EXPECT_EQ(lines.exit_code, 0) << lines.err;
  EXPECT_EQ(std::count(lines.out.begin(), lines.out.end(), '\n'), 2);
  EXPECT_EQ(api::Json::parse(lines.out.substr(0, lines.out.find('\n')))["kind"], "closed");
  control_.on_io([&] { EXPECT_EQ(control_.sessions.last_log->lane(), 1U); });
}

TEST_F(LogCommandTest, NothingNotedIsSaid) {
  const Outcome nothing = sluice({"session", "log", "s1"});
  EXPECT_EQ(nothing.exit_code, 0);
  EXPECT_NE(nothing.err.find("log level events"), std::string::npos) << nothing.err;
  expect_one_line_error(sluice({"session", "log", "s9"}), ErrorCode::kUsage);
}

TEST_F(LogCommandTest, TheLevelIsSetAtTheStartAndWhileItRuns) {
  EXPECT_EQ(sluice({"session", "log-level", "s1", "packets"}).out, "session s1 logs packets\n");
  control_.on_io([&] { EXPECT_EQ(control_.sessions.log_level, "packets"); });
  expect_one_line_error(sluice({"session", "log-level", "s1", "loud"}), ErrorCode::kUsage);
  sluice({"send", "a", "b:x", "--detach", "--log-level", "off"});
  control_.on_io([&] { EXPECT_EQ(control_.sessions.last_send->options().log_level(), "off"); });
  expect_one_line_error(sluice({"send", "a", "b:x", "--log-level", "all"}), ErrorCode::kUsage);
}

TEST_F(LogCommandTest, LevelsOfComponentsAreShownAndSet) {
  control_.on_io([&] {
    for (const char* name : {"peer", "dataplane"}) {
      api::ComponentLevel* const one = control_.sessions.levels.add_levels();
      one->set_component(name);
      one->set_level("info");
    }
  });
  EXPECT_EQ(sluice({"node", "log-level"}).out, "peer       info\ndataplane  info\n");
  EXPECT_EQ(sluice({"node", "log-level", "peer=debug", "--json"}).json()["levels"]["peer"], "debug");
  EXPECT_EQ(sluice({"node", "log-level", "warn"}).out, "peer       warn\ndataplane  warn\n");
  expect_one_line_error(sluice({"node", "log-level", "=debug"}), ErrorCode::kUsage);
}

}  // namespace
}  // namespace sluice::cli
