// Whose rights, quotas and places a session of this node uses: those of the peer, or of a third node that has
// ordered it; or of nobody, if an operator or user of this node has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "control/transfer/transfer.h"

namespace sluice::runtime {

// Empty: for this node itself.
inline std::string acts_for(const transfer::Transfer& transfer) {
  if (transfer.job().granted) return transfer.job().granted->issuer;
  return transfer.initiator() ? std::string() : transfer.peer();
}

}  // namespace sluice::runtime
