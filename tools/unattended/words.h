// The lines of a state file: words between blanks, so that any bytes can stand in one.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::unattended {

// Blanks, control characters, '%' and bytes beyond ASCII become %XX; the empty text is "%".
std::string as_word(std::string_view bytes);
// Nothing: it is no such word.
std::optional<std::string> of_word(std::string_view word);

std::vector<std::string_view> words_of(std::string_view line);
// The whole lines of a text. What stands behind the last newline was cut off when it was written.
std::vector<std::string_view> lines_of(std::string_view text);

template <typename Number>
std::optional<Number> number_of(std::string_view word) {
  Number number{};
  const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (problem != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return number;
}

}  // namespace sluice::unattended
