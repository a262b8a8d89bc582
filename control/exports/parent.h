// The directory into which the last name of a pack came: those of one directory come together.
//
// Cold; blocking; one thread at a time. While a directory that does not fold names is open, several threads
// may ask for it and give names in it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "control/exports/destination_tree.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::exports {

class Parent {
 public:
  explicit Parent(const DestinationTree& tree) : tree_(tree) {}  // which outlives it

  // The directory of `path`, made if it is missing; -1 and errno: ENOTUNIQ where the file system takes it for
  // another one, which the session has given or which was there before.
  int open(const std::string& path);
  void close() { now_ = {}; }
  // `path` itself as a directory, in the same way. 0 or an errno.
  int make(const std::string& path, UniqueFd* out);

  // Of the directory that is open (given.h).
  Given::Alone one_by_one() { return tree_.given->one_by_one(now_.folding, now_.fd.get()); }
  bool has_other(const std::string& name);
  void gave(const std::string& name);
  // May two names be one there?
  bool folds() const { return now_.folding.folds; }
  // Its mode forbade it: may it be written to now, until another one is opened?
  bool open_up();

 private:
  using Opened = std::shared_ptr<const void>;
  struct Now {
    std::string path;
    UniqueFd fd;
    Folding folding;
    DirectoryNames names;  // once they were looked at
    Opened opened;
  };
  int make(const std::string& path, UniqueFd* out, std::vector<Opened>& opened);
  int step(UniqueFd& at, const std::string& name, std::vector<Opened>& opened);
  std::string absolute(const std::string& name) const {
    return tree_.absolute(now_.path == "." ? name : now_.path + "/" + name);
  }

  const DestinationTree& tree_;
  Now now_;
  std::mutex opening_;  // of open_up()
};

}  // namespace sluice::exports
