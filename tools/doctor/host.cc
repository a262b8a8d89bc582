// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor/host.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string_view>

namespace sluice::doctor {
namespace {

constexpr std::string_view kChosenBy[] = {"sse4_2",      "pclmulqdq", "aes",        "avx2",
                                          "avx512bw",    "vaes",      "vpclmulqdq", "constant_tsc",
                                          "nonstop_tsc", "hypervisor"};

std::string without_blanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\"");
  const size_t end = text.find_last_not_of(" \t\"");
  return begin == std::string_view::npos ? std::string() : std::string(text.substr(begin, end - begin + 1));
}

// What stands behind `name` and a separator; whether this line is of that name.
bool takes(std::string_view line, std::string_view name, char separator, std::string* value) {
  const size_t at = line.find(separator);
  if (at == std::string_view::npos || without_blanks(line.substr(0, at)) != name) return false;
  *value = without_blanks(line.substr(at + 1));
  return true;
}

}  // namespace

HostFacts gather_host(const std::filesystem::path& root) {
  HostFacts facts;
  std::string line;
  std::string value;
  for (std::ifstream file(root / "etc/os-release"); std::getline(file, line);) {
    if (takes(line, "PRETTY_NAME", '=', &value)) facts.system = value;
  }
  std::ifstream release(root / "proc/sys/kernel/osrelease");
  std::getline(release, facts.kernel);
  for (std::ifstream file(root / "proc/cpuinfo"); std::getline(file, line);) {
    if (takes(line, "model name", ':', &value)) {
      facts.cpu = value;
      ++facts.cpus;
    } else if (facts.instructions.empty() && takes(line, "flags", ':', &value)) {
      std::istringstream words(value);
      for (std::string word; words >> word;) {
        if (std::ranges::find(kChosenBy, word) != std::end(kChosenBy)) facts.instructions.push_back(word);
      }
    }
  }
  for (std::ifstream file(root / "proc/meminfo"); std::getline(file, line);) {
    uint64_t kib = 0;
    if (takes(line, "MemTotal", ':', &value) &&
        std::from_chars(value.data(), value.data() + value.size(), kib).ec == std::errc()) {
      facts.ram_mib = kib >> 10;
    }
  }
  return facts;
}

}  // namespace sluice::doctor
