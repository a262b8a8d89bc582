// A peer calls for a session that a third node has ordered: may it? docs/WIRE.md, 2.13; decision 19.
//
// On the loop's thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "control/grant/grant.h"
#include "control/node/sessions.h"

namespace sluice::node {

// What a call says of a grant, and what this node knows under its id.
struct GrantShown {
  const transfer::Hello& hello;
  const identity::Peer& peer;                     // who calls
  const std::optional<transfer::Granted>& known;  // of the session under this id
  bool knows_session = false;
  bool of_caller = false;  // it is the caller's
  bool began_here = false;
};

// Nothing: nobody has ordered the session. An error: the call is refused, and whoever reads the audit log is
// told.
Result<std::optional<transfer::Granted>> judge_grant(const GrantShown& shown, const identity::Standing& now);

// Somebody else shows the grant by which this session moves data: nobody knows any more who has it, so it
// ends.
bool is_second_presenter(const GrantShown& shown);

}  // namespace sluice::node
