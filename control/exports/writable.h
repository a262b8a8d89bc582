// Directories of a tree whose mode forbids their owner to change names in them: opened up for a moment, as
// rsync does, and given back their mode.
//
// A note on the disk stands before each change, so that the next life of this daemon gives back what a killed
// one could not. One for each node; any thread; blocking.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "dataplane/base/unique_fd.h"

namespace sluice::exports {

class WritableDirectories : public std::enable_shared_from_this<WritableDirectories> {
 public:
  // `notes`: a file; empty: nothing is noted.
  explicit WritableDirectories(std::filesystem::path notes = {}) : notes_path_(std::move(notes)) {}

  // What a former life left open. Returns how many got back their mode.
  size_t give_back();

  // As long as what is returned lives. Nothing: this process may not change its mode, or that would not help.
  // `directory_fd` may be one of O_PATH.
  std::shared_ptr<const void> open_up(int directory_fd);
  // The same where it is needed; otherwise nothing.
  std::shared_ptr<const void> if_needed(int directory_fd);
  // The mode that the directory is to have, also after it was opened up. 0 or an errno.
  int set_mode(int directory_fd, mode_t mode);

 private:
  struct Open {
    UniqueFd fd;
    mode_t mode = 0;  // that it gets back
    mode_t opened = 0;
    uint32_t users = 0;
  };
  using Inode = std::pair<dev_t, ino_t>;

  void close(Inode inode);
  bool note(const std::string& line, bool durable);

  const std::filesystem::path notes_path_;
  std::mutex mutex_;
  UniqueFd notes_;
  std::map<Inode, Open> open_;
};

}  // namespace sluice::exports
