// The text of a wildcard pattern as tokens: what each of them takes. The language is told in
// control/selection/pattern.h.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace sluice::selection {

using Bytes = std::bitset<256>;

struct Token {
  Bytes takes;
  bool star = false;  // any number of them; else exactly one. Two such never follow each other
};

// Nothing when it is broken: a class that is not closed or has an unknown [:name:], or a lone \ at the end.
std::optional<std::vector<Token>> tokens_of(std::string_view text);

}  // namespace sluice::selection
