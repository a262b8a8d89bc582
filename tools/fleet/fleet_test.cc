// The files of a plan, and what is made of them.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tools/fleet/jobs.h"
#include "tools/fleet/names.h"
#include "tools/fleet/plan_directory.h"
#include "tools/fleet/programs.h"
#include "tools/fleet/shard_writer.h"
#include "tools/fleet/status.h"
#include "tools/fleet/tries.h"

namespace sluice::fleet {
namespace {

class Directory : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "sluice-fleet-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::filesystem::path path_;
};

Plan a_plan(uint32_t shards) {
  Plan plan;
  plan.dataset = "run42";
  plan.made = "2026-11-28T12:00:00Z";
  plan.from = {{"dtn1", "/scratch/run42"}, {"dtn2", "/scratch/run42"}};
  plan.to = {{"arc1", "data/run42"}, {"arc2", "data/run42"}};
  plan.node_directory = "/etc/sluice";
  plan.names = 10 * shards;
  plan.bytes = 1000 * shards;
  plan.shards.assign(shards, {.names = 10, .bytes = 1000, .sessions = 1});
  return plan;
}

Try a_try(uint32_t shard, uint64_t epoch, Try::State state, uint64_t bytes_done = 0) {
  Try one;
  one.shard = shard;
  one.epoch = epoch;
  one.state = state;
  one.job = "77";
  one.exit_code = state == Try::State::kFailed ? 21 : 0;
  one.names_total = 10;
  one.sessions = {{.id = "abc",
                   .state = "x",
                   .bytes = 1000,
                   .bytes_done = bytes_done,
                   .bytes_sent = bytes_done,
                   .names_done = 1}};
  return one;
}

TEST_F(Directory, APlanIsReadAsItWasWritten) {
  Plan plan = a_plan(3);
  plan.at = Side::kTo;
  plan.removes = true;
  ASSERT_TRUE(write_json(path_ / "plan.json", plan_json(plan)));
  const auto read = load_plan(path_);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(plan_json(*read), plan_json(plan));
}

TEST_F(Directory, WhatIsNoPlanIsNamed) {
  EXPECT_EQ(load_plan(path_).error().code, ErrorCode::kConfiguration);
  for (const char* text :
       {"", "{}", "[1]", R"({"schema":"sluice.fleet_plan.v1"})", R"({"schema":"sluice.fleet_plan.v2"})"}) {
    ASSERT_TRUE(write_file(path_ / "plan.json", text));
    EXPECT_EQ(load_plan(path_).error().code, ErrorCode::kConfiguration) << text;
  }
}

TEST_F(Directory, ShardsHaveAsManySessionsAsOneTakes) {
  ShardWriter writer(path_, 2, {.names = 3, .name_bytes = 1000, .large_files = 1, .large_file_bytes = 100});
  for (const char* name : {"a", "b", "c", "d"}) ASSERT_TRUE(writer.add(1, 1, {name}));
  ASSERT_TRUE(writer.add(1, 200, {"e"}));
  ASSERT_TRUE(writer.add(1, 200, {"f"}));
  ASSERT_TRUE(writer.add(2, 5, {"g", "h"}));  // two names of one file
  ASSERT_TRUE(writer.finish());
  const auto totals = writer.totals();
  EXPECT_EQ(totals[0].sessions, 0U);
  EXPECT_EQ(totals[1].sessions, 3U);
  EXPECT_EQ(totals[1].bytes, 404U);
  EXPECT_EQ(totals[2].names, 2U);
  EXPECT_EQ(*read_file(path_ / names_file(1, 1)), std::string("a\0b\0c\0", 6));
  EXPECT_EQ(*read_file(path_ / names_file(1, 2)), std::string("d\0e\0", 4));
  EXPECT_EQ(*read_file(path_ / names_file(2, 1)), std::string("g\0h\0", 4));
}

TEST_F(Directory, ANameListComesBackAsItWas) {
  const std::vector<std::string> links = {"x/\xff", "y\n"};
  {
    auto writer = NamesWriter::open(path_ / "list");
    ASSERT_TRUE(writer);
    writer->add(7, links.data(), 2);
    writer->add(0, &links[1], 1);
    ASSERT_TRUE(writer->finish());
  }
  auto reader = NamesReader::open(path_ / "list");
  Listed listed;
  ASSERT_TRUE(*reader->next(&listed));
  EXPECT_EQ(listed.bytes, 7U);
  EXPECT_EQ(listed.names, links);
  ASSERT_TRUE(*reader->next(&listed));
  EXPECT_EQ(listed.names.size(), 1U);
  EXPECT_FALSE(*reader->next(&listed));
}

TEST(RunFile, HasASessionForEachListAndTheOptionsThatWereGiven) {
  const Plan plan = a_plan(3);
  const std::string text = run_file_text(plan, 2, {.names = 5, .bytes = 9, .sessions = 2},
                                         {*option_line("rate=2G"), *option_line("xattrs=true")});
  EXPECT_NE(text.find("[options]\nmkdir = true\nrate = \"2G\"\nxattrs = true\n"), std::string::npos) << text;
  EXPECT_NE(
      text.find(
          "[[send]]\nsources = \"/scratch/run42/\"\nfiles_from = \"shard-0002-2.names\"\nfrom0 = true\nto = "
          "\"arc2:data/run42/\"\n"),
      std::string::npos)
      << text;
}

TEST(RunFile, HasASessionForEachRangeAndOneThatFinishesTheFile) {
  using What = selection::FilePart::What;
  const std::string set(32, 'a');
  const FileRange range{.name = "deep/big \"x\"",
                        .part = {.what = What::kRange, .set = set, .offset = 1 << 20, .length = 2 << 20}};
  Plan plan = a_plan(3);
  EXPECT_NE(run_file_text(plan, 2, {.ranges = 1}, {}, {range})
                .find("[[send]]\nsources = \"/scratch/run42/deep/big \\\"x\\\"\"\npart = \"" + set +
                      ":1048576+2097152\"\nto = \"arc2:data/run42/deep/\"\n"),
            std::string::npos);
  plan.at = Side::kTo;
  EXPECT_NE(run_file_text(plan, 0, {}, {}, {{.name = "big", .part = {.what = What::kFinish, .set = set}}})
                .find("part = \"" + set + ":finish\""),
            std::string::npos);
}

TEST(ShardWriter, AFileThatIsCutIsANameOfTheShardWithItsFirstByte) {
  using What = selection::FilePart::What;
  ShardWriter writer("/none", 2);
  writer.add_range(1, 10, {.name = "big", .part = {.what = What::kRange, .offset = 1 << 20, .length = 10}});
  writer.add_range(2, 20, {.name = "big", .part = {.what = What::kRange, .length = 20}});
  const std::vector<ShardTotals> totals = writer.totals();
  EXPECT_EQ(totals[1].names, 0U);
  EXPECT_EQ(totals[2].names, 1U);
  EXPECT_EQ(totals[1].bytes + totals[2].bytes, 30U);
  EXPECT_EQ(totals[1].ranges, 1U);
  EXPECT_EQ(writer.ranges(2).front().name, "big");
}

TEST(Set, IsAnotherOneEachTime) {
  const auto one = make_set();
  const auto other = make_set();
  ASSERT_TRUE(one && other);
  EXPECT_EQ(one->size(), selection::kPartSetDigits);
  EXPECT_NE(*one, *other);
}

TEST(RunFile, AnOptionNeedsAKey) {
  for (const char* wrong : {"", "rate", "=2G", "ra te=1", "[x]=1", "a\n=1"})
    EXPECT_FALSE(option_line(wrong)) << wrong;
  EXPECT_EQ(*option_line("chunk-bytes=1400"), "chunk_bytes = 1400");
  EXPECT_EQ(*option_line("exclude=a\"b\\"), "exclude = \"a\\\"b\\\\\"");
}

TEST(Epochs, GrowWithRestartsAndRetries) {
  EXPECT_LT(epoch_of(0, 0), epoch_of(0, 1));
  EXPECT_LT(epoch_of(0, 5000), epoch_of(1, 0));
  EXPECT_EQ(epoch_of(0, 0), 1U);
}

TEST_F(Directory, TheLatestTryCountsUnlessOneSucceeded) {
  std::filesystem::create_directory(path_ / "tries");
  ASSERT_TRUE(write_try(path_, a_try(1, 1, Try::State::kFailed)));
  ASSERT_TRUE(write_try(path_, a_try(1, 2, Try::State::kRunning, 500)));
  ASSERT_TRUE(write_try(path_, a_try(2, 1, Try::State::kSucceeded)));
  ASSERT_TRUE(write_try(path_, a_try(2, 1001, Try::State::kRunning)));
  ASSERT_TRUE(write_file(path_ / "tries/shard-0003.1.json", "{half"));
  const auto tries = load_tries(path_);
  ASSERT_TRUE(tries);
  EXPECT_EQ(tries->size(), 2U);
  EXPECT_EQ(latest(tries->at(1))->epoch, 2U);
  EXPECT_EQ(latest(tries->at(2))->epoch, 1U);
  EXPECT_EQ(load_tries_of(path_, 1).size(), 2U);
}

TEST(Arrays, AreCutWhereSlurmEnds) {
  EXPECT_EQ(array_text({1, 2, 3, 7, 9, 10}), "1-3,7,9-10");
  const auto arrays = arrays_of({1, 2, 1000, 1001, 2500}, 1000);
  ASSERT_EQ(arrays.size(), 3U);
  EXPECT_EQ(arrays[0].second, (std::vector<uint32_t>{1, 2, 1000}));
  EXPECT_EQ(arrays[1].first, 1000U);
  EXPECT_EQ(arrays[1].second, std::vector<uint32_t>{1});
  EXPECT_EQ(arrays[2].second, std::vector<uint32_t>{500});
  EXPECT_EQ(tasks_max_of("x = 1\nMaxArraySize            = 4001\n"), 4000U);
  EXPECT_EQ(tasks_max_of("nothing"), 1000U);
}

TEST(Queue, TellsOfTheTasksThatAreThere) {
  Jobs jobs;
  jobs.jobs = {{.id = 10}, {.id = 11, .offset = 1000}, {.id = 12, .last = true}};
  const auto queue = queue_of(
      jobs,
      "10|2|RUNNING|n1|None\n11|5|PENDING||Resources\n12|N/A|PENDING||Dependency\n99|1|RUNNING|n2|None\nx\n");
  ASSERT_EQ(queue.size(), 3U);
  EXPECT_EQ(queue.at(2).node, "n1");
  EXPECT_EQ(queue.at(1005).reason, "Resources");
  EXPECT_EQ(queue.at(0).state, "PENDING");
}

TEST(Status, AddsUpWhatIsDoneAndFindsWhoIsLost) {
  const Plan plan = a_plan(5);
  Jobs jobs;
  jobs.jobs = {{.id = 10}};
  std::map<uint32_t, std::vector<Try>> tries;
  tries[1] = {a_try(1, 1, Try::State::kSucceeded, 1000)};
  tries[2] = {a_try(2, 1, Try::State::kRunning, 400)};
  tries[2][0].rate_bps = 800;
  tries[3] = {a_try(3, 1, Try::State::kRunning, 100)};
  tries[4] = {a_try(4, 1, Try::State::kFailed, 100)};
  tries[4][0].names_failed = 1;
  tries[4][0].failed = {{"a/b", "not there"}};
  const std::map<uint32_t, TaskState> queue = {{2, {"RUNNING", "n1", ""}}, {5, {"PENDING", "", "Resources"}}};
  const FleetStatus status = status_of(plan, tries, jobs, queue, 0);
  EXPECT_EQ(status.shards[0].state, ShardState::kSucceeded);
  EXPECT_EQ(status.shards[1].state, ShardState::kRunning);
  EXPECT_EQ(status.shards[2].state, ShardState::kLost);
  EXPECT_EQ(status.shards[3].state, ShardState::kFailed);
  EXPECT_EQ(status.shards[4].state, ShardState::kWaiting);
  EXPECT_EQ(status.bytes_done, 1600U);
  EXPECT_DOUBLE_EQ(*status.shards[1].eta_s, 6.0);
  EXPECT_EQ(status.slowest, 2U);
  EXPECT_EQ(status.state, ShardState::kRunning);
  EXPECT_EQ(to_retry(status), (std::vector<uint32_t>{3, 4}));
  EXPECT_EQ(status_json(status)["failed"].size(), 1U);
  EXPECT_EQ(status.exit_code(), 21);
}

TEST(Status, AllHaveSucceededOnlyWithWhatComesLast) {
  const Plan plan = a_plan(2);
  std::map<uint32_t, std::vector<Try>> tries;
  tries[1] = {a_try(1, 1, Try::State::kSucceeded)};
  tries[2] = {a_try(2, 1, Try::State::kSucceeded)};
  EXPECT_EQ(status_of(plan, tries, {}, {}, 0).state, ShardState::kPlanned);
  tries[0] = {a_try(0, 1, Try::State::kSucceeded)};
  const FleetStatus status = status_of(plan, tries, {}, {}, 0);
  EXPECT_EQ(status.state, ShardState::kSucceeded);
  EXPECT_EQ(status.exit_code(), 0);
  EXPECT_EQ(status.names_done, 20U);
}

TEST(Scripts, NameTheNodeOfTheHost) {
  Plan plan = a_plan(2);
  plan.node_directory = "/srv/%n/it's";
  const std::string script = slurm_script(plan, "/plans/run42", "/usr/bin/sluice");
  EXPECT_NE(script.find("--node '/srv/'\"$SLURMD_NODENAME\"'/it'\\''s' fleet)"), std::string::npos) << script;
  EXPECT_NE(script.find("exec \"${sluice[@]}\" shard --retry"), std::string::npos) << script;
  EXPECT_NE(script.find("exec \"${sluice[@]}\" drop '/plans/run42'"), std::string::npos) << script;
}

TEST(Programs, EndWithWhatTheySaid) {
  const auto ran = run_program({"sh", "-c", "echo out; echo err >&2; exit 3"}, 60);
  ASSERT_TRUE(ran) << ran.error().message;
  EXPECT_EQ(ran->exit_code, 3);
  EXPECT_EQ(ran->out, "out\n");
  EXPECT_EQ(ran->err, "err\n");
  EXPECT_EQ(run_program({"no-such-program-here"}, 60).error().code, ErrorCode::kConfiguration);
  EXPECT_EQ(run_program({"sleep", "1000"}, 0.05).error().code, ErrorCode::kStalled);
}

}  // namespace
}  // namespace sluice::fleet
