// SPDX-License-Identifier: Apache-2.0
#include "control/exports/temporary.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "control/exports/beneath.h"
#include "control/exports/room.h"

namespace sluice::exports {

std::string temporary_name(const std::string& name) { return "." + name + std::string(kTemporarySuffix); }

// A file system that folds cases (ext4 does by directory) ignores some characters and takes others for a
// letter: of those that no ASCII letter stands for, only the long s becomes one of this suffix.
bool is_temporary_name(std::string_view name) {
  constexpr std::string_view kLongS = "\xC5\xBF";
  std::string folded;
  for (size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (name.substr(i).starts_with(kLongS)) folded += 's';
    if (static_cast<unsigned char>(c) >= 0x80) continue;
    folded += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return folded.starts_with('.') && folded.ends_with(kTemporarySuffix);
}

bool leads_through_temporary(std::string_view path) {
  while (true) {
    const size_t slash = path.find('/');
    if (is_temporary_name(path.substr(0, slash))) return true;
    if (slash == std::string_view::npos) return false;
    path.remove_prefix(slash + 1);
  }
}

bool still_named(int directory_fd, const std::string& name, int fd) {
  struct stat by_name {};
  struct stat by_fd {};
  return ::fstatat(directory_fd, name.c_str(), &by_name, AT_SYMLINK_NOFOLLOW) == 0 &&
         ::fstat(fd, &by_fd) == 0 && by_name.st_ino == by_fd.st_ino && by_name.st_dev == by_fd.st_dev;
}

Error busy(const std::string& temporary_path) {
  return {ErrorCode::kDestinationExists,
          "another transfer writes to " + temporary_path + "; wait for it, or cancel it"};
}

Status remove_leftover(int directory_fd, const std::string& name, const std::string& path,
                       const Reserved& reserved) {
  const UniqueFd fd = open_beneath(directory_fd, name, O_WRONLY | O_NONBLOCK | O_NOFOLLOW);
  if (!fd && errno == ENOENT) return {};  // its owner was quicker
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return Error{ErrorCode::kDestinationExists, path + ": is in the way; remove it"};
  if (reserved.contains({.device = info.st_dev, .inode = info.st_ino})) {
    return Error{ErrorCode::kDestinationExists,
                 "a paused transfer writes to " + path + "; let it go on, or cancel it"};
  }
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK ? busy(path) : storage_error(path, errno);
  // While the lock is held nobody else takes this file for a leftover.
  if (still_named(directory_fd, name, fd.get()) && ::unlinkat(directory_fd, name.c_str(), 0) != 0)
    return storage_error(path, errno);
  return {};
}

Result<UniqueFd> create_temporary(int directory_fd, const std::string& name, const std::string& path,
                                  const Reserved& reserved) {
  constexpr int kAttempts = 4;
  for (int i = 0; i < kAttempts; ++i) {
    UniqueFd fd = open_beneath(directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (!fd && (errno == ENOSPC || errno == EDQUOT)) return full(path, errno, directory_fd);
    if (!fd && errno != EEXIST) return lookup_error(path, errno, ErrorCode::kStorage);
    if (!fd) {
      if (auto status = remove_leftover(directory_fd, name, path, reserved); !status) return status.error();
      continue;
    }
    // Between creation and lock another writer may have taken it for a leftover.
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      const int reason = errno;
      if (reason == EWOULDBLOCK) return busy(path);
      ::unlinkat(directory_fd, name.c_str(), 0);
      return storage_error(path, reason);
    }
    if (!still_named(directory_fd, name, fd.get())) return busy(path);
    return fd;
  }
  return busy(path);
}

}  // namespace sluice::exports
