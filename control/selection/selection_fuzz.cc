// Any rules, any name: what is accepted is answered, in time, and hangs together. Where the C library knows
// the same language (one anchored pattern without ** and classes) it must say the same.
// SPDX-License-Identifier: Apache-2.0
#include <fnmatch.h>

#include <algorithm>

#include "control/selection/filter.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

using namespace sluice;
using selection::Filter;
using selection::Rule;

bool matches(const std::string& pattern, const std::string& path, bool is_directory) {
  const auto filter = Filter::make({{.include = false, .pattern = pattern}});
  return filter && !filter->takes(path, is_directory);
}

// Without slashes at its ends and without zero bytes, as the interface wants it.
std::string name(std::string text) {
  std::replace(text.begin(), text.end(), '\0', '0');
  const size_t begin = text.find_first_not_of('/');
  if (begin == std::string::npos) return "a";
  return text.substr(begin, text.find_last_not_of('/') + 1 - begin);
}

void check_against_the_library(const std::string& pattern, const std::string& path) {
  constexpr int kStarsMax = 5;  // it tries one way after another
  const bool same_language =
      pattern.size() > 1 && pattern.front() == '/' && pattern.back() != '/' &&
      pattern.find_first_of("*?") != std::string::npos && pattern.find('[') == std::string::npos &&
      pattern.find("**") == std::string::npos && std::count(pattern.begin(), pattern.end(), '*') <= kStarsMax;
  if (!same_language) return;
  const bool theirs = ::fnmatch(pattern.c_str() + 1, path.c_str(), FNM_PATHNAME) == 0;
  fuzz::require(matches(pattern, path, false) == theirs, "matches what fnmatch(3) does");
}

// Every byte of the name escaped, and a wildcard that stands for nothing.
void check_escaped(const std::string& path) {
  std::string escaped = "/";
  for (const char each : path) {
    if (each != '/') escaped += '\\';
    escaped += each;
  }
  escaped += '*';
  if (escaped.size() > selection::kPatternBytesMax) return;
  fuzz::require(matches(escaped, path, false), "a name matches itself");
  fuzz::require(!matches(escaped, path + "/a", false), "and not what is in it");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  std::vector<Rule> rules(input.below(4));
  for (Rule& rule : rules) {
    rule.include = input.flag();
    rule.pattern = input.text(input.below(64));
  }
  const bool is_directory = input.flag();
  const std::string path = name(input.text(input.below(255)));
  const auto rest = input.rest();
  rules.push_back({.include = input.flag(), .pattern = {rest.begin(), rest.end()}});

  const auto filter = Filter::make(rules);
  if (!filter) {
    fuzz::require(filter.error().message.find('\n') == std::string::npos, "an error is one line");
    return 0;
  }
  bool expected = true;
  for (auto rule = rules.rbegin(); rule != rules.rend(); ++rule) {
    if (matches(rule->pattern, path, is_directory)) expected = rule->include;
    check_against_the_library(rule->pattern, path);
    if (matches(rule->pattern, path, false)) {
      fuzz::require(matches(rule->pattern, path, true), "what matches a file matches a directory");
    }
  }
  fuzz::require(filter->takes(path, is_directory) == expected, "the first rule that matches decides");
  check_escaped(path);
  return 0;
}
