// Which digests of a file are joined of sums of its extents, that the dataplane and readers make while data
// move (docs/decisions/0029-digests-while-data-move.md).
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include "control/catalog/catalog.h"
#include "control/digests/named.h"
#include "dataplane/core/wire.h"
#include "dataplane/sums/summer.h"

namespace sluice::transfer {

// The session's own: it is known of each file anyway.
inline digests::Mask own_kind(wire::CrcKind kind) {
  return kind == wire::CrcKind::kCrc64Ecma ? bit_of(digests::Kind::kCrc64)
         : kind == wire::CrcKind::kCrc32c  ? bit_of(digests::Kind::kCrc32c)
                                           : 0;
}

struct SumKind {
  digests::Kind kind;
  sums::Mask sum;
};
inline constexpr SumKind kSumKinds[] = {{digests::Kind::kAdler32, board::kSumAdler32},
                                        {digests::Kind::kCrc32c, board::kSumCrc32c},
                                        {digests::Kind::kCrc64, board::kSumCrc64},
                                        {digests::Kind::kBlake3, board::kSumBlake3}};

// 0: one of these kinds cannot be joined, so that all are read for.
inline sums::Mask sums_of_kinds(digests::Mask kinds) {
  sums::Mask sums = 0;
  digests::Mask joined = 0;
  for (const SumKind& each : kSumKinds) {
    if ((kinds & bit_of(each.kind)) == 0 || (sums::available() & each.sum) == 0) continue;
    sums |= each.sum;
    joined |= bit_of(each.kind);
  }
  return joined == kinds ? sums : 0;
}

inline digests::Values values_of(digests::Mask kinds, const sums::ExtentSums& sums) {
  digests::Values values;
  const auto put = [&](digests::Kind kind, std::string hex) {
    if ((kinds & bit_of(kind)) != 0) values.push_back({.kind = kind, .hex = std::move(hex)});
  };
  std::string blake3;
  for (const uint8_t byte : sums.blake3) blake3 += fmt::format("{:02x}", byte);
  put(digests::Kind::kAdler32, fmt::format("{:08x}", sums.adler32));
  put(digests::Kind::kCrc32c, fmt::format("{:08x}", sums.crc32c));
  put(digests::Kind::kCrc64, fmt::format("{:016x}", sums.crc64));
  put(digests::Kind::kBlake3, std::move(blake3));
  return values;
}

}  // namespace sluice::transfer
