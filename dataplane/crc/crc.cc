// SPDX-License-Identifier: Apache-2.0
#include "dataplane/crc/crc.h"

#include <immintrin.h>
#include <isa-l/crc.h>
#include <isa-l/crc64.h>

#include <array>
#include <cstring>

#include "dataplane/crc/field.h"
#include "dataplane/crc/fold.h"

namespace sluice::crc {
namespace {

// x^(8 * 2^k) for k = 0..63.
constexpr std::array<uint64_t, 64> make_powers(Field f) {
  std::array<uint64_t, 64> powers{};
  uint64_t p = power_of_x(f, 8);
  for (auto& power : powers) {
    power = p;
    p = multiply(f, p, p);
  }
  return powers;
}
constexpr auto kPowers64 = make_powers(kEcma);
constexpr auto kPowers32 = make_powers(kCastagnoli);

}  // namespace

uint64_t compute(CrcKind kind, uint64_t seed, const void* data, size_t bytes) {
  switch (kind) {
    case CrcKind::kCrc64Ecma:
      if (bytes >= kFoldBytesMin && kFoldWins) return fold_ecma(seed, data, bytes);
      return crc64_ecma_refl(seed, static_cast<const unsigned char*>(data), bytes);
    case CrcKind::kCrc32c: {
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
    case CrcKind::kNone:
      break;
  }
  return 0;
}

uint64_t copy(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes) {
  if (kind == CrcKind::kCrc64Ecma && bytes >= kFoldBytesMin && kFoldWins) {
    return fold_ecma_copying(seed, from, to, bytes);
  }
  if (bytes > 0) std::memcpy(to, from, bytes);  // of no bytes there may be no address
  return compute(kind, seed, to, bytes);        // what is kept, even if somebody wrote to `from` meanwhile
}

uint64_t copy_past_caches(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes) {
  const bool aligned = reinterpret_cast<uintptr_t>(to) % kStreamAlignment == 0;
  if (!aligned || bytes < kFoldBytesMin) return copy(kind, seed, from, to, bytes);
  if (kind == CrcKind::kCrc64Ecma && kFoldWins) return fold_ecma_streaming(seed, from, to, bytes);
  const uint64_t crc = compute(kind, seed, from, bytes);
  stream(from, to, bytes);
  return crc;
}

void publish_copies() { _mm_sfence(); }

uint64_t shift(CrcKind kind, uint64_t crc, uint64_t bytes) {
  if (kind == CrcKind::kNone) return 0;
  const Field f = field_of(kind);
  const auto& powers = kind == CrcKind::kCrc64Ecma ? kPowers64 : kPowers32;
  for (unsigned k = 0; bytes != 0; ++k, bytes >>= 1) {
    if (bytes & 1) crc = multiply(f, crc, powers[k]);
  }
  return crc;
}

ShiftTable::ShiftTable(CrcKind kind, uint64_t bytes) {
  const unsigned rows = kind == CrcKind::kCrc64Ecma ? 8 : kind == CrcKind::kCrc32c ? 4 : 0;
  for (unsigned row = 0; row < rows; ++row) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      table_[row][1U << bit] = shift(kind, 1ULL << (8 * row + bit), bytes);
    }
    for (unsigned value = 1; value < 256; ++value) {
      const unsigned low = value & (~value + 1);
      table_[row][value] = table_[row][low] ^ (value == low ? 0 : table_[row][value ^ low]);
    }
  }
}

uint64_t reference(CrcKind kind, uint64_t seed, const void* data, size_t bytes) {
  if (kind == CrcKind::kNone) return 0;
  const Field f = field_of(kind);
  const uint64_t ones = f.width == 64 ? ~0ULL : 0xFFFFFFFFULL;
  uint64_t crc = seed ^ ones;
  const auto* p = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < bytes; ++i) {
    crc ^= p[i];
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) ? (crc >> 1) ^ f.polynomial : crc >> 1;
  }
  return crc ^ ones;
}

}  // namespace sluice::crc
