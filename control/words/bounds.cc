// SPDX-License-Identifier: Apache-2.0
#include "control/words/bounds.h"

#include <fmt/format.h>

#include "control/words/terms.h"

namespace sluice::transfer {

Status check_bytes(uint64_t bytes, uint32_t extent_bytes) {
  if (bytes / extent_bytes <= kExtentsMax) return {};
  const uint64_t most = kExtentsMax * extent_bytes;
  std::string message = fmt::format(
      "the files have {} bytes, and a session takes at most {} TiB in extents of {} KiB: send fewer "
      "or smaller files in one session",
      bytes, most >> 40, extent_bytes >> 10);
  if (extent_bytes < wire::kExtentBytesMax)
    message += ", or raise [dataplane] extent_bytes at both nodes (at most 1MiB)";
  return Error{ErrorCode::kResources, std::move(message)};
}

bool good_partition(uint64_t partition_bytes, uint32_t extent_bytes) {
  constexpr uint64_t kPartitionBytesMax = 1ULL << 40;
  return partition_bytes != 0 && partition_bytes % extent_bytes == 0 && partition_bytes <= kPartitionBytesMax;
}

}  // namespace sluice::transfer
