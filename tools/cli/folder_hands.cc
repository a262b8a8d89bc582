// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/folder_hands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "dataplane/base/file_time.h"
#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

using unattended::FileId;

UniqueFd open_beneath(int root, const std::string& name, uint64_t flags) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(static_cast<int>(::syscall(SYS_openat2, root, name.c_str(), &how, sizeof how)));
}

Error failed_at(const std::string& name, const char* what) {
  return {errno == EEXIST ? ErrorCode::kDestinationExists : ErrorCode::kStorage,
          fmt::format("{}: cannot be {}: {}", printable(name), what, std::strerror(errno))};
}

bool is_gone() { return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV; }

}  // namespace

Result<Folder> Folder::open(const std::filesystem::path& path) {
  Folder folder;
  folder.path_ = path;
  folder.fd_.reset(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat info {};
  if (!folder.fd_ || ::fstat(folder.fd_.get(), &info) != 0)
    return Error{ErrorCode::kSourceUnreadable, fmt::format("{}: cannot be opened as a directory: {}",
                                                           printable(path.string()), std::strerror(errno))};
  folder.device_ = info.st_dev;
  folder.inode_ = info.st_ino;
  return folder;
}

UniqueFd Folder::directory(const std::string& name) const {
  return open_beneath(fd_.get(), name.empty() ? "." : name, O_RDONLY | O_DIRECTORY);
}

FileId Folder::id_of(const struct stat& info) const {
  return {.device = info.st_dev == device_ ? 0 : info.st_dev,
          .inode = info.st_ino,
          .size = static_cast<uint64_t>(info.st_size),
          .mtime_ns = static_cast<int64_t>(base::file_time_ns(info.st_mtim.tv_sec, info.st_mtim.tv_nsec))};
}

Folder::Place Folder::place(const std::string& name) const {
  const size_t slash = name.rfind('/');
  Place place;
  place.last = slash == std::string::npos ? name : name.substr(slash + 1);
  place.directory = directory(slash == std::string::npos ? "" : name.substr(0, slash));
  return place;
}

std::optional<FileId> Folder::look(const std::string& name) const {
  const size_t slash = name.rfind('/');
  UniqueFd parent;
  if (slash != std::string::npos) {
    parent = directory(name.substr(0, slash));
    if (!parent) return std::nullopt;
  }
  const int at = slash == std::string::npos ? fd_.get() : parent.get();
  const char* const last = slash == std::string::npos ? name.c_str() : name.c_str() + slash + 1;
  struct stat info {};
  if (::fstatat(at, last, &info, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return id_of(info);
}

base::Writer Folder::writer(const std::string& name) const {
  const UniqueFd file = open_beneath(fd_.get(), name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
  return file ? base::writer_of(file.get()) : base::Writer::kUnknown;
}

bool Folder::is(const Place& place, const FileId& id, Done* instead) const {
  struct stat info {};
  *instead = Done::kGone;
  if (!place.directory ||
      ::fstatat(place.directory.get(), place.last.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return false;
  *instead = Done::kChanged;
  return S_ISREG(info.st_mode) && id_of(info) == id;
}

Result<Folder::Done> Folder::remove(const std::string& name, const FileId& id) const {
  const Place from = place(name);
  Done instead = Done::kGone;
  if (!is(from, id, &instead)) return instead;
  if (::unlinkat(from.directory.get(), from.last.c_str(), 0) == 0) return Done::kDone;
  if (is_gone()) return Done::kGone;
  return failed_at(name, "removed");
}

Result<Folder::Done> Folder::move(const std::string& name, const FileId& id, const Folder& to) const {
  const Place from = place(name);
  Done instead = Done::kGone;
  if (!is(from, id, &instead)) return instead;
  for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
    const Place above = to.place(name.substr(0, slash));
    if (!above.directory) return failed_at(name, "moved");
    if (::mkdirat(above.directory.get(), above.last.c_str(), 0777) != 0 && errno != EEXIST)
      return failed_at(name, "moved");
  }
  const Place target = to.place(name);
  if (!target.directory) return failed_at(name, "moved");
  if (::renameat2(from.directory.get(), from.last.c_str(), target.directory.get(), target.last.c_str(),
                  RENAME_NOREPLACE) == 0)
    return Done::kDone;
  return failed_at(name, "moved");
}

}  // namespace sluice::cli
