// Words that others wrote, e.g. names of files and what a peer says: how they are read and shown.
//
// Pure. What is shown to people, in a log, a list or a terminal, passes printable(): it then stays on its
// line, cannot steer a terminal, and is valid UTF-8.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::base {

struct Decoded {
  char32_t code = 0;
  size_t length = 0;  // 0: malformed
};
// The first code point of non-empty text; overlong forms, surrogates and values past U+10FFFF are malformed.
Decoded decode(std::string_view text);
bool is_utf8(std::string_view text);

// Control characters, marks that turn the direction of writing, and malformed UTF-8 become '?'.
std::string printable(std::string_view text);
// The same, of at most `bytes_max` (3 or more). What is cut ends in "…", and never within a character.
std::string printable(std::string_view text, size_t bytes_max);

}  // namespace sluice::base
