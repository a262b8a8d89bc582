// Digests that a destination computed of the names that it stored, from what the journal has of a session.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "control/digests/named.h"
#include "control/words/records.h"

namespace sluice::node {

// Each under the path by which it was offered. Hard links have the digests of what they link to, where these
// are known.
std::vector<digests::Named> names_digested(const transfer::Saved& saved);

}  // namespace sluice::node
