// SPDX-License-Identifier: Apache-2.0
#include "control/exports/parent.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "control/exports/beneath.h"
#include "dataplane/base/check.h"

namespace sluice::exports {

int Parent::open(const std::string& path) {
  const std::string directory = parent_of(path);
  if (now_.fd && now_.path == directory) return now_.fd.get();
  now_ = {};
  UniqueFd fd;
  if (const int reason = make(directory, &fd); reason != 0) {
    errno = reason;
    return -1;
  }
  now_ = {.path = directory, .fd = std::move(fd), .folding = {}, .names = {}, .opened = {}};
  now_.folding = tree_.given->folding(now_.fd.get());
  return now_.fd.get();
}

int Parent::make(const std::string& path, UniqueFd* out) {
  if (!tree_.given->may_enter(tree_.fd.get(), tree_.path, path)) return ENOTUNIQ;
  *out = open_beneath(tree_.fd.get(), path, O_RDONLY | O_DIRECTORY);
  if (*out) return 0;
  if (errno != ENOENT && errno != EACCES) return errno;
  std::vector<Opened> opened;  // on the way, until it was looked at once more
  if (const int reason = make(path, out, opened); reason != 0) return reason;
  // Another thread may have made it meanwhile, under another name.
  return tree_.given->may_enter(tree_.fd.get(), tree_.path, path) ? 0 : ENOTUNIQ;
}

int Parent::make(const std::string& path, UniqueFd* out, std::vector<Opened>& opened) {
  UniqueFd at = open_beneath(tree_.fd.get(), ".", O_RDONLY | O_DIRECTORY);
  if (!at) return errno;
  for (size_t begin = 0; begin < path.size();) {
    const size_t slash = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, slash - begin);
    begin = slash + 1;
    if (const int reason = step(at, name, opened); reason != 0) return reason;
  }
  *out = std::move(at);
  return 0;
}

// Into one directory, which is made if it is missing; what their modes forbid to their owner is allowed to it
// meanwhile. The one that everything comes into keeps its mode.
int Parent::step(UniqueFd& at, const std::string& name, std::vector<Opened>& opened) {
  const auto allow = [&](int fd) {
    opened.push_back(tree_.writable->open_up(fd));
    if (!opened.back()) errno = EACCES;
    return opened.back() != nullptr;
  };
  struct stat tree {};
  struct stat here {};
  const bool is_tree = ::fstat(tree_.fd.get(), &tree) != 0 || ::fstat(at.get(), &here) != 0 ||
                       (tree.st_ino == here.st_ino && tree.st_dev == here.st_dev);
  const auto made = [&] {
    // Nobody else looks into it before it has the mode that it is to have.
    return ::mkdirat(at.get(), name.c_str(), 0700) == 0 || errno == EEXIST;
  };
  if (!made() && (errno != EACCES || is_tree || !allow(at.get()) || !made())) return errno;
  constexpr uint64_t kFlags = O_DIRECTORY | O_NOFOLLOW;
  UniqueFd next = open_beneath(at.get(), name, O_RDONLY | kFlags);
  if (!next && errno == EACCES) {
    const UniqueFd closed = open_beneath(at.get(), name, O_PATH | kFlags);
    if (!closed || !allow(closed.get())) return EACCES;
    next = open_beneath(at.get(), name, O_RDONLY | kFlags);
  }
  if (!next) return errno;
  at = std::move(next);
  return 0;
}

bool Parent::open_up() {
  DCHECK(now_.fd, "a directory is open");
  const std::lock_guard lock(opening_);
  if (now_.path != "." && !now_.opened) now_.opened = tree_.writable->open_up(now_.fd.get());
  if (now_.opened) return true;  // by another thread, it may be
  errno = EACCES;
  return false;
}

bool Parent::has_other(const std::string& name) {
  DCHECK(now_.fd, "a directory is open");
  return tree_.given->has_other(now_.folding, now_.fd.get(), absolute(name), name, &now_.names);
}

void Parent::gave(const std::string& name) {
  DCHECK(now_.fd, "a directory is open");
  tree_.given->gave(now_.folding, now_.fd.get(), absolute(name), name);
  if (!now_.names.empty()) now_.names.insert(name);
}

}  // namespace sluice::exports
