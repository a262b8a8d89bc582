// Exports within the directory of another one: of those beneath which a path lies, the innermost decides.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sluice::exports {

// One of them, by its path in the directory: may what is wanted of it be done?
struct Nested {
  std::string path;
  bool allowed = false;
};

inline bool permitted(const std::vector<Nested>& exports, std::string_view path) {
  const Nested* best = nullptr;
  for (const Nested& each : exports) {
    const bool within =
        path.starts_with(each.path) && (path.size() == each.path.size() || path[each.path.size()] == '/');
    if (within && (best == nullptr || best->path.size() < each.path.size())) best = &each;
  }
  return best == nullptr || best->allowed;
}

}  // namespace sluice::exports
