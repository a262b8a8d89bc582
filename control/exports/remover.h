// Removes one name, and where it is a directory all that is in it, by descriptors: a directory that is
// replaced by a link meanwhile leads nowhere.
//
// It goes on after what it cannot remove: that is a problem of the result, and so is the directory around it.
// Mounts, roots of exports and what a transfer is writing are problems. Cold; blocking; one thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <memory>
#include <string>

#include "control/exports/pulse.h"
#include "control/exports/reserved.h"
#include "control/exports/walk.h"
#include "control/exports/writable.h"
#include "control/names/words.h"
#include "dataplane/base/error.h"

namespace sluice::exports {

class Remover {
 public:
  using IsRoot = std::function<bool(dev_t device, ino_t inode)>;

  // `writable`: opens up directories whose mode forbids their owner to remove names from them; or none.
  Remover(const Reserved& reserved, std::shared_ptr<WritableDirectories> writable, IsRoot is_root,
          Pulse& pulse)
      : reserved_(reserved), writable_(std::move(writable)), is_root_(std::move(is_root)), pulse_(pulse) {}

  // An error: nothing could be begun, or it was stopped (kCancelled). `shown` is the name's path, for people.
  Status remove(int directory_fd, const std::string& name, const std::string& shown);
  // A directory, if nothing is in it.
  Status remove_empty(int directory_fd, const std::string& name, const std::string& shown);
  names::Done take_done() { return std::move(done_); }

 private:
  // Why it is still there; what is no directory is removed.
  Status remove_one(int directory_fd, const std::string& name, mode_t mode, const std::string& shown);
  Status remove_tree(int directory_fd, const std::string& name);
  void look_at_name(Walk& walk);
  void leave(Walk& walk);
  bool unlink(int directory_fd, const std::string& name, int flags);  // errno tells
  bool empty_directory(int directory_fd, const std::string& name, const std::string& path);
  void problem(const std::string& path, const Error& error);
  std::string shown(const std::string& path) const;

  const Reserved& reserved_;
  const std::shared_ptr<WritableDirectories> writable_;
  std::shared_ptr<const void> opened_;  // the last one
  const IsRoot is_root_;
  Pulse& pulse_;
  std::string top_;  // for people
  names::Done done_;
  size_t problem_bytes_ = 0;  // one message has room for so many
};

}  // namespace sluice::exports
