// Is there as much memory as was configured? Cold; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "dataplane/base/error.h"

namespace sluice::net {

inline uint64_t machine_ram_mib() {
  return (static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
          static_cast<uint64_t>(::sysconf(_SC_PAGESIZE))) >>
         20;
}

// kConfiguration: `what`, a key of node.toml with its value, asks for more than the machine has.
inline Status check_ram(const std::string& what, uint64_t needed_mib, uint64_t ram_mib = machine_ram_mib()) {
  if (needed_mib < ram_mib) return {};
  return Error{ErrorCode::kConfiguration,
               fmt::format("{}: {} MiB are asked for, and this machine has {} in all: lower it", what,
                           needed_mib, ram_mib)};
}

}  // namespace sluice::net
