// Which names may come when paths were asked for: what the other node sends beside them is refused.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "control/selection/choice.h"

namespace sluice::catalog {

inline constexpr std::string_view kMemoryPrefix = "memory:";  // of sources that are made up: no paths

// The name under which an honest source offers what a path leads to.
std::string_view last_name(std::string_view path);

class AskedNames {
 public:
  explicit AskedNames(const std::vector<std::string>& paths, selection::Choice choice = {});
  // A path, or one beneath a directory that was asked for. Of "DIR/" and "DIR/." all names may come.
  bool include(std::string_view path) const;
  // And what was asked for of these leaves it in.
  bool include(std::string_view path, bool is_directory) const;
  // Whatever a directory holds was asked for, without its own name.
  bool any() const { return any_; }

 private:
  std::set<std::string, std::less<>> tops_;
  bool made_up(std::string_view path) const;

  selection::Choice choice_;
  bool any_ = false;
  bool memory_ = false;
};

}  // namespace sluice::catalog
