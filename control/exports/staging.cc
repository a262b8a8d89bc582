// SPDX-License-Identifier: Apache-2.0
#include "control/exports/staging.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "control/exports/beneath.h"
#include "control/exports/temporary.h"
#include "dataplane/base/check.h"

namespace sluice::exports {
namespace {

// What a directory hands on to whatever is made in it, as far as it can be asked. Its group it hands on with
// this bit, or by a mount option that nobody tells of.
struct HandedOn {
  gid_t group = 0;
  bool sets_group = false;
  std::string acl;
  int flags = 0;

  bool operator==(const HandedOn&) const = default;
};

constexpr int kFlagsHandedOn = FS_COMPR_FL | FS_NOCOMP_FL | FS_SYNC_FL | FS_DIRSYNC_FL | FS_NODUMP_FL |
                               FS_NOATIME_FL | FS_NOCOW_FL | FS_JOURNAL_DATA_FL | FS_PROJINHERIT_FL |
                               FS_CASEFOLD_FL | FS_DAX_FL;
constexpr const char* kInheritedAcl = "system.posix_acl_default";

std::optional<HandedOn> handed_on(int directory_fd) {
  HandedOn out;
  struct stat info {};
  if (::fstat(directory_fd, &info) != 0) return std::nullopt;
  out.group = info.st_gid;
  out.sets_group = (info.st_mode & S_ISGID) != 0;
  const ssize_t acl_bytes = ::fgetxattr(directory_fd, kInheritedAcl, nullptr, 0);
  if (acl_bytes < 0 && errno != ENODATA && errno != EOPNOTSUPP) return std::nullopt;
  if (acl_bytes > 0) {
    out.acl.resize(static_cast<size_t>(acl_bytes));
    if (::fgetxattr(directory_fd, kInheritedAcl, out.acl.data(), out.acl.size()) != acl_bytes)
      return std::nullopt;
  }
  if (::ioctl(directory_fd, FS_IOC_GETFLAGS, &out.flags) != 0) {
    if (errno != ENOTTY && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) return std::nullopt;
    out.flags = 0;
  }
  out.flags &= kFlagsHandedOn;
  return out;
}

void empty(int directory_fd) {
  for (const std::string& name : names_in(directory_fd).value_or(std::vector<std::string>()))
    ::unlinkat(directory_fd, name.c_str(), 0);
}

}  // namespace

// What has no name when this ends never gets one from here.
Staging::~Staging() {
  if (fd_) remove();
}

int Staging::make(size_t names, Given& given) {
  remove(tree_fd_, name_);
  at_.assign(names, {});
  forget_directories();
  if (::mkdirat(tree_fd_, name_.c_str(), 0700) != 0) return errno;
  fd_ = open_beneath(tree_fd_, name_, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd_) return errno;
  folds_ = given.folding(fd_.get()).folds;
  return 0;
}

namespace {

void empty_with_directories(int fd) {
  empty(fd);
  for (const std::string& directory : names_in(fd).value_or(std::vector<std::string>())) {
    const UniqueFd inner = open_beneath(fd, directory, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (inner) empty(inner.get());
    ::unlinkat(fd, directory.c_str(), AT_REMOVEDIR);
  }
}

}  // namespace

// Another process may have taken the name since, as one of a user does that nobody heard of any more
// (control/users): what is in its directory stays.
void Staging::remove() {
  if (!fd_) return remove(tree_fd_, name_);
  empty_with_directories(fd_.get());
  if (still_named(tree_fd_, name_, fd_.get())) ::unlinkat(tree_fd_, name_.c_str(), AT_REMOVEDIR);
}

void Staging::remove(int tree_fd, const std::string& name) {
  const UniqueFd fd = open_beneath(tree_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!fd) return;
  empty_with_directories(fd.get());
  ::unlinkat(tree_fd, name.c_str(), AT_REMOVEDIR);
}

// ---- where names are made -----------------------------------------------------------------------

const std::string& Staging::choose(size_t number, const std::string& path) {
  DCHECK(fd_ && number < at_.size(), "it was made for so many names");
  Whole* const whole = whole_of(parent_of(path));
  if (whole == nullptr) return choose_number(number);
  whole->numbers.push_back(number);
  wholes_[number] = whole;
  return at_[number] = whole->name + "/" + last_component(path);
}

const std::string& Staging::choose_number(size_t number) {
  DCHECK(number < at_.size(), "it was made for so many names");
  (void)take_back(number);
  return at_[number] = std::to_string(number);
}

void Staging::discard(size_t number) {
  DCHECK(!at(number).empty(), "what failed halfway was begun");
  const bool gone = ::unlinkat(fd_.get(), at_[number].c_str(), 0) == 0 || errno == ENOENT;
  Whole* const whole = take_back(number);
  if (whole == nullptr || gone) return;
  const std::lock_guard lock(mutex_);
  whole->broken = true;
}

// From the directory that was chosen for it, if one was.
Staging::Whole* Staging::take_back(size_t number) {
  const std::lock_guard lock(mutex_);
  Whole* const whole = std::exchange(wholes_[number], nullptr);
  if (whole != nullptr) std::erase(whole->numbers, number);
  return whole;
}

void Staging::forget_directories() {
  directories_.clear();
  last_ = directories_.end();
  wholes_.assign(at_.size(), nullptr);
}

Staging::Whole* Staging::whole_of(const std::string& path) {
  if (last_ == directories_.end() || last_->first != path) {
    const auto [found, is_new] = directories_.try_emplace(path);
    last_ = found;
    // Of "A" and "a" only one can be in a directory that folds them: there each name is looked at by itself.
    if (is_new && !folds_ && !open_beneath(tree_fd_, path, O_PATH | O_DIRECTORY) && errno == ENOENT)
      last_->second.emplace();
  }
  if (!last_->second) return nullptr;
  Whole& whole = *last_->second;
  if (whole.name.empty()) {
    const std::string name = "d" + std::to_string(directories_.size());
    // As Parent makes them: for its owner alone, until its own mode comes.
    if (::mkdirat(fd_.get(), name.c_str(), 0700) != 0) {
      last_->second.reset();
      return nullptr;
    }
    whole.name = name;
  }
  return &whole;
}

// ---- directories in their places ----------------------------------------------------------------

void Staging::give_directories(const std::function<int(const std::string&)>& open_parent,
                               const std::function<void(size_t)>& given) {
  DCHECK(fd_ || directories_.empty(), "what was made is there until it has its place");
  const std::optional<HandedOn> here = handed_on(fd_.get());
  for (auto& [path, whole] : directories_) {
    if (!whole || whole->broken || whole->numbers.empty()) continue;
    const int parent = open_parent(path);
    if (parent < 0) continue;
    // What comes directly into the tree was made in it: this directory has of it what there is to have.
    if (parent_of(path) != "." && (!here || handed_on(parent) != here)) continue;
    if (!rename_between(fd_.get(), whole->name, parent, last_component(path), false)) continue;
    for (const size_t number : whole->numbers) given(number);
  }
  forget_directories();  // what has failed by itself since is not given with its directory later
}

}  // namespace sluice::exports
