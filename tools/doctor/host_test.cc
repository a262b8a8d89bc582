// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace sluice::doctor {
namespace {

namespace fs = std::filesystem;

TEST(HostTest, TellsWhatTheKernelAndTheSystemSayOfThemselves) {
  const fs::path root = fs::temp_directory_path() / ("host-test-" + std::to_string(::getpid()));
  const auto write = [&](const fs::path& path, std::string_view text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  write("etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n");
  write("proc/sys/kernel/osrelease", "6.1.0-28-amd64\n");
  write("proc/cpuinfo",
        "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: fpu avx2 vaes\n\n"
        "processor\t: 1\nmodel name\t: A CPU\nflags\t\t: fpu avx2 vaes\n");
  write("proc/meminfo", "MemTotal:       24576000 kB\nMemFree: 1 kB\n");
  const HostFacts facts = gather_host(root);
  fs::remove_all(root);
  EXPECT_EQ(facts.system, "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(facts.kernel, "6.1.0-28-amd64");
  EXPECT_EQ(facts.cpu, "A CPU");
  EXPECT_EQ(facts.cpus, 2U);
  EXPECT_EQ(facts.ram_mib, 24000U);
  EXPECT_EQ(facts.instructions, (std::vector<std::string>{"avx2", "vaes"}));
}

TEST(HostTest, WhatCannotBeReadIsEmpty) {
  const HostFacts facts = gather_host("/nonexistent");
  EXPECT_TRUE(facts.system.empty() && facts.kernel.empty() && facts.cpu.empty() &&
              facts.instructions.empty());
}

}  // namespace
}  // namespace sluice::doctor
