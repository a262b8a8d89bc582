// Which names a session has given at its destination, for file systems to which two names are one: they fold
// the case of letters or Unicode forms, drop dots and spaces at the end, or cut what is too long. There the
// second name would replace what the first one was given, or its directory would take in the first one's.
//
// How a file system folds is not computed here but seen: a probe tells whether it folds, and device and inode
// of what has a name tell which name of the session it was given. On other file systems only the directories
// that were entered are known, by hashes.
//
// One for each session of a peer. Blocking; any thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "dataplane/base/unique_fd.h"

namespace sluice::exports {

// The names of a directory, read once; empty: not yet.
using DirectoryNames = std::set<std::string, std::less<>>;

struct Folding {
  bool folds = false;
  bool keeps = true;  // names are listed as they were made
};

class Given {
 public:
  Given() = default;
  // In tests: of every directory.
  explicit Given(const Folding& everywhere) : everywhere_(everywhere) {}

  // Of the file system, or the directory alone, as ext4 and tmpfs have it. Makes a name and removes it, the
  // first time on a file system.
  Folding folding(int directory_fd);
  // A former life of this daemon has given some of the names.
  void interrupted();

  // Leads the path `relative` beneath `tree_fd`, as far as it is there, through no directory that the session
  // entered by another name, or that stands there under another one? `tree`: the absolute path of that.
  bool may_enter(int tree_fd, const std::string& tree, const std::string& relative);

  // What follows concerns a directory with this folding(); nothing is done where it does not fold.
  // From looking until gave(): hold this, so that no other thread gives the same name; nor another process,
  // if several give names of one session (others_give_too).
  struct Alone {
    std::unique_lock<std::mutex> lock;
    UniqueFd directory;  // locked
  };
  Alone one_by_one(const Folding& folding, int directory_fd);
  // Of a session whose names processes of a user give side by side (control/users).
  void others_give_too();
  // Is what has `name` in the directory there under another name, which must not be replaced? `path`:
  // absolute, in bytes. `names`: of the directory, filled when they are needed.
  bool has_other(const Folding& folding, int directory_fd, const std::string& path, const std::string& name,
                 DirectoryNames* names = nullptr);
  void gave(const Folding& folding, int directory_fd, const std::string& path, const std::string& name);

 private:
  struct Inode {
    dev_t device = 0;
    ino_t inode = 0;
    auto operator<=>(const Inode&) const = default;
  };
  struct Directory {  // hashes of paths
    size_t parent = 0;
    size_t path = 0;
  };

  bool may_enter_one(int at, const std::string& parent, const std::string& path, const std::string& name);
  // Notes that the name was used under this path; false: its small letters were, under another one.
  bool first_of_its_letters(const std::string& path);
  bool listed_otherwise(int directory_fd, const std::string& name, const Folding& folding,
                        DirectoryNames* names);

  const std::optional<Folding> everywhere_;
  std::mutex giving_;
  std::mutex mutex_;  // of all below
  std::map<dev_t, Folding> foldings_;
  bool interrupted_ = false;
  bool others_ = false;
  std::unordered_set<size_t> entered_;  // hashes of paths
  // By hashes of paths whose last name is in small letters. The kernel may still know what had a name before,
  // if FUSE answers for a file system that folds case, and then the inode is that one's.
  std::unordered_map<size_t, size_t> letters_;
  std::map<Inode, Directory> directories_;
  std::map<Inode, std::vector<size_t>> files_;  // the hashes of their names' paths
};

}  // namespace sluice::exports
