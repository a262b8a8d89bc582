// Times that tests write again and again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice {

inline constexpr uint64_t kMs = 1'000'000;          // ns
inline constexpr uint64_t kSecond = 1'000'000'000;  // ns

}  // namespace sluice
