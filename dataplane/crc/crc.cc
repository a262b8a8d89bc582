// SPDX-License-Identifier: Apache-2.0
#include "dataplane/crc/crc.h"

#include <immintrin.h>

#include <array>
#include <cstring>
#include <iterator>

#include "dataplane/crc/field.h"
#include "dataplane/crc/variants.h"

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

// The one that runs anywhere, until the flags were looked at, before main().
constinit const Variant* chosen = std::end(kVariants) - 1;
[[maybe_unused]] const bool kHasChosen = (chosen = &variant_for(flags_of_this_cpu()), true);

// Nothing is kept of the bytes but that they came to this core.
void read(const void* data, size_t bytes) {
  const auto* at = static_cast<const uint8_t*>(data);
  __m128i sum = _mm_setzero_si128();
  for (; bytes >= sizeof sum; at += sizeof sum, bytes -= sizeof sum)
    sum = _mm_xor_si128(sum, _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
  for (; bytes > 0; ++at, --bytes) sum = _mm_xor_si128(sum, _mm_set1_epi8(static_cast<char>(*at)));
  asm volatile("" : : "x"(sum));
}

}  // namespace

std::string_view variant() { return chosen->name; }

uint64_t compute(CrcKind kind, uint64_t seed, const void* data, size_t bytes) {
  if (wire::checks(kind)) return chosen->compute(kind, seed, data, bytes);
  if (kind == CrcKind::kRead) read(data, bytes);
  return 0;
}

uint64_t compute_header(CrcKind kind, uint64_t seed,
                        std::span<const uint8_t, wire::kHeaderCoveredBytes> header) {
  return wire::checks(kind) ? chosen->compute_header(kind, seed, header.data()) : 0;
}

uint64_t copy(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes) {
  if (wire::checks(kind)) return chosen->copy(kind, seed, from, to, bytes);
  if (bytes > 0) std::memcpy(to, from, bytes);  // of no bytes there may be no address
  return 0;
}

uint64_t copy_past_caches(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes) {
  if (wire::checks(kind)) return chosen->copy_past_caches(kind, seed, from, to, bytes);
  if (!can_stream(to, bytes)) return copy(kind, seed, from, to, bytes);
  stream(from, to, bytes);
  return 0;
}

void publish_copies() { _mm_sfence(); }

uint64_t shift(CrcKind kind, uint64_t crc, uint64_t bytes) {
  if (!wire::checks(kind)) return 0;
  const auto& powers = kind == CrcKind::kCrc64Ecma ? kPowers64 : kPowers32;
  for (unsigned k = 0; bytes != 0; ++k, bytes >>= 1) {
    if (bytes & 1) crc = chosen->multiply(kind, crc, powers[k]);
  }
  return crc;
}

// Of nothing the register is all ones, and zeros only shift it; it is read inverted.
uint64_t of_zeros(CrcKind kind, uint64_t bytes) {
  if (!wire::checks(kind)) return 0;
  const uint64_t ones = kind == CrcKind::kCrc32c ? UINT32_MAX : UINT64_MAX;
  return shift(kind, ones, bytes) ^ ones;
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
  if (!wire::checks(kind)) return 0;
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
