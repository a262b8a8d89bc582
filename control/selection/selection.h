// What of the sources is wanted, as an operator asked for it.
//
// Plain data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "control/selection/file_part.h"
#include "control/selection/keep.h"

namespace sluice::selection {

struct Rule {
  bool include = false;
  std::string pattern;

  bool operator==(const Rule&) const = default;
};

struct Selection {
  std::vector<Rule> rules;  // the first that matches a name decides; filter.h

  std::vector<std::string> names;  // of the one source, which is a directory; none: all of it. name_list.h

  Keep keep;  // of each name that is taken

  FilePart part;  // of the one source, which is a file

  bool everything() const { return rules.empty() && names.empty(); }
};

// To and from messages: those of the peer, the journal and the API have the same fields `rules` and `names`.
std::vector<Rule> rules_of(const auto& message) {
  std::vector<Rule> rules;
  for (const auto& rule : message.rules())
    rules.push_back({.include = rule.include(), .pattern = rule.pattern()});
  return rules;
}
Selection selection_of(const auto& message) {
  return {.rules = rules_of(message),
          .names = {message.names().begin(), message.names().end()},
          .keep = {},
          .part = {}};
}
void put_rule(const Rule& rule, auto* to) {
  auto* const one = to->add_rules();
  one->set_include(rule.include);
  one->set_pattern(rule.pattern);
}
void put_selection(const Selection& selection, auto* to) {
  for (const Rule& rule : selection.rules) put_rule(rule, to);
  for (const std::string& name : selection.names) to->add_names(name);
}

}  // namespace sluice::selection
