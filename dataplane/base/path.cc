// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/path.h"

#include <algorithm>

namespace sluice::base {
namespace {

// What separates components is below all else that is in them.
unsigned rank(char c) { return c == '/' ? 0 : static_cast<unsigned char>(c) + 1U; }

}  // namespace

std::strong_ordering compare_paths(std::string_view one, std::string_view other) {
  const auto [a, b] = std::mismatch(one.begin(), one.end(), other.begin(), other.end());
  if (a == one.end() || b == other.end()) return one.size() <=> other.size();
  return rank(*a) <=> rank(*b);
}

std::string_view arriving_name(std::string_view directory) {
  const size_t slash = directory.rfind('/');
  if (slash == std::string_view::npos) return {};
  const std::string_view last = directory.substr(slash + 1);
  return last == "." ? std::string_view() : last;
}

}  // namespace sluice::base
