// What a killed process left is removed, and nothing else; what the kernel still holds of it is waited for.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/eal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <memory>

#include "dataplane/dpdk/hugepage_turn.h"

namespace sluice::dpdk {
namespace {

namespace fs = std::filesystem;

TEST(Eal, RemovesWhatKilledProcessesLeft) {
  const fs::path parent = fs::temp_directory_path() / ("eal-test-" + std::to_string(getpid()));
  for (const char* name : {"sluice-a-100", "sluice-b-c-100", "sluice-a-200", "sluice-full-100", "rte",
                           "other-100", "sluice-a", "sluice-100x", "sluice-a-"}) {
    fs::create_directories(parent / name);
  }
  std::ofstream(parent / "sluice-full-100" / "config") << "x";
  std::ofstream(parent / "sluice-file-200") << "x";
  remove_left_directories(parent, [](pid_t pid) { return pid == 200; });
  EXPECT_FALSE(fs::exists(parent / "sluice-a-100"));
  EXPECT_FALSE(fs::exists(parent / "sluice-b-c-100"));
  for (const char* name : {"sluice-a-200", "sluice-full-100", "rte", "other-100", "sluice-a", "sluice-100x",
                           "sluice-a-", "sluice-file-200"}) {
    EXPECT_TRUE(fs::exists(parent / name)) << name;
  }
  fs::remove_all(parent);
  remove_left_directories(parent, [](pid_t) { return false; });  // there is none
}

TEST(Eal, NamesADriverOfABundleThatCannotBeLoaded) {
  const fs::path drivers = fs::temp_directory_path() / ("eal-drivers-" + std::to_string(getpid()));
  EXPECT_TRUE(load_drivers(drivers));  // there is none
  fs::create_directories(drivers);
  EXPECT_TRUE(load_drivers(drivers));
  std::ofstream(drivers / "librte_net_broken.so.23") << "cut off";
  const Status status = load_drivers(drivers);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kDevice);
  EXPECT_NE(status.error().message.find("librte_net_broken.so.23"), std::string::npos)
      << status.error().message;
  fs::remove_all(drivers);
}

bool has(const std::vector<std::string>& arguments, const std::string& one) {
  return std::find(arguments.begin(), arguments.end(), one) != arguments.end();
}

TEST(Eal, AnswersTelemetryInTheRunDirectoryOfItsNode) {
  for (const bool hugepages : {true, false}) {
    const auto with =
        eal_arguments({.program = "p", .instance = "i", .hugepages = hugepages, .runtime_dir = "/n/run"});
    EXPECT_FALSE(has(with, "--no-telemetry"));
    EXPECT_FALSE(has(with, "--file-prefix")) << "its folder is its own, so the name is DPDK's usual one";
    const auto without = eal_arguments({.program = "p", .instance = "i", .hugepages = hugepages});
    EXPECT_TRUE(has(without, "--no-telemetry"));
    EXPECT_EQ(has(without, "--file-prefix"), !hugepages);
  }
}

TEST(Eal, GoesWithoutTelemetryWhereItsSocketsPathWouldBeTooLong) {
  EXPECT_EQ(telemetry_socket("/etc/sluice/run"), "/etc/sluice/run/dpdk/rte/dpdk_telemetry.v2");
  EXPECT_TRUE(telemetry_socket("/" + std::string(76, 'x')));
  EXPECT_FALSE(telemetry_socket("/" + std::string(77, 'x')));
  config::Node node;
  node.directory = "/" + std::string(90, 'x');
  node.memory = "no-huge";
  Device device;
  device.name = device.argument = "net_memif0";
  std::vector<std::string> said;
  const Warn warn = [&](const std::string& text) { said.push_back(text); };
  const auto plan = plan_eal(node, device, {}, {}, warn);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->runtime_dir.empty());
  EXPECT_TRUE(has(plan->arguments, "--no-telemetry"));
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("no DPDK telemetry"), std::string::npos) << said[0];
  node.directory = "/n";
  EXPECT_EQ(plan_eal(node, device, {}, {}, warn)->runtime_dir, "/n/run");
  EXPECT_EQ(said.size(), 1U);
}

TEST(Eal, WaitsForTheHugepagesOfOneThatWasKilled) {
  std::vector<std::string> said;
  const Warn warn = [&](const std::string& text) { said.push_back(text); };
  const auto coming_back = [free_mib = uint64_t{64}]() mutable {
    return Hugepages{.free_mib = free_mib += 64, .all_mib = 512};
  };
  EXPECT_EQ(await_hugepages_mib(256, std::chrono::hours(1), warn, coming_back), 256U);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("256 MiB of hugepages are needed and 128 are free"), std::string::npos) << said[0];
}

TEST(Eal, DoesNotWaitForHugepagesThatCannotCome) {
  const Warn warn = [](const std::string& text) { FAIL() << text; };
  const auto few = [] { return Hugepages{.free_mib = 64, .all_mib = 128}; };
  EXPECT_EQ(await_hugepages_mib(256, std::chrono::hours(1), warn, few), 64U);
  const auto enough = [] { return Hugepages{.free_mib = 256, .all_mib = 512}; };
  EXPECT_EQ(await_hugepages_mib(256, std::chrono::hours(1), warn, enough), 256U);
}

TEST(Eal, WaitsForHugepagesWithALimit) {
  const auto held = [] { return Hugepages{.free_mib = 64, .all_mib = 512}; };
  EXPECT_EQ(await_hugepages_mib(
                256, std::chrono::milliseconds(1), [](const std::string&) {}, held),
            64U);
}

TEST(Eal, OneStartAfterTheOtherTakesHugepages) {
  const fs::path directory = fs::temp_directory_path() / ("turn-test-" + std::to_string(getpid()));
  fs::create_directories(directory);
  auto first = std::make_unique<HugepageTurn>(std::chrono::milliseconds(0), directory);
  EXPECT_TRUE(first->held());
  EXPECT_FALSE(HugepageTurn(std::chrono::milliseconds(0), directory).held());
  first.reset();
  EXPECT_TRUE(HugepageTurn(std::chrono::milliseconds(0), directory).held());
  fs::remove(directory);
  EXPECT_FALSE(HugepageTurn(std::chrono::milliseconds(0), directory).held()) << "there is none: go on";
}

}  // namespace
}  // namespace sluice::dpdk
