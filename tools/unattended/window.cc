// SPDX-License-Identifier: Apache-2.0
#include "tools/unattended/window.h"

#include <algorithm>

#include "tools/unattended/words.h"

namespace sluice::unattended {
namespace {

constexpr int32_t kDayS = 86'400;

// "H:MM" or "H:MM:SS"; 24:00 is the end of the day.
std::optional<int32_t> second_of(std::string_view text) {
  int32_t sum_s = 0;
  int32_t unit_s = 3600;
  for (int part = 0; part < 3; ++part, unit_s /= 60) {
    const size_t colon = std::min(text.find(':'), text.size());
    const auto number = number_of<int32_t>(text.substr(0, colon));
    const bool digits = colon == 2 || (part == 0 && colon == 1);
    if (!number || !digits || *number < 0 || *number > (part == 0 ? 24 : 59)) return std::nullopt;
    sum_s += *number * unit_s;
    const bool last = colon == text.size();
    text.remove_prefix(std::min(colon + 1, text.size()));
    if (last) return part > 0 && sum_s <= kDayS ? std::optional(sum_s) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

std::optional<Window> Window::parse(std::string_view text) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto from_s = second_of(text.substr(0, dash));
  const auto to_s = second_of(text.substr(dash + 1));
  if (!from_s || !to_s || *from_s == *to_s) return std::nullopt;
  // What begins at 24:00 begins at 0:00.
  const Window window{.from_s = *from_s % kDayS, .to_s = *to_s};
  return window.from_s == window.to_s ? std::nullopt : std::optional(window);
}

}  // namespace sluice::unattended
