// A part of each day, such as 22:00-06:00.
//
// Pure: what the clock shows is an argument.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace sluice::unattended {

struct Window {
  int32_t from_s = 0;  // seconds of the day
  int32_t to_s = 0;    // not within; before `from_s` it is that of the next day

  // "22:00-06:00", "08:30:00-12:00". Nothing: it is no such part, or an empty one.
  static std::optional<Window> parse(std::string_view text);

  bool contains(int32_t second_of_day) const {
    if (from_s < to_s) return second_of_day >= from_s && second_of_day < to_s;
    return second_of_day >= from_s || second_of_day < to_s;
  }
};

}  // namespace sluice::unattended
