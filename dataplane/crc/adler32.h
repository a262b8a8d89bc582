// Adler-32 (RFC 1950), by which storage of physics experiments knows its files.
//
// Pure functions, any thread. adler(A || B) = combine(adler(A), adler(B), bytes of B): pieces may be summed
// in any order, by several threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::adler32 {

inline constexpr uint32_t kOfNothing = 1;

// Continues `seed` (kOfNothing to begin) over `bytes`.
uint32_t compute(uint32_t seed, const void* data, size_t bytes);

// Of one piece and of the next, which has so many bytes.
uint32_t combine(uint32_t first, uint32_t second, uint64_t second_bytes);

// Of so many zero bytes.
uint32_t of_zeros(uint64_t bytes);

}  // namespace sluice::adler32
