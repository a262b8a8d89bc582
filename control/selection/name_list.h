// Names of one directory, as an operator lists them (--files-from).
//
// What rsync makes of such a list: a directory is made, with those above it; what it holds comes if its name
// ends in a slash, and only that: nothing deeper.
//
// Pure and never changed, so any thread may ask.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/error.h"

namespace sluice::selection {

inline constexpr size_t kNamesMax = 100'000;
inline constexpr size_t kNamesBytesMax = 8U << 20;
inline constexpr std::string_view kAllOfIt = "./";  // what the directory itself holds

// One name as it is carried: without what is empty or "." in it, with a slash behind it if what the directory
// holds is meant, too. kUsage: it has "..", or "." in the midst, or no file can be called so.
Result<std::string> clean_name(std::string_view name);
// Of a text, a line each, or between zero bytes. Empty lines are none, and so are lines that begin with # or
// ; kUsage: a name that cannot be, with its number; too many; none.
Result<std::vector<std::string>> read_names(std::string_view text, bool zero_bytes);
// kUsage: not what the two above make.
Status check_names(const std::vector<std::string>& names);

class NameList {
 public:
  explicit NameList(std::vector<std::string> names);  // that check_names() finds good

  // Each once, what is in a directory behind it and together.
  std::span<const std::string> names() const { return names_; }
  bool has(std::string_view path) const;              // is listed itself
  bool has_contents_of(std::string_view path) const;  // empty: of the directory that the list is of
  bool leads_to_more(std::string_view path) const;    // something in it is listed

 private:
  std::vector<std::string> names_;
};

}  // namespace sluice::selection
