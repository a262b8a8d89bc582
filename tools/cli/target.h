// What an operator writes for a source or a destination, made into what the API takes.
//
// Pure: the working directory and the question whether a local path is a directory are arguments.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "control/proto/api.pb.h"
#include "dataplane/base/error.h"
#include "dataplane/base/options/options.h"

namespace sluice::cli {

struct Target {
  std::string node;
  std::string path;  // as written: absolute, or EXPORT/relative
};

// "NODE:PATH"; the first colon divides. kUsage for anything else.
Result<Target> parse_target(std::string_view text);
// The same of any bytes, and the path may be empty.
Result<Target> split_target(std::string_view text);

// A local path as the API takes it: absolute, with "." and repeated slashes taken out, symbolic links and
// ".." left alone, a final slash kept.
Result<std::string> local_path(std::string_view text, const std::filesystem::path& working_directory);

// "memory:SIZE" -> "memory:BYTES".
Result<std::string> memory_source(std::string_view text);

// What was written is wrong: kUsage.
inline Error usage(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

// The value of a flag that is a rate, in bit/s: kUsage, with the flag's name, where it is none, or less than
// `option` takes, as where a unit was forgotten.
Result<uint64_t> rate_option(const std::string& flag, std::string_view text,
                             const options::Option& option = *options::find("rate_bps"));

// The arguments of `sluice send SRC... NODE:PATH` and `sluice get NODE:SRC... PATH`, without options. `from`:
// the nodes of `sluice get --from NODE,NODE SRC... PATH`, which all have the same sources.
Result<api::SendRequest> send_request(const std::vector<std::string>& arguments,
                                      const std::filesystem::path& working_directory);
Result<api::GetRequest> get_request(const std::vector<std::string>& arguments,
                                    const std::vector<std::string>& from,
                                    const std::filesystem::path& working_directory);

}  // namespace sluice::cli
