// A session's rate over its time, drawn with characters. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "control/proto/api.pb.h"

namespace sluice::cli {

inline constexpr size_t kChartColumnsMin = 30;

// `rows` lines in which the rate over time is drawn, and one with the times beneath; none where nothing has
// moved yet. A rate that hardly changes is drawn around what does, not from zero; its limit is a line, where
// it is near enough.
std::vector<std::string> rate_chart(const api::Session& session, size_t columns, size_t rows);

}  // namespace sluice::cli
