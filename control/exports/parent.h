// The directory into which the last name of a pack came: those of one directory come together.
//
// Cold; blocking; one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "dataplane/base/unique_fd.h"

namespace sluice::exports {

class Parent {
 public:
  // `tree_fd`: of the directory that paths are beneath; outlives it.
  explicit Parent(int tree_fd) : tree_fd_(tree_fd) {}

  // All of the tree takes "A" and "a" for one name. keeps_case: and lists names as they were made.
  void fold_case(bool keeps_case) { everywhere_ = Folding{.keeps_case = keeps_case}; }

  // The directory of `path`, made if it is missing; -1 and errno.
  int open(const std::string& path);
  void close() { now_ = {}; }

  // Of the directory that is open: has it a name that differs from this one in its letters' case alone, and
  // is the same to it? What has that name must not be replaced.
  bool has_with_other_letters(const std::string& name);
  // `name` has been given in it.
  void gave(const std::string& name);

 private:
  struct Folding {
    bool keeps_case = true;
  };
  struct Now {
    std::string path;
    UniqueFd fd;
    std::optional<Folding> folding;                           // none: "A" and "a" are two names in it
    std::map<std::string, std::string> given;                 // folded names, and as they are
    std::optional<std::set<std::string, std::less<>>> names;  // once they were looked at
  };

  const int tree_fd_;
  std::optional<Folding> everywhere_;
  Now now_;
};

}  // namespace sluice::exports
