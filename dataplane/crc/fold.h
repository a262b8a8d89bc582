// CRC-64 by 256-bit carry-less multiplication, alone or fused with a copy; internal to crc/.
//
// ISA-L has CRC-64 for 128-bit and for 512-bit registers, nothing between: processors with VPCLMULQDQ but
// without AVX-512 (AMD Zen 3, Intel Alder Lake) get half of what they can. Method: Gopal et al., "Fast CRC
// Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009, bit-reflected form.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::crc {

inline constexpr size_t kFoldBytesMin = 256;
inline constexpr size_t kStreamAlignment = 32;

extern const bool kFoldWins;  // this processor has 256-bit multiplication and no 512-bit one

// As compute(kCrc64Ecma). bytes >= kFoldBytesMin; only where kFoldWins.
uint64_t fold_ecma(uint64_t seed, const void* data, size_t bytes);
// The same, copying to `to`.
uint64_t fold_ecma_copying(uint64_t seed, const void* from, void* to, size_t bytes);
// The same past the caches; `to` is aligned to kStreamAlignment.
uint64_t fold_ecma_streaming(uint64_t seed, const void* from, void* to, size_t bytes);
// The copy alone, on any processor.
void stream(const void* from, void* to, size_t bytes);

}  // namespace sluice::crc
