// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/connect.h"

#include "tools/cli/app.h"

namespace sluice::cli {

Result<std::unique_ptr<api::Client>> connect_to_node(const std::filesystem::path& directory) {
  std::error_code problem;
  if (std::filesystem::is_directory(directory, problem)) return api::Client::connect(directory);
  if (problem == std::errc::permission_denied) return not_to_be_seen(directory);
  return Error{ErrorCode::kConfiguration, "no node directory " + directory.string() +
                                              "; make one with 'sluice node init', or name yours with --node "
                                              "or SLUICE_NODE"};
}

}  // namespace sluice::cli
