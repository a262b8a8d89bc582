// A selection (selection.h), ready to be asked: which names of the sources are wanted?
//
// Pure and never changed, so any thread may ask.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string_view>

#include "control/selection/filter.h"
#include "control/selection/name_list.h"
#include "control/selection/selection.h"
#include "dataplane/base/error.h"

namespace sluice::selection {

// kUsage: it cannot be. `sources`: of how many it is; a list is of one.
Status check_selection(const Selection& selection, size_t sources);

class Choice {
 public:
  // Everything.
  Choice() = default;
  static Result<Choice> make(const Selection& selection);

  const Filter& filter() const { return filter_; }
  // Nothing: all that the filter takes.
  const NameList* names() const { return names_ ? &*names_ : nullptr; }
  bool everything() const { return everything_; }
  const Keep& keep() const { return keep_; }
  const FilePart& part() const { return part_; }
  // Whether a walk comes to it. Directories that lead to a listed name are made, whatever the rules say.
  bool reaches(std::string_view path, bool is_directory) const;
  // Of a list: it is wanted for itself.
  bool lists(std::string_view path, bool is_directory) const;

 private:
  Filter filter_;
  std::optional<NameList> names_;
  bool everything_ = true;
  Keep keep_;
  FilePart part_;
};

}  // namespace sluice::selection
