// How much a figure that only rises has risen between two looks.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice::base {

// 0 where it is less than it was: whoever counts began anew.
constexpr uint64_t grown(uint64_t from, uint64_t to) { return to - std::min(from, to); }

}  // namespace sluice::base
