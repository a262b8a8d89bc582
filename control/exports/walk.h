// A way through a directory and what is in it, by descriptors: whatever is renamed, or replaced by a link,
// meanwhile, it never leads to another place than the directories that were gone into.
//
// Names come in order (SortedNames). Memory is bounded, and so is the depth; a directory that is one of those
// above it (a bind mount) is not gone into. Cold; blocking; one thread at a time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <vector>

#include "control/exports/pulse.h"
#include "control/exports/sorted_names.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::exports {

class Walk {
 public:
  static constexpr size_t kDepthMax = 128;
  static constexpr size_t kNamesBytesMax = 8U << 20;

  enum class Mounts : bool { kStay, kCross };
  enum class Step : uint8_t {
    kName,    // name() is in the directory at hand
    kLeft,    // name() is a directory that was gone into and is through; its parent is at hand
    kEnd,     // the first directory is through
    kFailed,  // errno: the directory at hand cannot be read on
  };

  Walk(UniqueFd top, Mounts mounts, Pulse& pulse);

  // Of the first directory: 0, or an errno.
  int begin();
  Step next();
  // Into the directory name(): 0; ELOOP: it is one of those above; ENAMETOOLONG: it is too deep; EXDEV:
  // something is mounted there; or what the system says.
  int enter();
  // Nothing more of the directory at hand, which counts as through.
  void skip();

  int fd() const { return levels_.back().fd.get(); }
  const std::string& name() const { return name_; }
  size_t depth() const { return levels_.size() - 1; }  // 0: of the first directory
  // From the first directory to name(), and to the directory at hand (empty: the first one).
  std::string path() const;
  std::string directory() const;
  bool& failed() { return levels_.back().failed; }   // the caller's, of the directory at hand
  bool left_failed() const { return left_failed_; }  // what it was when it was left

 private:
  struct Level {
    UniqueFd fd;
    dev_t device = 0;
    ino_t inode = 0;
    SortedNames names;
    size_t prefix_bytes = 0;  // of path_, for what is in it
    bool failed = false;
    bool skipped = false;
  };
  int add(UniqueFd fd, size_t prefix_bytes);

  const Mounts mounts_;
  Pulse& pulse_;
  UniqueFd top_;
  std::vector<Level> levels_;
  std::string path_;  // "a/b/": of the directory at hand
  std::string name_;
  bool left_failed_ = false;
};

}  // namespace sluice::exports
