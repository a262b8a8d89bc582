// Names of a shard that stand at the destination already, since an earlier try has brought them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/client/client.h"
#include "tools/fleet/plan_directory.h"

namespace sluice::cli {

struct FoundNames {
  std::vector<std::string> missing;  // to be sent, in their order
  uint64_t found = 0;
  uint64_t found_bytes = 0;
};

// A name is there if both sides have the same kind of thing with the same size, time and mode. Of files with
// several names all are sent again if one is missing, or else they would arrive as files of their own. Where
// the peer's list cannot be read, nothing is there.
FoundNames find_names(api::Client& client, const fleet::Plan& plan, const fleet::Place& peer,
                      const std::vector<std::string>& names);

}  // namespace sluice::cli
