// The hidden directory in which the names of a pack are made before they are given.
//
// A directory that the tree lacks is made here as it is to be, with its names in it, and gets its place by
// one rename: of a file of 4 KiB in a new tree, a rename of its own was a third of the work
// (docs/performance/where-the-time-goes.md). What belongs into a directory that is there already is made
// under a number, and renamed by itself. So is all of a directory whose parent hands on to what is made in it
// something that this one does not: a group, a default ACL, flags.
//
// Cold; blocking; one thread at a time, but that several may make names at once: choose_number(), at() and
// discard(), each of numbers of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "control/exports/given.h"
#include "dataplane/base/check.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::exports {

class Staging {
 public:
  // `name`: within the tree's directory, which outlives it.
  Staging(int tree_fd, std::string name) : tree_fd_(tree_fd), name_(std::move(name)) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Anew, for so many names. 0, or an errno.
  int make(size_t names, Given& given);
  void remove();
  void close() { fd_.reset(); }
  // What a crash may have left; nothing is fine.
  static void remove(int tree_fd, const std::string& name);

  const std::string& name() const { return name_; }
  int fd() const { return fd_.get(); }

  // Where, beneath fd(), the name is to be made that has this number and this path in the tree.
  const std::string& choose(size_t number, const std::string& path);
  // Where it is to be made if something has that name already: under its number.
  const std::string& choose_number(size_t number);
  // Where it was made.
  const std::string& at(size_t number) const {
    DCHECK(number < at_.size(), "it was made for so many names");
    return at_[number];
  }
  // It failed halfway: nothing of it is given.
  void discard(size_t number);

  // Gives the whole directories their places, outer ones first, and tells the numbers of all that is in them.
  // What cannot be given whole is left to be given by itself, and to fail by itself. The first time only.
  // `open_parent`: of a path in the tree, made if it is missing, or -1.
  void give_directories(const std::function<int(const std::string&)>& open_parent,
                        const std::function<void(size_t)>& given);

 private:
  // A directory that the tree lacked.
  struct Whole {
    std::string name;  // here; nothing was made yet: empty
    std::vector<size_t> numbers;
    bool broken = false;  // something in it is not to be given
  };
  using Directories = std::map<std::string, std::optional<Whole>>;  // by path; none: the tree has it

  void forget_directories();
  Whole* whole_of(const std::string& path);
  Whole* take_back(size_t number);

  const int tree_fd_;
  const std::string name_;
  UniqueFd fd_;
  bool folds_ = false;  // two names of a pack may be one in the tree's directory
  Directories directories_;
  Directories::iterator last_ = directories_.end();  // names of a directory come together
  std::vector<std::string> at_;
  std::mutex mutex_;            // while names are made: of the numbers in each whole directory
  std::vector<Whole*> wholes_;  // for which each number was chosen; nullptr: for none
};

}  // namespace sluice::exports
