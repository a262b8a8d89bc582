// What a killed process left is removed, and nothing else.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/eal.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

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

}  // namespace
}  // namespace sluice::dpdk
