// The digests of chunks, extents and files: CRC-64 (ECMA-182, reflected) and CRC-32C, alone or in one pass
// with a copy, by the best of the ways that this CPU has (variants.h).
//
// Pure functions, any thread. Both are in the usual form (initial value and final XOR all ones), so
// that crc(A || B) = shift(crc(A), bytes(B)) ^ crc(B): the digest of a file is the XOR over its pieces
// of shift(crc(piece), bytes behind it), in whatever order they come. Values of CRC-32C use the low
// 32 bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "dataplane/core/wire.h"

namespace sluice::crc {

using wire::CrcKind;

// What this program sums by on this CPU; chosen before main(), by the CPU's flags.
std::string_view variant();

// Continues `seed` (0 to begin) over `bytes`. Kinds that check nothing give 0.
uint64_t compute(CrcKind kind, uint64_t seed, const void* data, size_t bytes);

// The same over a datagram's header: short, and behind each payload.
uint64_t compute_header(CrcKind kind, uint64_t seed,
                        std::span<const uint8_t, wire::kHeaderCoveredBytes> header);

// compute(), while the bytes are copied to `to`, which another core reads next.
uint64_t copy(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes);
// copy() past the caches (non-temporal stores), for what no core will touch soon, or where lines come slowly
// from another core (core/store_choice.h); an ordinary copy where such stores do not pay.
// Another thread or a device sees the copy only after publish_copies().
uint64_t copy_past_caches(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes);
void publish_copies();

// What `crc` becomes when `bytes` more bytes follow, less their own CRC. O(log bytes).
uint64_t shift(CrcKind kind, uint64_t crc, uint64_t bytes);

// Of so many zero bytes. O(log bytes).
uint64_t of_zeros(CrcKind kind, uint64_t bytes);

// shift() by one fixed length, as eight table look-ups: for folding chunks in the hot path.
class ShiftTable {
 public:
  ShiftTable() = default;
  ShiftTable(CrcKind kind, uint64_t bytes);

  uint64_t operator()(uint64_t crc) const {
    return table_[0][crc & 0xFF] ^ table_[1][(crc >> 8) & 0xFF] ^ table_[2][(crc >> 16) & 0xFF] ^
           table_[3][(crc >> 24) & 0xFF] ^ table_[4][(crc >> 32) & 0xFF] ^ table_[5][(crc >> 40) & 0xFF] ^
           table_[6][(crc >> 48) & 0xFF] ^ table_[7][crc >> 56];
  }

 private:
  uint64_t table_[8][256] = {};
};

// The same digests bit by bit, straight from the definition: the oracle of the tests.
uint64_t reference(CrcKind kind, uint64_t seed, const void* data, size_t bytes);

}  // namespace sluice::crc
