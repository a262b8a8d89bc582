// Names by the conventions of Prometheus, and the reference in the documents.
// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

namespace sluice::metrics {
namespace {

const MetricInfo& row(board::Counter counter) { return table()[index_of(counter)]; }

TEST(Table, HasOneRowForEachMetricAndEachCounterButReasonsToDrop) {
  size_t reasons = 0;
  for (uint32_t i = 0; i < board::kCounters; ++i)
    reasons += drop_reason(board::counter_table()[i]).empty() ? 0 : 1;
  EXPECT_GT(reasons, 10U);
  EXPECT_EQ(table().size(), static_cast<size_t>(Metric::kCount) + board::kCounters - reasons);
  std::set<std::string> names;
  for (const MetricInfo& info : table()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_FALSE(info.help.empty()) << info.name;
    EXPECT_EQ(info.help.find('\n'), std::string::npos) << info.name;
  }
}

TEST(Table, NamesHaveAPrefixAndTheirUnitAndSayWhatOnlyGrows) {
  for (const MetricInfo& info : table()) {
    EXPECT_TRUE(info.name.starts_with("sluice_") || info.name.starts_with("process_")) << info.name;
    EXPECT_EQ(info.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << info.name;
    EXPECT_EQ(info.name.ends_with("_total"), info.type == Type::kCounter) << info.name;
    for (const char* unit : {"_ns", "_us", "_ms", "_bps", "_percent", "_bits", "_mib"})
      EXPECT_EQ((info.name + "_").find(std::string(unit) + "_"), std::string::npos) << info.name;
  }
}

TEST(Table, LabelsAreOfAFewKindsAndNeverAFile) {
  const std::set<std::string> known = {
      "node", "version", "port",      "memory", "worker",    "export", "state", "error", "outcome", "session",
      "lane", "peer",    "direction", "mode",   "condition", "reason", "cause", "kind",  "name"};
  for (const MetricInfo& info : table()) {
    for (const std::string& label : info.labels)
      EXPECT_TRUE(known.contains(label)) << info.name << " " << label;
  }
}

TEST(Table, CountersOfAWorkerAreCalledAfterWhatTheyCount) {
  EXPECT_EQ(row(board::Counter::rx_frames).name, "sluice_port_rx_frames_total");
  EXPECT_EQ(row(board::Counter::rx_frames).labels, (std::vector<std::string>{"port", "worker"}));
  EXPECT_EQ(row(board::Counter::socket_errors).name, "sluice_port_socket_errors_total");
  EXPECT_EQ(row(board::Counter::disk_writes).name, "sluice_disk_writes_total");
  EXPECT_EQ(row(board::Counter::disk_writes).labels, (std::vector<std::string>{"worker"}));
  EXPECT_EQ(row(board::Counter::disk_write_ns).name, "sluice_disk_write_seconds_total");
  EXPECT_EQ(row(board::Counter::loops).name, "sluice_worker_loops_total");
}

TEST(Table, ALevelInNanosecondsBecomesAGaugeInSeconds) {
  const MetricInfo& info = row(board::Counter::loop_ns_max);
  EXPECT_EQ(info.name, "sluice_worker_loop_max_seconds");
  EXPECT_EQ(info.type, Type::kGauge);
}

TEST(Table, HelpIsThatOfTheTableOfCounters) {
  for (uint32_t i = 0; i < board::kCounters; ++i) {
    const board::CounterInfo& counter = board::counter_table()[i];
    if (!drop_reason(counter).empty()) continue;
    EXPECT_EQ(row(static_cast<board::Counter>(i)).help, counter.help);
  }
}

TEST(Table, ReasonsToDropAreOneMetricSoThatTheyCanBeAddedUp) {
  const MetricInfo& info = row(board::Counter::rx_drop_crc);
  EXPECT_EQ(info.name, "sluice_port_rx_drops_total");
  EXPECT_EQ(info.labels, (std::vector<std::string>{"port", "worker", "reason"}));
  EXPECT_EQ(&row(board::Counter::rx_drop_not_ours), &info);
  EXPECT_EQ(drop_reason(board::counter_table()[static_cast<size_t>(board::Counter::rx_drop_not_ours)]),
            "not_ours");
}

TEST(Table, StandsInTheDocumentWordForWord) {
  const std::ifstream file(SLUICE_SOURCE_DIR "/docs/METRICS.md");
  std::ostringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find("<!-- metrics-reference-begin -->\n" + reference_markdown() +
                            "<!-- metrics-reference-end -->"),
            std::string::npos)
      << "fill it with 'sluice node reference --metrics'";
}

}  // namespace
}  // namespace sluice::metrics
