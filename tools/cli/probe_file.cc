// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/probe_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "control/hash/digest.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/base/write_all.h"
#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

uint64_t chance_seed() {
  std::random_device chance;
  return uint64_t{chance()} << 32 | chance();
}

Error cannot_make_probe(const std::string& what) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  return {full ? ErrorCode::kNoSpace : ErrorCode::kStorage,
          fmt::format("cannot make {}: {}; set TMPDIR to a directory with room for it", printable(what),
                      std::strerror(errno))};
}

}  // namespace

ProbeFile::ProbeFile(uint64_t bytes) : words_(bytes / 8 + 1), bytes_(bytes), chance_(chance_seed()) {}

ProbeFile::~ProbeFile() {
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

Status ProbeFile::make(const std::filesystem::path& working_directory) {
  const char* const wished = std::getenv("TMPDIR");
  std::string directory = (working_directory / (wished != nullptr && *wished != '\0' ? wished : "/var/tmp") /
                           "sluice-probe-XXXXXX")
                              .string();
  if (::mkdtemp(directory.data()) == nullptr) return cannot_make_probe(directory);
  directory_ = directory;
  return {};
}

Result<std::string> ProbeFile::renew() {
  for (uint64_t& word : words_) word = chance_();
  const UniqueFd file(::open(path().c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file || !base::write_all(file.get(), words_.data(), bytes_)) return cannot_make_probe(path().string());
  const auto digest = digests::begin_digest(digests::Kind::kCrc64);
  if (!digest) return digest.error();
  (*digest)->add(words_.data(), bytes_);
  return (*digest)->hex();
}

}  // namespace sluice::cli
