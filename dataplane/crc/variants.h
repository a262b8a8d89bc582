// The ways to sum and copy that this program has, and which of them a CPU gets; internal to crc/, for its
// tests and for benchmarks. Everybody else calls crc.h, which uses the one that was chosen at the start.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dataplane/core/wire.h"

namespace sluice::crc {

using wire::CrcKind;

inline constexpr size_t kLineBytes = 64;  // of cache

// Nothing is left over before the first such block nor behind the last. Where ordinary stores and those past
// the caches meet in one line, a chunk after the other, each waits for memory: then the whole copy is
// ordinary.
inline bool fills_blocks(const void* to, size_t bytes, size_t block) {
  return reinterpret_cast<uintptr_t>(to) % block == 0 && bytes % block == 0;
}

// What decides. Each says that the CPU has it and that the kernel keeps its registers.
struct CpuFlags {
  bool pclmulqdq = false;
  bool avx2 = false;
  bool vpclmulqdq = false;
  bool avx512f = false;
  bool avx512bw = false;
  bool avx512vbmi = false;
};
CpuFlags flags_of_this_cpu();

// The functions are those of crc.h of the same names, for kinds other than kNone.
struct Variant {
  std::string_view name;  // as `sluice node show` prints it; at most 15 characters of a to z and 0 to 9
  bool (*runs_on)(const CpuFlags&);
  uint64_t (*compute)(CrcKind kind, uint64_t seed, const void* data, size_t bytes);
  uint64_t (*copy)(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes);
  uint64_t (*copy_past_caches)(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes);
  uint64_t (*compute_header)(CrcKind kind, uint64_t seed, const uint8_t* header);
  uint64_t (*multiply)(CrcKind kind, uint64_t a, uint64_t b);  // as that of field.h
};
extern const Variant kVariants[4];  // the best first; the last runs on any CPU
const Variant& variant_for(const CpuFlags& flags);

// By ISA-L, and memcpy or non-temporal stores of 16 bytes in a pass of their own.
uint64_t sum_by_library(CrcKind kind, uint64_t seed, const void* data, size_t bytes);
uint64_t copy_by_library(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes);
uint64_t stream_by_library(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes);
uint64_t header_by_library(CrcKind kind, uint64_t seed, const uint8_t* header);
uint64_t multiply_by_bits(CrcKind kind, uint64_t a, uint64_t b);
// Nothing is written in part of a block.
bool can_stream(const void* to, size_t bytes);
// The copy alone past the caches, to any place.
void stream(const void* from, void* to, size_t bytes);

// By PCLMULQDQ.
uint64_t header_by_words(CrcKind kind, uint64_t seed, const uint8_t* header);
uint64_t multiply_by_words(CrcKind kind, uint64_t a, uint64_t b);

// By VPCLMULQDQ on registers of 256 bits (fold.h).
uint64_t sum_avx2(CrcKind kind, uint64_t seed, const void* data, size_t bytes);
uint64_t copy_avx2(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes);
uint64_t stream_avx2(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes);

// By VPCLMULQDQ on registers of 512 bits (fold.h).
uint64_t sum_avx512(CrcKind kind, uint64_t seed, const void* data, size_t bytes);
uint64_t copy_avx512(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes);
uint64_t stream_avx512(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes);

}  // namespace sluice::crc
