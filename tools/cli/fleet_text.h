// The status of a fleet as people read it. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "tools/fleet/status.h"

namespace sluice::cli {

// One line: how far all is.
std::string fleet_line(const fleet::FleetStatus& status);
// That, the slowest shard, what failed, and a line for each shard that runs or failed; `all`: for each.
std::string fleet_text(const fleet::FleetStatus& status, bool all);

}  // namespace sluice::cli
