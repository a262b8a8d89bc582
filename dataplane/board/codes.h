// Erasure codes as bits: what a dataplane has, what a peer has, what a flow may use (docs/WIRE.md 1.12).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::board {

inline constexpr uint8_t kCodeReedSolomon = 1U << 0;
inline constexpr uint8_t kCodeRaptorQ = 1U << 1;
inline constexpr uint8_t kCodesKnown = kCodeReedSolomon | kCodeRaptorQ;

}  // namespace sluice::board
