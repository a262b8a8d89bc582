// SPDX-License-Identifier: Apache-2.0
#include "dataplane/sums/summer.h"

#include "dataplane/base/check.h"
#include "dataplane/crc/adler32.h"
#include "dataplane/crc/crc.h"
#include "dataplane/crc/zeros.h"
#ifdef SLUICE_BLAKE3
#include "dataplane/crates/blake3_c.h"
#endif

namespace sluice::sums {
namespace {

using board::kSumAdler32;
using board::kSumBlake3;
using board::kSumCrc32c;
using board::kSumCrc64;
using crc::CrcKind;

}  // namespace

#ifdef SLUICE_BLAKE3
static_assert(sizeof(ExtentSums::blake3) == SLUICE_BLAKE3_BYTES);

Mask available() { return board::kSumsKnown; }
Summer::Summer() : hasher_(sluice_blake3_new()) {}
Summer::~Summer() { sluice_blake3_free(hasher_); }
#else
Mask available() { return board::kSumsKnown & ~kSumBlake3; }
Summer::Summer() : hasher_(nullptr) {}
Summer::~Summer() = default;
#endif

void Summer::begin(Mask wanted, uint64_t offset, bool whole) {
  DCHECK((wanted & ~available()) == 0, "whoever asks for a sum has looked whether there is one");
  DCHECK(!whole || offset == 0, "all of an object begins at its first byte");
  wanted_ = wanted;
  whole_ = whole;
  sums_ = {};
  if ((wanted_ & kSumAdler32) != 0) sums_.adler32 = adler32::kOfNothing;
#ifdef SLUICE_BLAKE3
  if ((wanted_ & kSumBlake3) != 0) sluice_blake3_begin_at(hasher_, offset);
#endif
}

void Summer::add(const uint8_t* data, size_t bytes) {
  if ((wanted_ & kSumCrc64) != 0) sums_.crc64 = crc::compute(CrcKind::kCrc64Ecma, sums_.crc64, data, bytes);
  if ((wanted_ & kSumCrc32c) != 0)
    sums_.crc32c = static_cast<uint32_t>(crc::compute(CrcKind::kCrc32c, sums_.crc32c, data, bytes));
  if ((wanted_ & kSumAdler32) != 0) sums_.adler32 = adler32::compute(sums_.adler32, data, bytes);
  count(data, bytes);
}

void Summer::count([[maybe_unused]] const uint8_t* data, [[maybe_unused]] size_t bytes) {
#ifdef SLUICE_BLAKE3
  if ((wanted_ & kSumBlake3) != 0) sluice_blake3_update(hasher_, data, bytes);
#endif
}

// BLAKE3 takes the place of each KiB into its value, so that zeros are hashed like any other bytes.
void Summer::add_zeros(uint64_t bytes) {
  if ((wanted_ & kSumCrc64) != 0) sums_.crc64 = crc::with_zeros(CrcKind::kCrc64Ecma, sums_.crc64, bytes);
  if ((wanted_ & kSumCrc32c) != 0)
    sums_.crc32c = static_cast<uint32_t>(crc::with_zeros(CrcKind::kCrc32c, sums_.crc32c, bytes));
  if ((wanted_ & kSumAdler32) != 0) sums_.adler32 = adler32::with_zeros(sums_.adler32, bytes);
  if ((wanted_ & kSumBlake3) != 0)
    zeros::in_pieces(bytes, [this](const uint8_t* data, uint64_t some) { count(data, some); });
}

ExtentSums Summer::value() const {
  ExtentSums sums = sums_;
#ifdef SLUICE_BLAKE3
  if ((wanted_ & kSumBlake3) != 0) {
    if (whole_) {
      sluice_blake3_finish(hasher_, sums.blake3);
    } else {
      sluice_blake3_finish_subtree(hasher_, sums.blake3);
    }
  }
#endif
  return sums;
}

ExtentSums join(Mask wanted, const ExtentSums& left, const ExtentSums& right, uint64_t right_bytes,
                [[maybe_unused]] bool whole) {
  ExtentSums sums{};
  if ((wanted & kSumCrc64) != 0)
    sums.crc64 = crc::shift(CrcKind::kCrc64Ecma, left.crc64, right_bytes) ^ right.crc64;
  if ((wanted & kSumCrc32c) != 0)
    sums.crc32c =
        static_cast<uint32_t>(crc::shift(CrcKind::kCrc32c, left.crc32c, right_bytes)) ^ right.crc32c;
  if ((wanted & kSumAdler32) != 0) sums.adler32 = adler32::combine(left.adler32, right.adler32, right_bytes);
#ifdef SLUICE_BLAKE3
  if ((wanted & kSumBlake3) != 0) sluice_blake3_join(left.blake3, right.blake3, whole, sums.blake3);
#endif
  return sums;
}

}  // namespace sluice::sums
