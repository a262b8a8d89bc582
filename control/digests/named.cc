// SPDX-License-Identifier: Apache-2.0
#include "control/digests/named.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::digests {

Values expected_of(const std::shared_ptr<const Expected>& list, std::string_view path) {
  if (!list) return {};
  const auto found = list->find(path);
  return found == list->end() ? Values() : found->second;
}

Mask mask_of(const Expected& list) {
  Mask mask = 0;
  for (const auto& [path, values] : list) {
    for (const Value& value : values) mask |= bit_of(value.kind);
  }
  return mask;
}

size_t bytes_of(const Expected& list) {
  size_t bytes = 0;
  for (const auto& [path, values] : list) {
    bytes += path.size();
    for (const Value& value : values) bytes += value.hex.size();
  }
  return bytes;
}

bool good(const Value& value) {
  return static_cast<size_t>(value.kind) < kKinds.size() && value.hex.size() == hex_digits_of(value.kind) &&
         value.hex.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string difference(const Values& expected, const Values& found) {
  for (const Value& wanted : expected) {
    const auto its = std::ranges::find(found, wanted.kind, &Value::kind);
    if (its != found.end() && its->hex == wanted.hex) continue;
    return fmt::format("{} is {}, the list has {}", name_of(wanted.kind),
                       its == found.end() ? "not known" : its->hex, wanted.hex);
  }
  return "";
}

}  // namespace sluice::digests
