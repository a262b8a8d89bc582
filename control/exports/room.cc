// SPDX-License-Identifier: Apache-2.0
#include "control/exports/room.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "control/exports/beneath.h"
#include "control/exports/owners.h"
#include "dataplane/base/check.h"

namespace sluice::exports {
namespace {

bool lies_in_memory(int fd) {
  struct statfs info {};
  return ::fstatfs(fd, &info) == 0 && (info.f_type == TMPFS_MAGIC || info.f_type == RAMFS_MAGIC);
}

// Space cannot be taken beforehand there: the file system does not do that (NFS before 4.2, ZFS, some FUSE),
// not for such a range, or a filter of system calls is in the way.
bool takes_none_ahead(int reason) { return reason == EOPNOTSUPP || reason == ENOSYS || reason == EINVAL; }

// What is to be written, between the holes.
std::vector<base::Range> data_of(uint64_t size_bytes, uint64_t room_bytes,
                                 const std::vector<base::Range>& holes) {
  std::vector<base::Range> data;
  uint64_t at = 0;
  for (const base::Range& hole : holes) {
    DCHECK(hole.offset >= at && hole.end() <= size_bytes, "holes are in order, and lie in the file");
    if (hole.offset > at) data.push_back({.offset = at, .length = hole.offset - at});
    at = hole.end();
  }
  if (at < size_bytes) data.push_back({.offset = at, .length = room_bytes - at});
  return data;
}

uint64_t bytes_in(const std::vector<base::Range>& data) {
  uint64_t bytes = 0;
  for (const base::Range& run : data) bytes += run.length;
  return bytes;
}

// The user as whom this process runs: what it makes counts against that user's quota.
std::string own_name() {
  Accounts accounts;
  const std::string& name = accounts.user_name(::geteuid());
  return name.empty() ? std::to_string(::geteuid()) : printable(name);
}

}  // namespace

Error no_space(const std::string& path, uint64_t needed_bytes, uint64_t free_bytes) {
  return {ErrorCode::kNoSpace, path + ": needs " + human_bytes(needed_bytes) + ", free are " +
                                   human_bytes(free_bytes) +
                                   "; free some space, or choose another destination"};
}

Error full(const std::string& path, int reason, int fd) {
  if (reason == EDQUOT)
    return {
        ErrorCode::kNoSpace,
        path + ": a quota of its file system is used up (of user " + own_name() +
            ", of a group, a directory or a subvolume), whatever else is free; raise it, remove something "
            "that counts against it, or choose another destination"};
  struct statvfs info {};
  const bool known = ::fstatvfs(fd, &info) == 0;
  if (known && info.f_files != 0 && info.f_favail == 0)
    return {ErrorCode::kNoSpace,
            path +
                ": its file system has no inode left for another name, whatever space is "
                "free; remove some files, or choose another destination"};
  const std::string left =
      known ? " (" + human_bytes(uint64_t{info.f_bavail} * info.f_frsize) + " free)" : std::string();
  return {ErrorCode::kNoSpace,
          path + ": the file system became full" + left + "; free some space, or choose another destination"};
}

uint64_t free_bytes_of(int fd) {
  struct statvfs info {};
  if (::fstatvfs(fd, &info) != 0) return std::numeric_limits<uint64_t>::max();  // fallocate will tell
  return uint64_t{info.f_bavail} * info.f_frsize;
}

// All of the space at once: a full disk is known now. In memory that would fill every page twice.
Status take_room(int fd, uint64_t size_bytes, uint64_t room_bytes, const std::vector<base::Range>& holes,
                 const std::string& path) {
  DCHECK(room_bytes >= size_bytes, "there is room for all of the file");
  if (room_bytes == 0) return {};
  const bool in_memory = lies_in_memory(fd);
  const std::vector<base::Range> data = data_of(size_bytes, room_bytes, holes);
  const uint64_t needed = bytes_in(data);
  if (const uint64_t free_bytes = free_bytes_of(fd); needed > free_bytes)
    return no_space(path, needed, free_bytes);
  const auto done = [](auto call) {
    int result = 0;
    do {
      result = call();
    } while (result != 0 && errno == EINTR);
    return result == 0;
  };
  bool good = done([&] { return ::ftruncate(fd, static_cast<off_t>(room_bytes)); });
  const bool long_enough = good;
  for (const base::Range& run : in_memory ? std::vector<base::Range>() : data) {
    if (good)
      good = done(
          [&] { return ::fallocate(fd, 0, static_cast<off_t>(run.offset), static_cast<off_t>(run.length)); });
  }
  if (good || (long_enough && takes_none_ahead(errno))) return {};
  if (errno == ENOSPC || errno == EDQUOT) {
    const int reason = errno;
    const uint64_t free_bytes = free_bytes_of(fd);
    // What is free is no reason: it would have been enough.
    return reason == EDQUOT || free_bytes >= needed ? full(path, reason, fd)
                                                    : no_space(path, needed, free_bytes);
  }
  if (errno == EFBIG)
    return Error{ErrorCode::kStorage, path + ": its file system takes no file of " + human_bytes(room_bytes) +
                                          "; choose another destination"};
  return storage_error(path, errno);
}

// Nothing outside of it is touched, and the file becomes no shorter.
Status take_range(int fd, uint64_t offset, uint64_t length, const std::string& path) {
  if (length == 0) return {};
  if (const uint64_t free_bytes = free_bytes_of(fd); length > free_bytes) {
    struct stat info {};
    const bool known = ::fstat(fd, &info) == 0;
    // Another try may have taken the room already.
    if (known && static_cast<uint64_t>(info.st_blocks) * 512 < length)
      return no_space(path, length, free_bytes);
  }
  int result = 0;
  do {
    result = ::fallocate(fd, 0, static_cast<off_t>(offset), static_cast<off_t>(length));
  } while (result != 0 && errno == EINTR);
  if (result == 0 || takes_none_ahead(errno)) return {};
  if (errno == ENOSPC || errno == EDQUOT) return full(path, errno, fd);
  return storage_error(path, errno);
}

}  // namespace sluice::exports
