// Which names of a tree are taken: an ordered list of rules, each with a pattern
// (control/selection/pattern.h).
//
// The first rule that matches a name decides; a name that no rule matches is taken. These are the rules of
// rsync's --include and --exclude, with two differences: a pattern is nothing but a pattern, so that "- foo",
// "+ foo" and "!" are names, and there are no modifiers and no files of rules.
//
// A name is judged by itself. Whoever walks a tree does not enter a directory that is not taken, so that
// nothing in it is taken either, whatever the rules say of it.
//
// Pure and never changed, so any thread may ask.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "control/selection/pattern.h"
#include "control/selection/selection.h"
#include "dataplane/base/error.h"

namespace sluice::selection {

inline constexpr size_t kRulesMax = 10'000;
inline constexpr size_t kRulesBytesMax = 1
                                         << 20;  // of all patterns; compiled, they may need 32 times as much

// kUsage: what can be no pattern, and what is too much. A pattern that matches nothing is none of that.
Status check_rules(const std::vector<Rule>& rules);

class Filter {
 public:
  // Takes everything.
  Filter() = default;
  // Of rules that check_rules() refuses: its error.
  static Result<Filter> make(const std::vector<Rule>& rules);

  // `path` is relative to the root of the transfer, without a slash at either end. The root itself, the empty
  // path, is always taken.
  bool takes(std::string_view path, bool is_directory) const;
  // And whether a walk comes to it: none of the directories above it is left out.
  bool reaches(std::string_view path, bool is_directory) const;

 private:
  struct CompiledRule {
    bool include;
    Pattern pattern;
  };
  std::vector<CompiledRule> rules_;
};

}  // namespace sluice::selection
