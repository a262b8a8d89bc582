// CRCs and Adler-32 in plain C++, for programs that are linked statically: Debian has ISA-L as a shared
// library only.
//
// Pure functions, any thread. Eight bytes a step by tables; where the CPU can do better,
// dataplane/crc/variants.h does not come here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::crc::plain {

// Of the register itself: what comes before and after it is the caller's.
uint32_t crc32c(uint32_t state, const uint8_t* data, size_t bytes);
uint64_t crc64_ecma(uint64_t state, const uint8_t* data, size_t bytes);

uint32_t adler32(uint32_t seed, const uint8_t* data, size_t bytes);

}  // namespace sluice::crc::plain
