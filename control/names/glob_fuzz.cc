// Any pattern and any name: what matches() says is what the definition says, tried by brute force.
// SPDX-License-Identifier: Apache-2.0
#include "control/names/glob.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

using namespace sluice;

// By the definition, for patterns without sets.
bool by_hand(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern[0] == '*') {
    for (size_t taken = 0; taken <= name.size(); ++taken) {
      if (by_hand(pattern.substr(1), name.substr(taken))) return true;
    }
    return false;
  }
  if (name.empty()) return false;
  const bool escaped = pattern[0] == '\\' && pattern.size() > 1;
  const bool fits = pattern[0] == '?' || pattern[escaped ? 1 : 0] == name[0];
  return fits && by_hand(pattern.substr(escaped ? 2 : 1), name.substr(1));
}

std::string quoted(std::string_view name) {
  std::string pattern;
  for (const char c : name) {
    pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  const std::string pattern = input.text(input.take<uint8_t>());
  const std::string name = input.text(input.take<uint8_t>());
  const bool found = names::matches(pattern, name);
  if (pattern.find('[') == std::string::npos && pattern.size() <= 8 && name.size() <= 12)
    fuzz::require(found == by_hand(pattern, name), "as the definition says");
  fuzz::require(names::matches("*", name), "a star fits anything");
  fuzz::require(names::matches(quoted(name), name), "a name with backslashes fits itself");
  if (found) fuzz::require(names::matches("*" + pattern, "x" + name), "and behind a star as well");
  const names::Pattern split = names::split_pattern(pattern);
  for (const std::string& part : split.parts)
    fuzz::require(!part.empty() && part.find('/') == std::string::npos, "a pattern for one component");
  fuzz::require(!split.parts.empty() || pattern.find_first_not_of('/') == std::string::npos, "at least one");
  return 0;
}
