// What the nodes of a world have in which a third one has ordered a session: their keys, whom they trust, and
// the grant.
//
// Keys are made anew for each process. Nothing that is traced or drawn depends on them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>

#include "control/grant/grant.h"
#include "tools/sim/nodes.h"

namespace sluice::sim {

struct Papers {
  static constexpr int64_t kEndsAfterNs = 3'600'000'000'000;

  std::array<identity::Peer, kNodesMax> peers;  // as all others know them
  std::array<identity::Standing, kNodesMax> standing;
  transfer::Granted granted;  // kSource holds it, for kDestination
  grant::Grant grant;
};
// For a session of this id, signed at this time.
Papers make_papers(const std::string& session, const std::string& destination, int64_t unix_ns);

}  // namespace sluice::sim
