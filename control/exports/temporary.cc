// SPDX-License-Identifier: Apache-2.0
#include "control/exports/temporary.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "control/exports/beneath.h"
#include "control/exports/refusals.h"
#include "dataplane/base/check.h"
#include "dataplane/base/path.h"
#include "dataplane/crc/crc.h"

namespace sluice::exports {

std::string temporary_name(const std::string& name) { return "." + name + std::string(kTemporarySuffix); }

size_t name_bytes_max(int directory_fd) {
  struct statfs info {};
  if (::fstatfs(directory_fd, &info) != 0 || info.f_namelen <= 0) return base::kNameBytesMax;
  return std::min(base::kNameBytesMax, static_cast<size_t>(info.f_namelen));
}

std::string shortened_name(const std::string& name, size_t most) {
  if (name.size() <= most) return name;
  const uint64_t sum =
      crc::compute(wire::CrcKind::kCrc64Ecma, 0, reinterpret_cast<const uint8_t*>(name.data()), name.size());
  const std::string end = fmt::format("~{:016x}", sum);
  size_t kept = most > end.size() ? most - end.size() : 0;
  // Not within a character: some file systems take no part of one.
  while (kept > 0 && (static_cast<uint8_t>(name[kept]) & 0xC0) == 0x80) --kept;
  const std::string shorter = name.substr(0, kept) + end;
  DCHECK(shorter.size() <= std::max(most, end.size()), "it is no longer than there is room for");
  return shorter;
}

std::string temporary_name_in(int directory_fd, const std::string& name) {
  const size_t most = name_bytes_max(directory_fd);
  const size_t around = temporary_name("").size();
  const std::string whole = temporary_name(shortened_name(name, most - std::min(most, around)));
  DCHECK(is_temporary_name(whole), "a shortened name is known for what it is");
  return whole;
}

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

// As Linux makes them (fs/nfs/unlink.c): the number of the file and a counter, in hexadecimal digits.
bool is_silly_name(std::string_view name) {
  constexpr std::string_view kBegin = ".nfs";
  constexpr size_t kDigits = 16 + 8;
  return name.size() == kBegin.size() + kDigits && name.starts_with(kBegin) &&
         name.find_first_not_of("0123456789abcdef", kBegin.size()) == std::string_view::npos;
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
  if (still_named(directory_fd, name, fd.get()) && ::unlinkat(directory_fd, name.c_str(), 0) != 0 &&
      errno != ENOENT)
    return storage_error(path, errno);
  return {};
}

Result<UniqueFd> create_temporary(int directory_fd, const std::string& name, const std::string& path,
                                  const Reserved& reserved, catalog::Failure* why) {
  constexpr int kAttempts = 4;
  // Whatever else is said below: somebody has the name, or is about to.
  *why = catalog::Failure::kTaken;
  for (int i = 0; i < kAttempts; ++i) {
    UniqueFd fd = open_beneath(directory_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
    if (!fd && errno != EEXIST) {
      const int reason = errno;
      *why = why_not(directory_fd, name, reason);
      return refusal_of(directory_fd, name, path, reason);
    }
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
    DCHECK(is_temporary_name(name), "nobody takes it for a whole file");
    *why = catalog::Failure::kNone;
    return fd;
  }
  return busy(path);
}

}  // namespace sluice::exports
