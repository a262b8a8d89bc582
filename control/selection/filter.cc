// SPDX-License-Identifier: Apache-2.0
#include "control/selection/filter.h"

#include <fmt/format.h>

namespace sluice::selection {
namespace {

Error refused(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

}  // namespace

Result<Filter> Filter::make(const std::vector<Rule>& rules) {
  if (rules.size() > kRulesMax) {
    return refused(fmt::format("filter: {} rules, at most {}; say more with fewer", rules.size(), kRulesMax));
  }
  size_t bytes = 0;
  Filter filter;
  filter.rules_.reserve(rules.size());
  for (const auto& [include, pattern] : rules) {
    // By number, since what is wrong with it may be that it cannot be shown.
    const size_t number = filter.rules_.size() + 1;
    if (pattern.empty()) {
      return refused(
          fmt::format("filter: rule {} has an empty pattern; give it one, or leave it out", number));
    }
    if (pattern.size() > kPatternBytesMax) {
      return refused(
          fmt::format("filter: the pattern of rule {} has {} bytes, at most {}; no name is that long", number,
                      pattern.size(), kPatternBytesMax));
    }
    if (pattern.find('\0') != std::string::npos) {
      return refused(fmt::format("filter: the pattern of rule {} has a zero byte; no name has one", number));
    }
    bytes += pattern.size();
    if (bytes > kRulesBytesMax) {
      return refused(
          fmt::format("filter: the patterns up to rule {} have {} bytes, at most {}; say more with less",
                      number, bytes, kRulesBytesMax));
    }
    filter.rules_.push_back({include, Pattern(pattern)});
  }
  return filter;
}

bool Filter::takes(std::string_view path, bool is_directory) const {
  if (path.empty()) return true;
  for (const CompiledRule& rule : rules_) {
    if (rule.pattern.matches(path, is_directory)) return rule.include;
  }
  return true;
}

}  // namespace sluice::selection
