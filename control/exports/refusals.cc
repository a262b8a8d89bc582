// SPDX-License-Identifier: Apache-2.0
#include "control/exports/refusals.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdint>

#include "control/exports/beneath.h"
#include "control/exports/room.h"

namespace sluice::exports {
namespace {

using catalog::Failure;

bool unchangeable(int fd) {
  struct statx info {};
  return fd >= 0 && ::statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &info) == 0 &&
         (info.stx_attributes & (uint64_t{STATX_ATTR_IMMUTABLE} | STATX_ATTR_APPEND)) != 0;
}

// It, or the directory that it is in, or is to be in: the nearest that is there.
bool unchangeable(int directory_fd, const std::string& relative) {
  if (unchangeable(open_beneath(directory_fd, relative, O_PATH | O_NOFOLLOW).get())) return true;
  for (std::string path = relative; path != ".";) {
    path = parent_of(path);
    const UniqueFd fd = open_beneath(directory_fd, path, O_PATH | O_DIRECTORY);
    if (fd) return unchangeable(fd.get());
  }
  return false;
}

}  // namespace

Failure why_not(int directory_fd, const std::string& relative, int reason) {
  switch (reason) {
    case EEXIST:
    case ENOTDIR:
    case EISDIR:
    case ENOTEMPTY:
    case ELOOP:
      return Failure::kOtherKind;
    case EPERM:
      return unchangeable(directory_fd, relative) ? Failure::kImmutable : Failure::kForbidden;
    case EACCES:
      return Failure::kDirectoryForbidden;
    case ENOTUNIQ:  // of Parent
      return Failure::kOtherLetters;
    case ENAMETOOLONG:
    case EINVAL:
    case EILSEQ:
      return Failure::kName;
    case ENOENT:
      return Failure::kVanished;
    case EMLINK:
      return Failure::kTooManyLinks;
    case EBUSY:
    case EXDEV:
      return Failure::kMounted;
    case EROFS:
      return Failure::kReadOnly;
    default:
      return Failure::kUnwritable;
  }
}

Error refusal_of(int directory_fd, const std::string& relative, const std::string& path, int reason) {
  switch (reason) {
    case ENOSPC:
    case EDQUOT:
      return full(path, reason, directory_fd);
    case EMLINK:
      return {ErrorCode::kStorage, path + ": its file system allows no more links there; divide them"};
    case EBUSY:
      return {ErrorCode::kStorage, path + ": something is mounted there; unmount it, or choose another name"};
    case EROFS:
      return {ErrorCode::kStorage, path + ": its file system may only be read; mount it for writing"};
    case EPERM:
      if (unchangeable(directory_fd, relative))
        return {ErrorCode::kStorage,
                path +
                    ": it or its directory may not be changed by anybody (chattr +i or +a); "
                    "take that away (chattr -i -a), or choose another destination"};
      [[fallthrough]];
    default:
      return lookup_error(path, reason, ErrorCode::kStorage);
  }
}

Error disk_error(const std::string& path, int reason, int fd) {
  if (reason == ENOSPC || reason == EDQUOT) return full(printable(path), reason, fd);
  return storage_error(printable(path), reason);
}

Error other_letters(const std::string& path) {
  return {
      ErrorCode::kDestinationExists,
      printable(path) +
          ": exists under another name (other letters, another form of Unicode, dots or spaces at the end), "
          "which is the same to this file system; choose another name"};
}

}  // namespace sluice::exports
