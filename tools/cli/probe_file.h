// The file that a probe sends, with another content each time, in a directory of its own that goes with this
// object.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "dataplane/base/error.h"

namespace sluice::cli {

class ProbeFile {
 public:
  explicit ProbeFile(uint64_t bytes);
  ProbeFile(const ProbeFile&) = delete;
  ProbeFile& operator=(const ProbeFile&) = delete;
  ~ProbeFile();

  // In $TMPDIR, or /var/tmp. kNoSpace, kStorage.
  Status make(const std::filesystem::path& working_directory);
  std::filesystem::path path() const { return directory_ / "probe"; }
  // Another content: its digest as a session tells it, of the bytes before they went to the disk.
  Result<std::string> renew();

 private:
  std::vector<uint64_t> words_;
  const uint64_t bytes_;
  std::mt19937_64 chance_;
  std::filesystem::path directory_;
};

}  // namespace sluice::cli
