// How a session's rate is found: docs/RATE.md says which to choose when.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "dataplane/base/options/options.h"

namespace sluice::rate {

using Mode = options::RateMode;
inline constexpr auto& kModeNames = options::kWords<Mode>;
inline std::string_view mode_name(Mode mode) { return options::word_of(mode); }

// What a session may send, and what of its path was declared.
struct Terms {
  Mode mode = Mode::kAdaptive;
  uint64_t cap_bps = 0;
  double expected_loss = 0;  // 0 to 1: of the path, whatever is sent
};

}  // namespace sluice::rate
