// SPDX-License-Identifier: Apache-2.0
#include "dataplane/crc/plain/plain.h"

#include <gtest/gtest.h>

#include <vector>

#include "dataplane/crc/adler32.h"
#include "dataplane/crc/crc.h"

namespace sluice::crc::plain {
namespace {

// Of all lengths around a step, and at all alignments: as ISA-L and the definition have it.
TEST(PlainSums, AreThoseOfTheLibrary) {
  std::vector<uint8_t> bytes(20'000);
  uint32_t state = 1;
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>((state = state * 1664525 + 1013904223) >> 24);
  for (const size_t length : {0, 1, 7, 8, 9, 63, 64, 65, 5552, 5553, 19'990}) {
    for (size_t at = 0; at < 9; ++at) {
      const uint8_t* const data = bytes.data() + at;
      EXPECT_EQ(static_cast<uint32_t>(~crc32c(~0x1234U, data, length)),
                crc::compute(CrcKind::kCrc32c, 0x1234, data, length));
      EXPECT_EQ(~crc64_ecma(~uint64_t{0x1234}, data, length),
                crc::compute(CrcKind::kCrc64Ecma, 0x1234, data, length));
      EXPECT_EQ(adler32(0x00120034, data, length), adler32::compute(0x00120034, data, length));
    }
  }
  const std::vector<uint8_t> high(1 << 20, 0xFF);
  EXPECT_EQ(adler32(1, high.data(), high.size()), adler32::compute(1, high.data(), high.size()));
}

}  // namespace
}  // namespace sluice::crc::plain
