// What of the sources is wanted, as an operator asked for it.
//
// Plain data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace sluice::selection {

struct Rule {
  bool include = false;
  std::string pattern;
};

struct Selection {
  std::vector<Rule> rules;  // the first that matches a name decides; filter.h

  std::vector<std::string> names;  // of the one source, which is a directory; none: all of it. name_list.h

  bool everything() const { return rules.empty() && names.empty(); }
};

}  // namespace sluice::selection
