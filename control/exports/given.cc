// SPDX-License-Identifier: Apache-2.0
#include "control/exports/given.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <optional>
#include <thread>

#include "control/exports/beneath.h"
#include "control/exports/temporary.h"

namespace sluice::exports {
namespace {

size_t hash_of(const std::string& path) { return std::hash<std::string>()(path); }

// Where letters of either case are the same the last name is; those before it have been looked at.
size_t hash_of_letters(std::string path) {
  for (size_t i = path.rfind('/') + 1; i < path.size(); ++i)
    path[i] = path[i] >= 'A' && path[i] <= 'Z' ? static_cast<char>(path[i] - 'A' + 'a') : path[i];
  return hash_of(path);
}

// The probe, with a letter that has a case and two Unicode forms, and names that some file systems take for
// it. The last one differs behind what an 8.3 name holds.
constexpr const char* kProbe = "Sluice-\xC3\x89-0123456789";
constexpr const char* kSame[] = {
    "sLUICE-\xC3\x89-0123456789",  "Sluice-\xC3\xA9-0123456789",  "Sluice-E\xCC\x81-0123456789",
    "Sluice-\xC3\x89-0123456789.", "Sluice-\xC3\x89-0123456789 ", "Sluice-\xC3\x89-012345678x",
};

// One directory of a file system that otherwise tells letters apart.
bool folds_by_itself(int directory_fd) {
  int flags = 0;
  return ::ioctl(directory_fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL) != 0;
}

bool there(int directory_fd, const char* name) {
  struct stat info {};
  return ::fstatat(directory_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

// In a directory of its own, so that its list is short. Nothing: that cannot be told here and now.
std::optional<Folding> probe(int directory_fd) {
  static std::atomic<uint64_t> serial = 0;
  const std::string place = temporary_name(fmt::format("sluice-names-{}-{}", ::getpid(), serial++));
  ::unlinkat(directory_fd, place.c_str(), AT_REMOVEDIR);  // of a process that had this number
  if (::mkdirat(directory_fd, place.c_str(), 0700) != 0) return std::nullopt;
  std::optional<Folding> found;
  const UniqueFd at = open_beneath(directory_fd, place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  UniqueFd made(at ? ::openat(at.get(), kProbe, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600)
                   : -1);
  const auto names = made ? names_in(at.get()) : std::nullopt;
  if (names) {
    found = Folding{.folds = std::any_of(std::begin(kSame), std::end(kSame),
                                         [&](const char* name) { return there(at.get(), name); }),
                    .keeps = std::find(names->begin(), names->end(), kProbe) != names->end()};
  }
  // On NFS a file that is removed while it is open stays, and with it its directory.
  made.reset();
  if (at) ::unlinkat(at.get(), kProbe, 0);
  ::unlinkat(directory_fd, place.c_str(), AT_REMOVEDIR);
  return found;
}

}  // namespace

Folding Given::folding(int directory_fd) {
  if (everywhere_) return *everywhere_;
  if (folds_by_itself(directory_fd)) return {.folds = true, .keeps = true};
  struct stat info {};
  if (::fstat(directory_fd, &info) != 0) return {.folds = true, .keeps = true};
  const std::scoped_lock lock(mutex_);
  if (const auto known = foldings_.find(info.st_dev); known != foldings_.end()) return known->second;
  const std::optional<Folding> found = probe(directory_fd);
  // Where nothing can be found out names are looked at as if they were folded, which a file system that
  // does not never notices.
  if (!found) return {.folds = true, .keeps = true};
  return foldings_[info.st_dev] = *found;
}

void Given::interrupted() {
  const std::scoped_lock lock(mutex_);
  interrupted_ = true;
}

// ---- directories --------------------------------------------------------------------------------

bool Given::may_enter(int tree_fd, const std::string& tree, const std::string& relative) {
  if (relative == ".") return true;
  std::string parent = tree == "/" ? "" : tree;
  {
    const std::scoped_lock lock(mutex_);
    if (entered_.contains(hash_of(parent + "/" + relative))) return true;
  }
  UniqueFd at = open_beneath(tree_fd, ".", O_RDONLY | O_DIRECTORY);
  for (size_t begin = 0; at && begin < relative.size();) {
    const size_t end = std::min(relative.find('/', begin), relative.size());
    const std::string name = relative.substr(begin, end - begin);
    std::string path = parent;
    path.append("/").append(name);
    begin = end + 1;
    if (!may_enter_one(at.get(), parent, path, name)) return false;
    // What cannot be opened whoever comes for its names is told.
    at = open_beneath(at.get(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    parent = path;
  }
  return true;
}

bool Given::may_enter_one(int at, const std::string& parent, const std::string& path,
                          const std::string& name) {
  const size_t hash = hash_of(path);
  {
    const std::scoped_lock lock(mutex_);
    if (entered_.contains(hash)) return true;
  }
  struct stat info {};
  if (::fstatat(at, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return true;  // it is to be made
  const Folding here = folding(at);
  if (here.folds) {
    const Directory entered{.parent = hash_of(parent), .path = hash};
    const Inode inode{info.st_dev, info.st_ino};
    const bool otherwise = listed_otherwise(at, name, here, nullptr);
    const std::scoped_lock lock(mutex_);
    const auto known = directories_.find(inode);
    // By way of another directory it may be mounted there once more.
    if (known != directories_.end() && known->second.parent == entered.parent &&
        known->second.path != entered.path)
      return false;
    if (known == directories_.end() && otherwise) return false;
    if (!first_of_its_letters(path)) return false;
    directories_.try_emplace(inode, entered);
  }
  const std::scoped_lock lock(mutex_);
  entered_.insert(hash);
  return true;
}

bool Given::first_of_its_letters(const std::string& path) {
  const size_t hash = hash_of(path);
  return letters_.try_emplace(hash_of_letters(path), hash).first->second == hash;
}

// Stands what has this name there under another one, that is none of the session's as far as it is known?
// Where names are not listed as they were made, only a session that saw all of its names can tell.
bool Given::listed_otherwise(int directory_fd, const std::string& name, const Folding& folding,
                             DirectoryNames* names) {
  {
    const std::scoped_lock lock(mutex_);
    if (!folding.keeps && !interrupted_) return false;
  }
  DirectoryNames read;
  DirectoryNames& all = names == nullptr ? read : *names;
  if (all.empty()) {
    const auto found = names_in(directory_fd).value_or(std::vector<std::string>());
    all.insert(found.begin(), found.end());
  }
  return !all.contains(name);
}

// ---- names in them ------------------------------------------------------------------------------

Given::Alone Given::one_by_one(const Folding& folding, int directory_fd) {
  if (!folding.folds) return {};
  Alone alone{.lock = std::unique_lock(giving_), .directory = {}};
  bool others = false;
  {
    const std::scoped_lock lock(mutex_);
    others = others_;
  }
  if (!others) return alone;
  alone.directory = open_beneath(directory_fd, ".", O_RDONLY | O_DIRECTORY);
  // Whoever holds it for longer is no process of ours.
  constexpr int kTries = 1000;
  constexpr std::chrono::milliseconds kPause{5};
  for (int i = 0; alone.directory && i < kTries; ++i) {
    if (::flock(alone.directory.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) break;
    std::this_thread::sleep_for(kPause);
  }
  return alone;
}

void Given::others_give_too() {
  const std::scoped_lock lock(mutex_);
  others_ = interrupted_ = true;
}

bool Given::has_other(const Folding& folding, int directory_fd, const std::string& path,
                      const std::string& name, DirectoryNames* names) {
  if (!folding.folds) return false;
  {
    const std::scoped_lock lock(mutex_);
    const auto letters = letters_.find(hash_of_letters(path));
    if (letters != letters_.end() && letters->second != hash_of(path)) return true;
  }
  struct stat info {};
  if (::fstatat(directory_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return false;
  {
    const std::scoped_lock lock(mutex_);
    const auto known = files_.find({info.st_dev, info.st_ino});
    if (known != files_.end()) {
      const std::vector<size_t>& paths = known->second;
      if (std::find(paths.begin(), paths.end(), hash_of(path)) != paths.end()) return false;
      // Unless it has a name more than it was given: a hard link of before.
      if (info.st_nlink <= paths.size()) return true;
    }
  }
  return listed_otherwise(directory_fd, name, folding, names);
}

void Given::gave(const Folding& folding, int directory_fd, const std::string& path, const std::string& name) {
  if (!folding.folds) return;
  struct stat info {};
  const bool there = ::fstatat(directory_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
  const std::scoped_lock lock(mutex_);
  (void)first_of_its_letters(path);  // also where the kernel does not find it yet
  if (there) files_[{info.st_dev, info.st_ino}].push_back(hash_of(path));
}

}  // namespace sluice::exports
