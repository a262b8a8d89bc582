// What a host has of what was configured: cpus.h, ram.h.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/net/cpus.h"
#include "dataplane/net/ram.h"

namespace sluice::net {
namespace {

TEST(StartChecks, ACpuThatCannotBeHadIsRefusedAndTheOthersAreNamed) {
  EXPECT_TRUE(check_cores({}, {0, 1}));
  EXPECT_TRUE(check_cores({1, 0}, {0, 1}));
  EXPECT_TRUE(check_cores({99}, {})) << "the kernel does not say";
  const Status status = check_cores({1, 99}, {0, 1});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kConfiguration);
  EXPECT_NE(status.error().message.find("CPU 99"), std::string::npos) << status.error().message;
  EXPECT_NE(status.error().message.find("some of 0, 1,"), std::string::npos) << status.error().message;
}

TEST(StartChecks, ThisThreadRunsOnOneOfThem) {
  const std::vector<int> cpus = possible_cpus();
  if (cpus.empty()) GTEST_SKIP() << "the kernel does not say";
  EXPECT_NE(std::ranges::find(cpus, sched_getcpu()), cpus.end());
}

TEST(StartChecks, MoreMemoryThanTheMachineHasIsRefused) {
  EXPECT_TRUE(check_ram("[dataplane] memory_mib = 4095", 4095, 4096));
  const Status status = check_ram("[dataplane] memory_mib = 4096", 4096, 4096);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::kConfiguration);
  EXPECT_NE(status.error().message.find("memory_mib = 4096"), std::string::npos);
}

}  // namespace
}  // namespace sluice::net
