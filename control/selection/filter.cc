// SPDX-License-Identifier: Apache-2.0
#include "control/selection/filter.h"

#include <fmt/format.h>

namespace sluice::selection {
namespace {

Error refused(std::string message) { return {ErrorCode::kUsage, std::move(message)}; }

}  // namespace

Status check_rules(const std::vector<Rule>& rules) {
  if (rules.size() > kRulesMax) {
    return refused(fmt::format("filter: {} rules, at most {}; say more with fewer", rules.size(), kRulesMax));
  }
  size_t bytes = 0;
  size_t number = 0;  // named by it, since what is wrong with one may be that it cannot be shown
  for (const Rule& rule : rules) {
    const std::string& pattern = rule.pattern;
    ++number;
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
  }
  return {};
}

Result<Filter> Filter::make(const std::vector<Rule>& rules) {
  if (Status status = check_rules(rules); !status) return status.error();
  Filter filter;
  filter.rules_.reserve(rules.size());
  for (const auto& [include, pattern] : rules) filter.rules_.push_back({include, Pattern(pattern)});
  return filter;
}

bool Filter::takes(std::string_view path, bool is_directory) const {
  if (path.empty()) return true;
  for (const CompiledRule& rule : rules_) {
    if (rule.pattern.matches(path, is_directory)) return rule.include;
  }
  return true;
}

bool Filter::reaches(std::string_view path, bool is_directory) const {
  if (rules_.empty()) return true;
  for (size_t slash = path.find('/'); slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
    if (!takes(path.substr(0, slash), true)) return false;
  }
  return takes(path, is_directory);
}

}  // namespace sluice::selection
