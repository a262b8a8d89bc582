// Which erasure codes a session may use: abilities that the initiator's operator wants and both nodes have
// (docs/WIRE.md 1.12 and 2.2).
//
// Pure. A board names codes as bits (dataplane/board/codes.h): what its dataplane was built with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "control/words/terms.h"
#include "dataplane/base/error.h"

namespace sluice::transfer {

// An operator asks for a code that is to be used wherever anything is lost.
bool demands_code(options::Fec fec);

// Initiator: `abilities` with the codes of this node that `fec` allows, and no others. kConfiguration: one is
// demanded that this node does not have.
Result<AbilitySet> want_codes(AbilitySet abilities, options::Fec fec, uint32_t codes_here);
// Any node: `abilities` without the codes that it does not have.
AbilitySet with_codes_here(AbilitySet abilities, uint32_t codes_here);
// Any node: kIncompatible when a code is demanded and none is left.
Status check_codes(AbilitySet agreed, bool demanded);

// The codes that a flow may use, as bits.
uint8_t codes_of(AbilitySet abilities);
// The same for people: "off", "auto", or the code that is demanded.
std::string_view fec_name(AbilitySet abilities);

}  // namespace sluice::transfer
