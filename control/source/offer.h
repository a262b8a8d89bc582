// A source offers its files to the destination (docs/WIRE.md 2.1, TransferOffer).
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "control/catalog/catalog.h"
#include "control/words/messages.h"
#include "control/words/terms.h"

namespace sluice::transfer {

// In parts, from this file on. `request`: of the node that began the session; null: this is the other.
std::vector<TransferOffer> offer_of(const catalog::Catalog& catalog, const Request* request,
                                    bool digests_agreed, size_t from = 0);

// The offer of a session that has not begun, before anything was agreed upon. Nothing: it depends on that, or
// is long, or the destination would be done without a byte of it.
std::optional<TransferOffer> offer_ahead(const std::vector<catalog::File>& files, const Request& request);

}  // namespace sluice::transfer
