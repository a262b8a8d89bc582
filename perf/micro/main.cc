// sluice-bench: Google Benchmark's own main, which also says which CPU it ran on and fails when a benchmark
// does.
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <fstream>
#include <string>

#include "dataplane/base/version.h"

namespace {

// The model, and the vector units that decide how fast a CRC is.
std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string name = "unknown";
  std::string units;
  for (std::string line; std::getline(file, line) && !line.empty();) {
    const size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    if (line.starts_with("model name")) name = line.substr(colon + 2);
    if (!line.starts_with("flags")) continue;
    for (const char* unit : {"avx2", "avx512f", "vpclmulqdq"}) {
      if ((line + " ").find(std::string(" ") + unit + " ") != std::string::npos)
        units += std::string(" ") + unit;
    }
  }
  return name + "," + units;
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::AddCustomContext("cpu", cpu_name());
  benchmark::AddCustomContext("version", SLUICE_VERSION);
  const size_t ran = benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return ran > 0 ? 0 : 2;  // no such benchmark
}
