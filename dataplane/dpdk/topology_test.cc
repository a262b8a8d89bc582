// The choice of cores on machines drawn by hand, and that hwloc sees the one at hand.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/topology.h"

#include <gtest/gtest.h>

namespace sluice::dpdk {
namespace {

// Two NUMA nodes, two cores each, two hardware threads per core: CPUs 0-3 first threads, 4-7 siblings.
std::vector<ProcessingUnit> two_socket_machine() {
  std::vector<ProcessingUnit> units;
  for (int cpu = 0; cpu < 8; ++cpu) units.push_back({.cpu = cpu, .core = cpu % 4, .numa_node = cpu % 4 / 2});
  return units;
}

TEST(Topology, PrefersThePortsNodeAndAvoidsSiblingsAndCpuZero) {
  const auto units = two_socket_machine();
  EXPECT_EQ(choose_cores(units, {.workers = 2, .numa_node = 1})->worker_cpus, (std::vector{2, 3}));
  EXPECT_EQ(choose_cores(units, {.workers = 1, .numa_node = 0})->worker_cpus, (std::vector{1}));
  EXPECT_EQ(choose_cores(units, {.workers = 2, .numa_node = 0})->worker_cpus, (std::vector{1, 0}));
  EXPECT_EQ(choose_cores(units, {.workers = 3})->worker_cpus, (std::vector{1, 2, 3}));
}

TEST(Topology, GoesToTheOtherNodeBeforeItSharesCores) {
  const auto choice = choose_cores(two_socket_machine(), {.workers = 5, .numa_node = 1});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->worker_cpus, (std::vector{2, 3, 1, 0, 2}));
  EXPECT_TRUE(choice->shared);
}

TEST(Topology, LeavesTheRestToTheMainThread) {
  const auto choice = choose_cores(two_socket_machine(), {.workers = 1, .numa_node = 1});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->other_cpus, (std::vector{0, 1, 3, 4, 5, 6, 7}));
  const std::vector<ProcessingUnit> tiny{{.cpu = 0, .core = 0}};
  EXPECT_EQ(choose_cores(tiny, {.workers = 1})->other_cpus, (std::vector{0}));
}

TEST(Topology, RespectsTheCpuset) {
  auto units = two_socket_machine();
  for (auto& unit : units) unit.allowed = unit.cpu == 0 || unit.cpu == 6;
  const auto choice = choose_cores(units, {.workers = 2});
  ASSERT_TRUE(choice);
  EXPECT_EQ(choice->worker_cpus, (std::vector{6, 0}));
}

TEST(Topology, TakesTheOperatorsCoresOrSaysWhyNot) {
  auto units = two_socket_machine();
  units[5].allowed = false;
  EXPECT_EQ(choose_cores(units, {.workers = 2, .cores = {0, 0}})->worker_cpus, (std::vector{0, 0}));
  for (const std::vector<int>& cores : {std::vector{5, 1}, std::vector{8, 1}, std::vector{1}}) {
    const auto choice = choose_cores(units, {.workers = 2, .cores = cores});
    ASSERT_FALSE(choice);
    EXPECT_EQ(choice.error().code, ErrorCode::kConfiguration);
  }
}

TEST(Topology, SeesThisMachine) {
  const auto units = processing_units();
  ASSERT_TRUE(units);
  ASSERT_FALSE(units->empty());
  EXPECT_TRUE(choose_cores(*units, {.workers = 1}));
}

}  // namespace
}  // namespace sluice::dpdk
