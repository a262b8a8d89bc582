// SPDX-License-Identifier: Apache-2.0
#include "control/exports/walk.h"

#include <fcntl.h>
#include <linux/openat2.h>

#include <algorithm>
#include <cerrno>

#include "control/exports/beneath.h"
#include "dataplane/base/check.h"
#include "dataplane/base/path.h"

namespace sluice::exports {
namespace {

constexpr size_t kNamesBytesMin = 16U << 10;
constexpr size_t kPrefixBytesMax =
    base::kPathBytesMax - base::kNameBytesMax;  // a name in it still makes a path that can be told

}  // namespace

Walk::Walk(UniqueFd top, Mounts mounts, Pulse& pulse)
    : mounts_(mounts), pulse_(pulse), top_(std::move(top)) {}

int Walk::begin() {
  DCHECK(levels_.empty() && top_, "a walk begins once");
  return add(std::move(top_), 0);
}

// The deeper a directory, the less room its names have: a huge one keeps most of its names while those in it
// are looked at, and all together stay within a bound.
int Walk::add(UniqueFd fd, size_t prefix_bytes) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno;
  for (const Level& above : levels_) {
    if (above.device == info.st_dev && above.inode == info.st_ino) return ELOOP;
  }
  size_t taken = 0;
  for (const Level& level : levels_) taken += level.names.bytes();
  const size_t room = taken < kNamesBytesMax ? (kNamesBytesMax - taken) / 2 : 0;
  Level level{.fd = std::move(fd),
              .device = info.st_dev,
              .inode = info.st_ino,
              .names = SortedNames(std::max(room, kNamesBytesMin)),
              .prefix_bytes = prefix_bytes};
  if (const int problem = level.names.prepare(level.fd.get(), pulse_); problem != 0) return problem;
  levels_.push_back(std::move(level));
  DCHECK(levels_.size() <= kDepthMax, "the depth is bounded");
  return 0;
}

Walk::Step Walk::next() {
  DCHECK(!levels_.empty(), "a walk has begun");
  Level& level = levels_.back();
  const int found = level.skipped ? 0 : level.names.next(level.fd.get(), pulse_, &name_);
  if (found > 0) return Step::kName;
  if (found < 0) return Step::kFailed;
  if (levels_.size() == 1) return Step::kEnd;
  DCHECK(path_.ends_with('/'), "the path is that of the directory at hand");
  left_failed_ = level.failed;
  levels_.pop_back();
  path_.pop_back();  // its slash
  DCHECK(levels_.back().prefix_bytes <= path_.size(), "what is above is a part of the path");
  name_ = path_.substr(levels_.back().prefix_bytes);
  path_.resize(levels_.back().prefix_bytes);
  return Step::kLeft;
}

int Walk::enter() {
  const size_t prefix_bytes = path_.size() + name_.size() + 1;
  if (levels_.size() >= kDepthMax || prefix_bytes > kPrefixBytesMax) return ENAMETOOLONG;
  const uint64_t resolve = mounts_ == Mounts::kStay ? RESOLVE_NO_XDEV : 0;
  UniqueFd fd = open_beneath(this->fd(), name_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK, 0, resolve);
  if (!fd) return errno == ELOOP ? ENOTDIR : errno;
  if (const int problem = add(std::move(fd), prefix_bytes); problem != 0) return problem;
  path_ += name_ + "/";
  return 0;
}

void Walk::skip() { levels_.back().skipped = true; }

std::string Walk::path() const { return path_ + name_; }

std::string Walk::directory() const { return path_.substr(0, path_.empty() ? 0 : path_.size() - 1); }

}  // namespace sluice::exports
