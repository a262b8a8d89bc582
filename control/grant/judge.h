// A peer calls for a session that a third node has ordered: may it? docs/WIRE.md, 2.13; decision 19.
//
// Pure: what is known here, and the time, are arguments. The node asks before anything is opened.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "control/grant/grant.h"
#include "control/words/messages.h"

namespace sluice::grant {

// A call, and what this node knows of the session that it is for.
struct Call {
  const transfer::Hello& hello;
  const identity::Peer& peer;                     // who calls
  const std::optional<transfer::Granted>& known;  // of the session, which may have ended
  bool knows_session = false;                     // it runs, or is in the journal
  bool active = false;                            // it runs
  bool of_caller = false;                         // it is the caller's
  bool began_here = false;
  int64_t now_unix_ns = 0;
};

struct Judged {
  // Nothing: nobody has ordered the session. An error: the call is refused, and whoever reads the audit log
  // is told.
  Result<std::optional<transfer::Granted>> granted;
  // Somebody else shows the grant by which the session moves data: nobody knows any more who has it, so that
  // session ends, too, with this.
  std::optional<Error> ends;
};
Judged judge(const Call& call, const identity::Standing& now);

}  // namespace sluice::grant
