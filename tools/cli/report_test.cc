// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/report.h"

#include <gtest/gtest.h>

namespace sluice::cli {
namespace {

class ReportTest : public testing::Test {
 protected:
  std::string text() { return report_text(facts_); }

  doctor::Facts node_{.version = "1.2.3", .node = config::Node{}};
  ReportFacts facts_{
      .when = "2026-11-27T00:00:00Z",
      .node = node_,
      .host = {.system = "Debian GNU/Linux 12 (bookworm)",
               .cpu = "A CPU",
               .cpus = 2,
               .instructions = {"avx2", "vaes"}},
      .cards = {{.pci = "0000:01:00.0", .driver = "vfio-pci", .numa_node = 1, .iommu_group = true}},
      .live = Error{ErrorCode::kDaemonNotRunning, "sluice-control does not run"},
      .counters = Error{ErrorCode::kDaemonNotRunning, "sluice-control does not run"},
      .findings = "pass  identity\n"};
};

TEST_F(ReportTest, ANodeWithoutDaemonsIsReportedAllTheSame) {
  const std::string said = text();
  for (const char* part :
       {"sluice 1.2.3 doctor --report, 2026-11-27T00:00:00Z", "2 x A CPU: avx2 vaes",
        "card         0000:01:00.0 vfio-pci -, NUMA node 1\n", "control      sluice-control does not run",
        "pass  identity", "Devices that were tried"}) {
    EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
  }
}

TEST_F(ReportTest, TellsWhatTheDataplaneDrivesAndWhatItCounted) {
  api::NodeReply live;
  live.set_dataplane_attached(true);
  live.set_device("0000:01:00.0");
  live.set_device_abilities("driver net_ixgbe, one queue");
  facts_.live = live;
  api::CountersReply counters;
  for (const auto& [name, value] : {std::pair("rx_missed", 7), std::pair("rx_frames", 0)}) {
    counters.add_counters()->set_name(name);
    counters.mutable_counters(counters.counters_size() - 1)->set_value(static_cast<uint64_t>(value));
  }
  facts_.counters = counters;
  const std::string said = text();
  EXPECT_NE(said.find("device       driver net_ixgbe, one queue\n"), std::string::npos) << said;
  EXPECT_NE(said.find("rx_missed"), std::string::npos);
  EXPECT_EQ(said.find("rx_frames"), std::string::npos) << "it is zero";
}

TEST_F(ReportTest, TheDevicesThatWereTriedAreALineEach) {
  EXPECT_EQ(tried_text().find('#'), std::string::npos);
  EXPECT_EQ(tried_text().find('\t'), std::string::npos);
}

}  // namespace
}  // namespace sluice::cli
