// The digest by which a decoded block is believed: the CRC-64 of its source chunks, one behind the other.
//
// Pure. Chunks that came each passed their own check; a chunk that was decoded passed none, and the digest of
// its file would tell only at the very end. So the sender says the digest of a block with its repair symbols,
// and a block that decodes to another one is thrown away. Padding is not part of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/crc/crc.h"

namespace sluice::coding {

// `symbols`: the source symbols of a block, as many as it has chunks. Each chunk has `chunk_bytes`, the last
// one `last_bytes`, which differs only where the block has the last chunk of its extent.
inline uint64_t block_digest(std::span<const uint8_t* const> symbols, uint32_t chunk_bytes,
                             uint32_t last_bytes) {
  uint64_t crc = 0;
  for (size_t i = 0; i < symbols.size(); ++i)
    crc = crc::compute(wire::CrcKind::kCrc64Ecma, crc, symbols[i],
                       i + 1 == symbols.size() ? last_bytes : chunk_bytes);
  return crc;
}

}  // namespace sluice::coding
