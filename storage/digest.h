// Folding the CRCs of an extent's chunks into the CRC of the extent, without another pass over bytes.
//
// Pure. docs/decisions/0003-file-digest-in-any-order.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "dataplane/base/check.h"
#include "dataplane/crc/crc.h"

namespace sluice::storage {

class ExtentDigest {
 public:
  ExtentDigest() = default;
  ExtentDigest(crc::CrcKind kind, uint32_t chunk_bytes)
      : kind_(kind), chunk_bytes_(chunk_bytes), by_chunk_(kind, chunk_bytes) {}

  // `crc` of what came before, `chunk_crc` of the `length` bytes that follow.
  uint64_t append(uint64_t crc, uint64_t chunk_crc, uint32_t length) const {
    DCHECK(length <= chunk_bytes_, "a chunk is no longer than the flow's chunks");
    if (crc == 0) return chunk_crc;
    return (length == chunk_bytes_ ? by_chunk_(crc) : crc::shift(kind_, crc, length)) ^ chunk_crc;
  }
  // All chunks of an extent of `length` bytes.
  uint64_t fold(const uint64_t* chunk_crcs, uint32_t length) const {
    uint64_t crc = 0;
    for (uint32_t at = 0, i = 0; at < length; at += chunk_bytes_, ++i) {
      const uint32_t left = length - at;
      crc = append(crc, chunk_crcs[i], left < chunk_bytes_ ? left : chunk_bytes_);
    }
    return crc;
  }

 private:
  crc::CrcKind kind_ = crc::CrcKind::kNone;
  uint32_t chunk_bytes_ = 1;
  crc::ShiftTable by_chunk_;
};

}  // namespace sluice::storage
