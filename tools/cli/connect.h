// A connection to the node that the command line means.
//
// Any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>

#include "control/client/client.h"
#include "dataplane/base/error.h"

namespace sluice::cli {

// As api::Client::connect. Where there is no such directory, or this user may not see it, the error says how
// to name another: kConfiguration.
Result<std::unique_ptr<api::Client>> connect_to_node(const std::filesystem::path& directory);

}  // namespace sluice::cli
