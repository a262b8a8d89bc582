// What a command that stays remembers over its restarts: lines in a file, appended as things happen, and
// written anew, in one step, when most of them are of the past.
//
// One process at a time holds it. What stands behind its last newline was cut off by a crash, and is left
// out. A file that is no state is refused, and stays as it is. A state that was removed while it is open is
// written anew from what the command knows, which is all of it; another file that has taken its place is
// somebody's, and ends the command.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::cli {

class StateFile {
 public:
  // Whether a state of this command may begin with this line.
  using IsFirst = std::function<bool(std::string_view line)>;
  // Makes the file, and its directory, where there is none. kConfiguration: that cannot be, another process
  // holds it, or what stands there is no state of this command.
  static Result<StateFile> open(const std::filesystem::path& file, const IsFirst& is_first);

  const std::string& text() const { return text_; }  // as it was opened
  bool fresh() const { return text_.empty(); }
  const std::filesystem::path& path() const { return file_; }

  // `durable`: it is on the disk when this returns. Now and then, and where the file was removed, it is
  // replaced by `all()`. Without lines it only looks after the file. kStorage, kNoSpace; kConfiguration:
  // another file has taken its place, or another process its lock.
  Status append(std::string_view lines, bool durable, const std::function<std::string()>& all);

 private:
  static Result<UniqueFd> take_lock(const std::filesystem::path& file);
  Status replace(const std::string& text);

  std::filesystem::path file_;
  UniqueFd lock_;
  UniqueFd fd_;
  std::string text_;
  size_t bytes_ = 0;        // of the file
  size_t bytes_least_ = 0;  // when it was written anew
};

// Where the state of a command is kept that says nothing else: $STATE_DIRECTORY (systemd), else
// $XDG_STATE_HOME/sluice, else ~/.local/state/sluice. Its name is made of `of`: what the command line means.
// kUsage: there is no such place.
Result<std::filesystem::path> usual_state_file(const std::string& command,
                                               const std::vector<std::string>& of);

}  // namespace sluice::cli
