// A file of transfers, whatever is in it: an error, or commands. Seeds: tools/fuzz/corpus/run_file.seeds.
// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dataplane/base/check.h"
#include "tools/cli/run_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = sluice::cli::parse_run_file({reinterpret_cast<const char*>(data), size}, "f.toml");
  if (!file) return 0;
  CHECK(!file->transfers.empty(), "a file without a transfer is an error");
  for (const auto& transfer : file->transfers) {
    CHECK(transfer.flags.paths.size() >= 2, "each has a source and a destination");
    CHECK(transfer.command.find('\n') == std::string::npos, "a command is one line");
  }
  return 0;
}
