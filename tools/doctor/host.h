// The machine itself, for whoever reads a report from afar: system, kernel, CPU, memory.
//
// Reads /etc and procfs, blocking; changes nothing. `root` stands for "/" in tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice::doctor {

struct HostFacts {
  std::string system;  // "Debian GNU/Linux 12 (bookworm)"; empty: not known, as each of these
  std::string kernel;  // "6.1.0-28-amd64"
  std::string cpu;     // "Intel(R) Xeon(R) Platinum 8480+"
  uint32_t cpus = 0;   // that the kernel runs
  uint64_t ram_mib = 0;
  std::vector<std::string> instructions;  // of those that Sluice chooses its code by
};

HostFacts gather_host(const std::filesystem::path& root);

}  // namespace sluice::doctor
