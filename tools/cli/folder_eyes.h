// What happens in a folder and in the directories beneath it: inotify, and a look at everything where that is
// not enough (at the start, when its queue ran over, where another host writes).
//
// Names that begin with a dot are left alone: programs write there what is not finished. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"
#include "tools/cli/folder_hands.h"

namespace sluice::cli {

class FolderEyes {
 public:
  // `apart`: the inode of a directory beneath that is no part of it; 0: there is none.
  FolderEyes(const Folder& folder, uint64_t apart) : folder_(folder), apart_(apart) {}

  // kResources: the system has no watch for it.
  Status open();
  int fd() const { return inotify_.get(); }

  struct Change {
    std::string name;
    bool closed = false;  // otherwise it was made
  };
  struct News {
    std::vector<Change> changes;
    std::vector<std::string> directories;  // that came: look at them
    bool lost = false;                     // what else happened nobody knows
  };
  News read();

  // Calls `on_file` with each regular file beneath, and has the directories watched. False: some of it could
  // not be looked at; problem() says what.
  bool look(const std::string& directory,
            const std::function<void(const std::string& name, const struct stat& info)>& on_file);
  const std::string& problem() const { return problem_; }
  // Some directories are only looked at now and then: the system has no more watches.
  bool blind() const { return blind_; }

 private:
  void watch(const std::string& directory, int fd);
  bool fail(const std::string& directory);

  const Folder& folder_;
  const uint64_t apart_;
  UniqueFd inotify_;
  std::unordered_map<int, std::string> watched_;  // by watch, its path from the folder
  std::string problem_;
  bool blind_ = false;
};

}  // namespace sluice::cli
