// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>
#include <isa-l/crc.h>
#include <isa-l/crc64.h>

#include <algorithm>
#include <cstring>

#include "dataplane/crc/field.h"
#include "dataplane/crc/variants.h"

namespace sluice::crc {
namespace {

constexpr size_t kBlock = sizeof(__m128i);

}  // namespace

uint64_t sum_by_library(CrcKind kind, uint64_t seed, const void* data, size_t bytes) {
  if (kind == CrcKind::kCrc64Ecma) {
    return crc64_ecma_refl(seed, static_cast<const unsigned char*>(data), bytes);
  }
  // ISA-L wants a mutable pointer and an int length, and leaves the inversions to the caller.
  auto* p = static_cast<unsigned char*>(const_cast<void*>(data));
  auto crc = ~static_cast<uint32_t>(seed);
  while (bytes > 0) {
    const int part = bytes > (1U << 30) ? 1 << 30 : static_cast<int>(bytes);
    crc = crc32_iscsi(p, part, crc);
    p += part;
    bytes -= static_cast<size_t>(part);
  }
  return static_cast<uint32_t>(~crc);
}

uint64_t copy_by_library(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);   // of no bytes there may be no address
  return sum_by_library(kind, seed, to, bytes);  // what is kept, even if somebody wrote to `from` meanwhile
}

uint64_t stream_by_library(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes) {
  if (!can_stream(to, bytes)) return copy_by_library(kind, seed, from, to, bytes);
  const uint64_t crc = sum_by_library(kind, seed, from, bytes);
  stream(from, to, bytes);
  return crc;
}

uint64_t header_by_library(CrcKind kind, uint64_t seed, const uint8_t* header) {
  return sum_by_library(kind, seed, header, wire::kHeaderCoveredBytes);
}

uint64_t multiply_by_bits(CrcKind kind, uint64_t a, uint64_t b) { return multiply(field_of(kind), a, b); }

bool can_stream(const void* to, size_t bytes) { return fills_blocks(to, bytes, kBlock) && bytes > 0; }

void stream(const void* from, void* to, size_t bytes) {
  const auto* source = static_cast<const uint8_t*>(from);
  auto* target = static_cast<uint8_t*>(to);
  const auto ordinary = [&](size_t count) {
    if (count > 0) std::memcpy(target, source, count);
    source += count;
    target += count;
    bytes -= count;
  };
  // Lines that are written in part go through the caches.
  ordinary(std::min(bytes, (kLineBytes - reinterpret_cast<uintptr_t>(target) % kLineBytes) % kLineBytes));
  for (; bytes >= kLineBytes; source += kLineBytes, target += kLineBytes, bytes -= kLineBytes) {
    for (size_t at = 0; at < kLineBytes; at += kBlock)
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + at),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(source + at)));
  }
  ordinary(bytes);
}

}  // namespace sluice::crc
