// How a session's rate is found: docs/RATE.md says which to choose when.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::rate {

enum class Mode : uint8_t {
  kAdaptive,  // what the path carries, with a short queue; yields to TCP
  kFixed,     // a reserved rate: not looked for, but broken off by loss
  kCubic,     // shares with TCP, RFC 9438
};

inline constexpr std::array<std::string_view, 3> kModeNames{"adaptive", "fixed", "cubic"};

inline std::string_view mode_name(Mode mode) {
  return kModeNames[static_cast<size_t>(mode) % kModeNames.size()];
}
inline std::optional<Mode> mode_of(std::string_view name) {
  for (size_t i = 0; i < kModeNames.size(); ++i) {
    if (kModeNames[i] == name) return static_cast<Mode>(i);
  }
  return std::nullopt;
}

// What a session may send, and what of its path was declared.
struct Terms {
  Mode mode = Mode::kAdaptive;
  uint64_t cap_bps = 0;
  double expected_loss = 0;  // 0 to 1: of the path, whatever is sent
};

}  // namespace sluice::rate
