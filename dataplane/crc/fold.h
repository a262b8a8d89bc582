// A CRC by wide carry-less multiplication, alone or in one pass with a copy; internal to crc/.
//
// Four registers of one width run over the bytes, each multiplied so that it comes to stand on the next four
// ("Folding by 4" in Gopal et al., see distance.h): enough to hide the multiplier's latency. Then they fold
// into one, which takes what is left register by register. An end that is shorter than a register is put at
// the end of one of zeros, and the sum is multiplied by just so many bytes. Each byte of `from` is read once,
// so what is summed is what is kept even if somebody writes there meanwhile; and nothing that was just stored
// is read again: such a load would wait for all stores before it, of which some go to memory.
//
// Who includes this says first for what CPU (reduce.h). `Vector` is a register's type and bytes, and what can
// be done with one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>

#include "dataplane/crc/reduce.h"
#include "dataplane/crc/variants.h"

namespace sluice::crc {
namespace {

enum class Copy : uint8_t { kNone, kOrdinary, kPastCaches };

constexpr size_t kFoldBytesMin = 256;  // shorter ones are the library's: it is as fast there

template <typename Vector, Copy kCopy>
SLUICE_FOLD typename Vector::Register take(const uint8_t* from, uint8_t* to, size_t at) {
  const typename Vector::Register v = Vector::load(from + at);
  if constexpr (kCopy == Copy::kOrdinary) Vector::store(to + at, v);
  if constexpr (kCopy == Copy::kPastCaches) Vector::stream(to + at, v);
  return v;
}

// bytes >= kFoldBytesMin
template <typename Vector, CrcKind kKind, Copy kCopy>
SLUICE_FOLD uint64_t fold(uint64_t seed, const uint8_t* from, uint8_t* to, size_t bytes) {
  using Constants = Folding<kKind>;
  using Register = typename Vector::Register;
  constexpr size_t kOne = Vector::kBytes;
  constexpr size_t kStride = 4 * kOne;
  static_assert(kStride <= kFoldBytesMin);
  // A copy past the caches begins with a part of a line: as if zeros stood in front, which a state of zero
  // does not notice.
  size_t skew = 0;
  if constexpr (kCopy == Copy::kPastCaches && Vector::kStreamsAnywhere) {
    skew = reinterpret_cast<uintptr_t>(to) % kLineBytes;
    from -= skew;
    to -= skew;
    bytes += skew;
  }
  Register a;
  if constexpr (Vector::kStreamsAnywhere) {
    a = skew == 0 ? take<Vector, kCopy>(from, to, 0) : Vector::take_begin(from, to, skew);
  } else {
    a = take<Vector, kCopy>(from, to, 0);
  }
  Register b = take<Vector, kCopy>(from, to, kOne);
  Register c = take<Vector, kCopy>(from, to, 2 * kOne);
  Register d = take<Vector, kCopy>(from, to, 3 * kOne);
  Vector::add_state(&a, &b, seed ^ Constants::kOnes, skew);
  size_t at = kStride;
  const Register by_stride = Vector::everywhere(Constants::distance(kStride));
  for (; at + kStride <= bytes; at += kStride) {
    a = Vector::folded(a, by_stride, take<Vector, kCopy>(from, to, at));
    b = Vector::folded(b, by_stride, take<Vector, kCopy>(from, to, at + kOne));
    c = Vector::folded(c, by_stride, take<Vector, kCopy>(from, to, at + 2 * kOne));
    d = Vector::folded(d, by_stride, take<Vector, kCopy>(from, to, at + 3 * kOne));
  }
  const Register by_one = Vector::everywhere(Constants::distance(kOne));
  d = Vector::folded(c, by_one, d);
  d = Vector::folded(b, Vector::everywhere(Constants::distance(2 * kOne)), d);
  d = Vector::folded(a, Vector::everywhere(Constants::distance(3 * kOne)), d);
  for (; at + kOne <= bytes; at += kOne) d = Vector::folded(d, by_one, take<Vector, kCopy>(from, to, at));
  if (const size_t left = bytes - at; left > 0) {
    uint8_t* const place = kCopy == Copy::kNone ? nullptr : to + at;
    const Register end = Vector::template take_end<kCopy != Copy::kNone>(from + at, place, left);
    d = Vector::folded(d, Vector::everywhere(Constants::kEnds[left]), end);
  }
  return reduced<kKind>(Vector::template joined<kKind>(d));
}

// Of either kind, of any length.
template <typename Vector, Copy kCopy>
SLUICE_FOLD uint64_t fold(CrcKind kind, uint64_t seed, const void* from, void* to, size_t bytes) {
  if (bytes < kFoldBytesMin) {
    return kCopy == Copy::kNone ? sum_by_library(kind, seed, from, bytes)
                                : copy_by_library(kind, seed, from, to, bytes);
  }
  const auto* const source = static_cast<const uint8_t*>(from);
  auto* const target = static_cast<uint8_t*>(to);
  return kind == CrcKind::kCrc64Ecma ? fold<Vector, CrcKind::kCrc64Ecma, kCopy>(seed, source, target, bytes)
                                     : fold<Vector, CrcKind::kCrc32c, kCopy>(seed, source, target, bytes);
}

}  // namespace
}  // namespace sluice::crc
