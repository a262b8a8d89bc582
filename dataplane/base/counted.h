// Numbers of things in sentences for people: "1 worker", "2 workers".
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace sluice::base {

// `many`: where it is not `one` with an s.
template <std::integral Number>
std::string counted(Number number, std::string_view one, std::string_view many = "") {
  std::string text = std::to_string(number) + " ";
  if (number == 1) return text + std::string(one);
  return text + (many.empty() ? std::string(one) + "s" : std::string(many));
}

}  // namespace sluice::base
