// How much one session may hold, and how it may be cut.
//
// Pure. Checked before anything is made that grows with the number of extents.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dataplane/base/error.h"

namespace sluice::transfer {

// kResources: so many bytes are too many extents for a session.
Status check_bytes(uint64_t bytes, uint32_t extent_bytes);
// Whole extents, and not too many.
bool good_partition(uint64_t partition_bytes, uint32_t extent_bytes);

}  // namespace sluice::transfer
