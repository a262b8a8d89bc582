// SPDX-License-Identifier: Apache-2.0
#include "control/selection/choice.h"

namespace sluice::selection {

Status check_selection(const Selection& selection, size_t sources) {
  if (is_part(selection.part)) {
    if (const std::string_view why = wished_part_problem(selection.part); !why.empty())
      return Error{ErrorCode::kUsage, "the part of the file " + std::string(why)};
    if (sources != 1) return Error{ErrorCode::kUsage, "a part (--part) is of one file: give one source"};
  }
  if (Status status = check_rules(selection.rules); !status || selection.names.empty()) return status;
  if (sources != 1)
    return Error{ErrorCode::kUsage, "a list of names (--files-from) is of one directory: give one source"};
  return check_names(selection.names);
}

Result<Choice> Choice::make(const Selection& selection) {
  Result<Filter> filter = Filter::make(selection.rules);
  if (!filter) return filter.error();
  Choice choice;
  choice.filter_ = std::move(*filter);
  if (!selection.names.empty()) choice.names_.emplace(selection.names);
  choice.keep_ = selection.keep;
  choice.part_ = selection.part;
  choice.everything_ = selection.everything();
  return choice;
}

bool Choice::reaches(std::string_view path, bool is_directory) const {
  if (!names_) return filter_.reaches(path, is_directory);
  return (is_directory && names_->leads_to_more(path)) || lists(path, is_directory);
}

bool Choice::lists(std::string_view path, bool is_directory) const {
  if (!names_ || !filter_.takes(path, is_directory)) return false;
  if (names_->has(path)) return true;
  const size_t slash = path.rfind('/');
  const std::string_view above = slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
  // Of a directory that is left out the rest is not looked at.
  return names_->has_contents_of(above) && filter_.takes(above, true);
}

}  // namespace sluice::selection
