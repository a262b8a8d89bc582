// Whether a session may use compression: abilities that the initiator's operator wants and both nodes have
// (docs/WIRE.md 1.14 and 2.21).
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "control/words/terms.h"
#include "dataplane/base/error.h"
#include "dataplane/board/board.h"

namespace sluice::transfer {

// Initiator: `abilities` with compression as an operator asks for it.
AbilitySet want_compression(AbilitySet abilities, options::Compress compress);
// Any node: `abilities` without compression, since nothing is kept that could be restored.
AbilitySet without_compression(AbilitySet abilities);
// Any node: kIncompatible when compression is demanded and the other node does not have it.
Status check_compression(AbilitySet agreed, bool demanded);

// What a flow does.
board::Compress compress_of(AbilitySet abilities);
// The same for people: "off", "auto", "zstd".
std::string_view compress_name(AbilitySet abilities);

}  // namespace sluice::transfer
