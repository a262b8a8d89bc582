// A transfer between two other nodes, as it is written: NODE:SRC... NODE:PATH. This node only orders it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/proto/api.pb.h"
#include "dataplane/base/error.h"

namespace sluice::cli {

// Does this node know one of that name? It is asked only for words that could name one.
using KnowsNode = std::function<bool(const std::string&)>;

// Nothing: it is a transfer of this node. kUsage: it may be meant in two ways, or has sources at several
// places. `sends`: the command is `sluice send`, whose sources may be files here that are called so.
Result<std::optional<api::SendRequest>> two_nodes(const std::vector<std::string>& arguments, bool sends,
                                                  const KnowsNode& knows,
                                                  const std::filesystem::path& working_directory);

// Of `sluice get`, which stores here: "NODE:DIR/" with a NODE that nobody knows is a mistake, unless there is
// such a directory. kUsage.
Status check_destination_here(const std::string& word, const KnowsNode& knows,
                              const std::filesystem::path& working_directory);

}  // namespace sluice::cli
