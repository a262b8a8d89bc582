// Patterns of names, as shells know them.
//
// Pure. `*` stands for any bytes, `?` for one, `[a-z]` for one of a set, `[!a-z]` for one of none of them; a
// backslash takes the meaning from what follows. A set that does not end is a plain `[`. No wildcard stands
// for a `/`; a dot at the beginning of a name is nothing special. One byte is one character, as in rsync.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::names {

// Is there a wildcard in it, or what was one but for a backslash?
bool is_pattern(std::string_view path);

// Does the whole name fit? Takes time of at most their lengths' product.
bool matches(std::string_view pattern, std::string_view name);

// A path with wildcards: the directory before the first of them, as it is called, and a pattern for each
// component from there on, at least one unless the path has none.
struct Pattern {
  std::string base;
  std::vector<std::string> parts;
};
Pattern split_pattern(std::string_view path);

}  // namespace sluice::names
