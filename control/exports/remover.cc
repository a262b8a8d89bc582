// SPDX-License-Identifier: Apache-2.0
#include "control/exports/remover.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "control/exports/beneath.h"
#include "control/exports/temporary.h"
#include "dataplane/base/check.h"
#include "dataplane/base/text.h"

namespace sluice::exports {
namespace {

Error remove_error(const std::string& path, int reason) {
  switch (reason) {
    case EXDEV:
    case EBUSY:
      return {ErrorCode::kStorage,
              path + ": something is mounted there, and is not removed; unmount it first"};
    case ENOTEMPTY:
    case EEXIST:
      return {ErrorCode::kStorage, path + ": got another name in it meanwhile; remove it again"};
    case EROFS:
      return {ErrorCode::kStorage, path + ": its file system is read-only; mount it for writing"};
    case ENAMETOOLONG:
      return {ErrorCode::kStorage, path + ": lies too deep; remove what is in it by its own path first"};
    default:
      return lookup_error(path, reason, ErrorCode::kStorage);
  }
}

// Its own client would refuse it (EBUSY); of another client's, the bytes would go under its hands.
Error still_open(const std::string& path) {
  return {ErrorCode::kStorage,
          path +
              ": was removed while a client of NFS had it open, and goes when that closes it; "
              "find who has it (fuser), or remove it by hand if nobody has"};
}

}  // namespace

std::string Remover::shown(const std::string& path) const {
  return path.empty() ? top_ : top_ + "/" + printable(path);
}

void Remover::problem(const std::string& path, const Error& error) {
  ++done_.failed;
  names::Entry entry{.path = path,
                     .error_code = static_cast<uint32_t>(error.code),
                     .error = base::printable(error.message, names::kTextBytesMax)};
  problem_bytes_ += names::page_bytes(entry);
  if (done_.problems.size() < names::kProblemsMax && problem_bytes_ <= names::kPageBytes)
    done_.problems.push_back(std::move(entry));
  DCHECK(done_.problems.size() <= done_.failed, "each problem is a name that stays");
}

// What is in a directory of files that are only read goes with it, as by rsync.
bool Remover::unlink(int directory_fd, const std::string& name, int flags) {
  if (::unlinkat(directory_fd, name.c_str(), flags) == 0) return true;
  struct stat info {};
  if (errno != EACCES || !writable_ || ::fstat(directory_fd, &info) != 0 ||
      is_root_(info.st_dev, info.st_ino))
    return false;
  opened_ = writable_->open_up(directory_fd);
  if (opened_) return ::unlinkat(directory_fd, name.c_str(), flags) == 0;
  errno = EACCES;
  return false;
}

Status Remover::remove_one(int directory_fd, const std::string& name, mode_t mode, const std::string& shown) {
  // One that nobody holds is a leftover; else it is in use.
  if (is_temporary_name(name) && S_ISREG(mode)) return remove_leftover(directory_fd, name, shown, reserved_);
  if (is_silly_name(name)) return still_open(shown);
  return unlink(directory_fd, name, 0) || errno == ENOENT ? Status() : remove_error(shown, errno);
}

bool Remover::empty_directory(int directory_fd, const std::string& name, const std::string& path) {
  if (!unlink(directory_fd, name, AT_REMOVEDIR) && errno != ENOENT) {
    problem(path, remove_error(shown(path), errno));
    return false;
  }
  ++done_.entries;
  return true;
}

void Remover::look_at_name(Walk& walk) {
  struct stat info {};
  const std::string path = walk.path();
  if (::fstatat(walk.fd(), walk.name().c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return;
    walk.failed() = true;
    return problem(path, remove_error(shown(path), errno));
  }
  if (!S_ISDIR(info.st_mode)) {
    const Status removed = remove_one(walk.fd(), walk.name(), info.st_mode, shown(path));
    if (removed) {
      ++done_.entries;
    } else {
      walk.failed() = true;
      problem(path, removed.error());
    }
    return;
  }
  if (is_root_(info.st_dev, info.st_ino)) {
    walk.failed() = true;
    return problem(path,
                   {ErrorCode::kOutsideExports, shown(path) + ": is the root of an export, which stays"});
  }
  const int reason = walk.enter();
  if (reason == 0 || reason == ENOENT || reason == ECANCELED) return;
  walk.failed() = true;
  problem(path, remove_error(shown(path), reason));
}

// Out of a directory: it goes, if all that was in it has gone; else what has gone from it is made durable.
void Remover::leave(Walk& walk) {
  DCHECK(!walk.name().empty(), "a directory that was left has a name");
  if (!walk.left_failed() && empty_directory(walk.fd(), walk.name(), walk.path())) return;
  walk.failed() = true;
  const UniqueFd left = open_beneath(walk.fd(), walk.name(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (left && ::fsync(left.get()) != 0) problem(walk.path(), storage_error(shown(walk.path()), errno));
}

Status Remover::remove_tree(int directory_fd, const std::string& name) {
  UniqueFd top = open_beneath(directory_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, RESOLVE_NO_XDEV);
  const int top_fd = top.get();
  if (!top) return remove_error(top_, errno);
  struct stat info {};
  if (::fstat(top_fd, &info) != 0) return remove_error(top_, errno);
  if (is_root_(info.st_dev, info.st_ino))
    return Error{ErrorCode::kOutsideExports, top_ + ": is the root of an export, which stays as it is"};
  Walk walk(std::move(top), Walk::Mounts::kStay, pulse_);
  if (const int reason = walk.begin(); reason != 0 && reason != ECANCELED) return remove_error(top_, reason);
  for (Walk::Step step{}; step != Walk::Step::kEnd && !pulse_.stop;) {
    step = walk.next();
    (void)pulse_.step();
    if (step == Walk::Step::kName) look_at_name(walk);
    if (step == Walk::Step::kLeft) leave(walk);
    if (step != Walk::Step::kFailed || errno == ECANCELED) continue;
    problem(walk.directory(), remove_error(shown(walk.directory()), errno));
    walk.failed() = true;
    walk.skip();
  }
  if (pulse_.stop) return Error{ErrorCode::kCancelled, top_ + ": what had been removed until then is gone"};
  if (!walk.failed() && empty_directory(directory_fd, name, "")) return {};
  return ::fsync(top_fd) == 0 ? Status() : storage_error(top_, errno);
}

Status Remover::remove(int directory_fd, const std::string& name, const std::string& shown) {
  DCHECK(valid_file_name(name), "what is removed is a name in a directory");
  top_ = shown;
  struct stat info {};
  if (::fstatat(directory_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return remove_error(shown, errno);
  if (S_ISDIR(info.st_mode)) return remove_tree(directory_fd, name);
  if (Status status = remove_one(directory_fd, name, info.st_mode, shown); !status) return status;
  ++done_.entries;
  return {};
}

Status Remover::remove_empty(int directory_fd, const std::string& name, const std::string& shown) {
  DCHECK(valid_file_name(name), "what is removed is a name in a directory");
  const UniqueFd top =
      open_beneath(directory_fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, RESOLVE_NO_XDEV);
  struct stat info {};
  if (!top || ::fstat(top.get(), &info) != 0) return remove_error(shown, errno);
  if (is_root_(info.st_dev, info.st_ino))
    return Error{ErrorCode::kOutsideExports, shown + ": is the root of an export, which stays as it is"};
  if (unlink(directory_fd, name, AT_REMOVEDIR)) {
    ++done_.entries;
    return {};
  }
  if (errno == ENOTEMPTY || errno == EEXIST)
    return Error{ErrorCode::kUsage, shown + ": is not empty; remove what is in it first"};
  return remove_error(shown, errno);
}

}  // namespace sluice::exports
