// SPDX-License-Identifier: Apache-2.0
#include "control/exports/beneath.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "dataplane/base/check.h"

namespace sluice::exports {

UniqueFd open_beneath(int directory_fd, const std::string& relative, uint64_t flags, mode_t mode,
                      uint64_t resolve) {
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS | resolve;
  // EAGAIN: something was renamed meanwhile and the kernel could not prove that the walk stayed beneath.
  constexpr int kAttempts = 16;
  long fd = -1;
  for (int i = 0; i < kAttempts && fd < 0; ++i) {
    fd = ::syscall(SYS_openat2, directory_fd, relative.c_str(), &how, sizeof how);
    if (fd < 0 && errno != EAGAIN && errno != EINTR) break;
  }
  return UniqueFd(static_cast<int>(fd));
}

bool give_directory(int from_fd, const std::string& from, int to_fd, const std::string& to) {
  if (::mkdirat(to_fd, to.c_str(), 0700) != 0) return false;
  if (::renameat2(from_fd, from.c_str(), to_fd, to.c_str(), 0) == 0) return true;
  const int reason = errno;
  ::unlinkat(to_fd, to.c_str(), AT_REMOVEDIR);  // unless somebody has put something there
  errno = reason == ENOTEMPTY || reason == ENOTDIR ? EEXIST : reason;
  return false;
}

bool rename_between(int from_fd, const std::string& from, int to_fd, const std::string& to, bool replace) {
  const unsigned flags = replace ? 0 : RENAME_NOREPLACE;
  int result = ::renameat2(from_fd, from.c_str(), to_fd, to.c_str(), flags);
  if (result != 0 && flags != 0 && (errno == EINVAL || errno == ENOSYS)) {
    struct stat info {};
    const bool directory =
        ::fstatat(from_fd, from.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
    if (directory) return give_directory(from_fd, from, to_fd, to);
    // A link never replaces either.
    result = ::linkat(from_fd, from.c_str(), to_fd, to.c_str(), 0);
    if (result == 0) ::unlinkat(from_fd, from.c_str(), 0);
  }
  return result == 0;
}

Result<bool> leads_to(const std::string& root_path, const std::string& relative, int directory_fd) {
  const UniqueFd root(::open(root_path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  const UniqueFd named = root ? open_beneath(root.get(), relative, O_PATH | O_DIRECTORY) : UniqueFd();
  if (!named && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV)) return false;
  struct stat by_name {};
  struct stat by_fd {};
  if (!named || ::fstat(named.get(), &by_name) != 0 || ::fstat(directory_fd, &by_fd) != 0)
    return lookup_error(printable(root_path + "/" + relative), errno, ErrorCode::kStorage);
  return by_name.st_dev == by_fd.st_dev && by_name.st_ino == by_fd.st_ino;
}

std::string path_now(int fd) {
  char target[PATH_MAX];
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(link.c_str(), target, sizeof target);
  return length <= 0 ? "a place without a name" : printable({target, static_cast<size_t>(length)});
}

std::optional<std::vector<std::string>> components(std::string_view path) {
  if (path.find('\0') != std::string_view::npos) return std::nullopt;
  std::vector<std::string> parts;
  while (!path.empty()) {
    const size_t slash = path.find('/');
    const std::string_view part = path.substr(0, slash);
    path.remove_prefix(slash == std::string_view::npos ? path.size() : slash + 1);
    if (part == "..") return std::nullopt;
    if (!part.empty() && part != ".") parts.emplace_back(part);
  }
  return parts;
}

std::string join(const std::vector<std::string>& parts, size_t from, size_t to) {
  DCHECK(from <= to && to <= parts.size(), "a part of these");
  std::string path;
  for (size_t i = from; i < to; ++i) path += (i == from ? "" : "/") + parts[i];
  return path;
}

std::string last_component(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string parent_of(const std::string& relative) {
  const size_t slash = relative.rfind('/');
  return slash == std::string::npos ? "." : relative.substr(0, slash);
}

namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

std::optional<std::vector<std::string>> names_in(int directory_fd) {
  // A description of its own, which begins at the front.
  const int again = ::openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, CloseDirectory> directory(again < 0 ? nullptr : ::fdopendir(again));
  if (!directory) return std::nullopt;
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* const each = ::readdir(directory.get())) {
    const std::string_view name = each->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return std::nullopt;
  std::sort(names.begin(), names.end());
  return names;
}

bool valid_file_name(std::string_view name) {
  const bool plain = name.find('/') == std::string_view::npos && name.find('\0') == std::string_view::npos;
  return plain && !name.empty() && name != "." && name != "..";
}

bool make_direct(int fd, bool wanted) {
  const int flags = ::fcntl(fd, F_GETFL) & ~(O_NONBLOCK | O_DIRECT);
  if (wanted && ::fcntl(fd, F_SETFL, flags | O_DIRECT) == 0) return true;
  ::fcntl(fd, F_SETFL, flags);
  return false;
}

namespace {

// Root may do everything on a disk of its own. Where it may not, a server decides, which takes it for nobody.
std::string denied() {
  const std::string said = ": permission denied; ";
  if (::geteuid() == 0)
    return said +
           "even to root, so a server of NFS takes it for nobody (root_squash), or SELinux or AppArmor "
           "forbid it: "
           "give the directory to the user that the server makes of root, or export it with no_root_squash";
  return said + "give the user of sluice-control, or who asks for it as himself, the right to it";
}

// The remedy for an error that only file systems of other hosts give; `otherwise` for all others.
std::string remedy_of(int reason, const char* otherwise) {
  switch (reason) {
    case ESTALE:
      return ": its server of NFS does not know it any more, as it was replaced or exported anew there; "
             "mount it "
             "again, then restart sluice-control";
    case ENOLCK:
      return ": its server of NFS gives no locks; mount it with vers=4.2, or start rpc-statd here and at the "
             "server, or, if no other host writes there, mount it with nolock";
    case ETIMEDOUT:
    case EREMOTEIO:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENOTCONN:
      return ": the server of its file system does not answer; mend that, then continue the session";
    case EIO:
      return std::string(otherwise) + ", and its server if it is mounted from one (soft: mount it hard)";
    default:
      return otherwise;
  }
}

}  // namespace

Error lookup_error(const std::string& path, int reason, ErrorCode otherwise) {
  switch (reason) {
    case ELOOP:
      return {ErrorCode::kOutsideExports, path + ": leads through a symbolic link; name the real path"};
    case EXDEV:
      return {ErrorCode::kOutsideExports, path + ": leads outside its export; name a path beneath it"};
    case ENOENT:
      return {otherwise, path + ": does not exist; check the name"};
    case ENOTDIR:
      return {otherwise, path + ": a part of it is not a directory; check the name"};
    case EACCES:
    case EPERM:
      return {otherwise, path + denied()};
    case ENAMETOOLONG:
      return {otherwise, path + ": the name is too long; choose a shorter one"};
    case ENOSYS:
      return {ErrorCode::kInternal, "this kernel has no openat2; Linux 5.6 or later is needed"};
    case EMFILE:
    case ENFILE:
      return {ErrorCode::kResources, path + ": too many open files; raise the limit of sluice-control"};
    default:
      return {otherwise, path + ": " + std::strerror(reason) + remedy_of(reason, "; check the file system")};
  }
}

Error storage_error(const std::string& path, int reason) {
  return {ErrorCode::kStorage,
          path + ": " + std::strerror(reason) + remedy_of(reason, "; check the disk and its file system")};
}

std::string human_bytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
  size_t unit = 0;
  uint64_t scale = 1;
  while (unit + 1 < std::size(kUnits) && bytes / scale >= 1024) {
    scale <<= 10;
    ++unit;
  }
  const uint64_t tenth = scale >= 10 ? bytes % scale / (scale / 10) : 0;
  return std::to_string(bytes / scale) + (tenth > 0 ? "." + std::to_string(tenth > 9 ? 9 : tenth) : "") +
         kUnits[unit];
}

bool stat_without_asking(int fd, struct stat* info) {
  struct statx known {};
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS, &known) != 0) return false;
  info->st_mode = known.stx_mode;
  info->st_size = static_cast<off_t>(known.stx_size);
  info->st_blocks = static_cast<blkcnt_t>(known.stx_blocks);
  info->st_nlink = known.stx_nlink;
  info->st_uid = known.stx_uid;
  info->st_gid = known.stx_gid;
  info->st_ino = known.stx_ino;
  info->st_dev = makedev(known.stx_dev_major, known.stx_dev_minor);
  info->st_mtim = {.tv_sec = known.stx_mtime.tv_sec, .tv_nsec = known.stx_mtime.tv_nsec};
  return true;
}

}  // namespace sluice::exports
