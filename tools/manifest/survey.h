// The regular files beneath a directory, in the order of their names, one at a time.
//
// Links are not followed. Unfinished files of transfers (.NAME.sluice-part) are none yet. One thread at a
// time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/exports/walk.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::manifest {

using FileId = std::pair<dev_t, ino_t>;
std::optional<FileId> id_of(int fd);

class Survey {
 public:
  // Says which directory, or name, cannot be read, and why.
  using OnProblem = std::function<void(const std::string& name, const std::string& reason)>;

  // `start` is beneath the directory, and stands before each name; empty: all of it. Files of `without` are
  // left out.
  Survey(UniqueFd top, std::string start, std::vector<FileId> without, OnProblem on_problem);

  // Nothing: the end.
  std::optional<std::string> next();
  // Links, pipes, devices and sockets so far.
  size_t others() const { return others_; }

 private:
  std::optional<std::string> look();
  void failed(const std::string& path, int reason);
  std::string full(const std::string& path) const;

  const std::string start_;
  const std::vector<FileId> without_;
  const OnProblem on_problem_;
  exports::Pulse pulse_;
  exports::Walk walk_;
  bool begun_ = false;
  size_t others_ = 0;
};

}  // namespace sluice::manifest
