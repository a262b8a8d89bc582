// Holes of a file: runs of zeros for which the file system keeps no blocks. Blocking.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/range.h"

namespace sluice::exports {

// Those that are worth to be told (64 KiB and more, aligned so), in order; of more than can be told the
// largest. None where the file system does not say, which is never wrong: then its zeros are bytes like
// others.
std::vector<base::Range> holes_of(int fd, uint64_t size_bytes);

// Where the next byte is that may be anything but a zero, at or behind `offset`; `end` if there is none
// before.
uint64_t next_data(int fd, uint64_t offset, uint64_t end);

}  // namespace sluice::exports
