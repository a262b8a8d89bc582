// The disk beneath an export: which it is, where it is, how fast it is.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <system_error>

#include "dataplane/base/unique_fd.h"
#include "tools/doctor/gather.h"

namespace sluice::doctor {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr size_t kTryBlockBytes = 4U << 20;  // as an extent
constexpr uint64_t kTryBytes = 32U << 20;
constexpr std::chrono::milliseconds kTryTime{500};

std::optional<int> int_in(const fs::path& file) {
  std::ifstream in(file);
  int value = 0;
  return in >> value ? std::optional(value) : std::nullopt;
}

double seconds_since(steady_clock::time_point from) {
  return std::chrono::duration<double>(steady_clock::now() - from).count();
}

// Bytes a second; nothing: it failed. `go` moves one block at an offset.
template <typename Go>
std::optional<double> speed_of(uint64_t bytes_max, uint64_t* moved, Go go) {
  const auto from = steady_clock::now();
  uint64_t at = 0;
  while (at < bytes_max && (at == 0 || steady_clock::now() - from < kTryTime)) {
    if (!go(at)) return std::nullopt;
    at += kTryBlockBytes;
  }
  *moved = at;
  return static_cast<double>(at) / std::max(seconds_since(from), 1e-9);
}

}  // namespace

DiskFacts gather_disk(const fs::path& directory, const fs::path& root) {
  DiskFacts facts;
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) return facts;
  std::error_code error;
  const fs::path link = root / fmt::format("sys/dev/block/{}:{}", ::major(info.st_dev), ::minor(info.st_dev));
  // A partition lies in its disk's folder, and that somewhere beneath the controller's, which knows its node.
  for (fs::path at = fs::canonical(link, error); !error && at.has_relative_path() && at != root;
       at = at.parent_path()) {
    const auto block = int_in(at / "queue/logical_block_size");
    if (block && facts.block_bytes == 0) {
      facts.block_bytes = static_cast<uint32_t>(*block);
      facts.device = at.filename();
    }
    if (const auto node = int_in(at / "numa_node")) {
      facts.numa_node = *node;
      break;
    }
  }
  return facts;
}

std::string gather_mount_options(const fs::path& directory, const fs::path& root) {
  struct stat info {};
  if (::stat(directory.c_str(), &info) != 0) return {};
  const std::string device = fmt::format("{}:{}", ::major(info.st_dev), ::minor(info.st_dev));
  std::ifstream mounts(root / "proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    // ID, parent, device, ...; then, behind a lone dash: type, source, options.
    std::istringstream words(line);
    std::string word;
    for (int i = 0; i < 3; ++i) words >> word;
    if (word != device) continue;
    while (words >> word && word != "-") {
    }
    for (int i = 0; i < 3; ++i) words >> word;
    return words ? word : "";
  }
  return {};
}

void try_speed(const fs::path& directory, DiskFacts* disk) {
  const UniqueFd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC | O_DIRECT, 0600));
  const std::unique_ptr<void, decltype(&std::free)> block(std::aligned_alloc(4096, kTryBlockBytes),
                                                          &std::free);
  if (!file || !block) return;
  // What a disk could leave out, or make shorter, would measure nothing.
  std::mt19937_64 random(1);
  for (uint64_t& word : std::span(static_cast<uint64_t*>(block.get()), kTryBlockBytes / sizeof(uint64_t)))
    word = random();
  constexpr auto kWhole = static_cast<ssize_t>(kTryBlockBytes);
  uint64_t written = 0;
  const auto from = steady_clock::now();
  const auto writes = speed_of(kTryBytes, &written, [&](uint64_t at) {
    return ::pwrite(file.get(), block.get(), kTryBlockBytes, static_cast<off_t>(at)) == kWhole;
  });
  if (!writes || ::fdatasync(file.get()) != 0) return;
  disk->write_bytes_per_s = static_cast<double>(written) / std::max(seconds_since(from), 1e-9);
  uint64_t read = 0;
  disk->read_bytes_per_s = speed_of(written, &read, [&](uint64_t at) {
    return ::pread(file.get(), block.get(), kTryBlockBytes, static_cast<off_t>(at)) == kWhole;
  });
}

std::vector<std::vector<int>> gather_numa_distances(const fs::path& root) {
  std::vector<std::vector<int>> rows;
  for (int node = 0;; ++node) {
    std::ifstream in(root / fmt::format("sys/devices/system/node/node{}/distance", node));
    if (!in) return rows;
    std::vector<int>& row = rows.emplace_back();
    for (int value = 0; in >> value;) row.push_back(value);
  }
}

}  // namespace sluice::doctor
