// SPDX-License-Identifier: Apache-2.0
#include "control/exports/writable.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include "dataplane/base/check.h"

namespace sluice::exports {
namespace {

constexpr mode_t kOwner = S_IRWXU;
constexpr mode_t kModeBits = 07777;

std::string by_descriptor(int fd) { return fmt::format("/proc/self/fd/{}", fd); }

// Also of a descriptor of O_PATH, which fchmod(2) refuses.
bool change_mode(int fd, mode_t mode) {
  return ::fchmod(fd, mode) == 0 || (errno == EBADF && ::chmod(by_descriptor(fd).c_str(), mode) == 0);
}

// Who is not in a directory's group loses its S_ISGID with any change of its mode.
bool would_keep_group_bit(const struct stat& info) {
  if ((info.st_mode & S_ISGID) == 0 || ::geteuid() == 0 || info.st_gid == ::getegid()) return true;
  std::vector<gid_t> groups(static_cast<size_t>(std::max(0, ::getgroups(0, nullptr))));
  const int count = ::getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(0, count)));
  return std::find(groups.begin(), groups.end(), info.st_gid) != groups.end();
}

std::string path_of(int fd) {
  char target[PATH_MAX];
  const ssize_t length = ::readlink(by_descriptor(fd).c_str(), target, sizeof target);
  return length <= 0 ? std::string() : std::string(target, static_cast<size_t>(length));
}

std::string in_digits(const std::string& bytes) {
  std::string digits;
  for (const char c : bytes) digits += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return digits;
}

std::string of_digits(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    bytes += static_cast<char>(std::strtoul(digits.substr(i, 2).c_str(), nullptr, 16));
  return bytes;
}

struct Note {
  mode_t mode = 0;
  std::set<mode_t> opened;  // one of them it has, unless somebody has changed it
  std::string path;
};

}  // namespace

// A line for each opening: "+ device inode mode opened path", and "- device inode" when it ended. The last
// line may be cut short: nothing was changed for it.
size_t WritableDirectories::give_back() {
  std::ifstream in(notes_path_);
  std::map<Inode, Note> left;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    std::istringstream words(line);
    std::string sign;
    Inode inode;
    mode_t mode = 0;
    mode_t opened = 0;
    std::string digits;
    words >> sign >> inode.first >> inode.second;
    if (sign == "-") left.erase(inode);
    if (sign != "+" || !(words >> mode >> opened >> digits)) continue;
    Note& note = left[inode];
    note.mode = mode;
    note.opened.insert(opened);
    note.path = of_digits(digits);
  }
  size_t given_back = 0;
  for (const auto& [inode, note] : left) {
    const UniqueFd fd(::open(note.path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    // Whoever has changed it meanwhile wanted what it is now. Devices are numbered anew by each start of a
    // system.
    if (!fd || ::fstat(fd.get(), &info) != 0 || info.st_ino != inode.second ||
        !note.opened.contains(info.st_mode & kModeBits))
      continue;
    if (change_mode(fd.get(), note.mode)) ++given_back;
  }
  if (in.is_open()) ::truncate(notes_path_.c_str(), 0);
  return given_back;
}

bool WritableDirectories::note(const std::string& line, bool durable) {
  if (notes_path_.empty()) return true;
  if (!notes_)
    notes_ =
        UniqueFd(::open(notes_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  const std::string whole = line + "\n";
  if (!notes_ || ::write(notes_.get(), whole.data(), whole.size()) != static_cast<ssize_t>(whole.size()))
    return false;
  return !durable || ::fdatasync(notes_.get()) == 0;
}

std::shared_ptr<const void> WritableDirectories::open_up(int directory_fd) {
  struct stat info {};
  const std::scoped_lock lock(mutex_);
  if (::fstat(directory_fd, &info) != 0 || !S_ISDIR(info.st_mode)) return nullptr;
  const Inode inode{info.st_dev, info.st_ino};
  const auto handle = [this, inode] {
    return std::shared_ptr<const void>(
        this, [self = shared_from_this(), inode](const void*) { self->close(inode); });
  };
  if (const auto known = open_.find(inode); known != open_.end()) {
    ++known->second.users;
    return handle();
  }
  const mode_t mode = info.st_mode & kModeBits;
  Open open{.fd = UniqueFd(::fcntl(directory_fd, F_DUPFD_CLOEXEC, 0)),
            .mode = mode,
            .opened = mode | kOwner,
            .users = 1};
  if (open.opened == mode || !open.fd || !would_keep_group_bit(info)) return nullptr;
  // Where nothing is noted it may have none that can be seen, as in a process of a user (control/users).
  const std::string path = notes_path_.empty() ? std::string() : path_of(directory_fd);
  if (path.empty() != notes_path_.empty() ||
      !note(fmt::format("+ {} {} {} {} {}", info.st_dev, info.st_ino, mode, open.opened, in_digits(path)),
            true))
    return nullptr;
  if (!change_mode(directory_fd, open.opened)) {
    (void)note(fmt::format("- {} {}", info.st_dev, info.st_ino), false);
    return nullptr;
  }
  DCHECK((open.opened & kOwner) == kOwner && (open.mode & kOwner) != kOwner, "opening up changes something");
  open_.emplace(inode, std::move(open));
  return handle();
}

std::shared_ptr<const void> WritableDirectories::if_needed(int directory_fd) {
  const bool may = ::faccessat(directory_fd, ".", W_OK | X_OK, AT_EACCESS) == 0 || errno != EACCES;
  return may ? nullptr : open_up(directory_fd);
}

void WritableDirectories::close(Inode inode) {
  const std::scoped_lock lock(mutex_);
  const auto at = open_.find(inode);
  DCHECK(at != open_.end() && at->second.users != 0, "what is open has users");
  if (--at->second.users > 0) return;
  const Open& open = at->second;
  struct stat info {};
  // Not if somebody else has changed it meanwhile.
  if (::fstat(open.fd.get(), &info) == 0 && (info.st_mode & kModeBits) == open.opened)
    change_mode(open.fd.get(), open.mode);
  (void)note(fmt::format("- {} {}", inode.first, inode.second), false);
  open_.erase(at);
  // Otherwise they would only grow.
  if (open_.empty() && notes_ && ::lseek(notes_.get(), 0, SEEK_END) > (1 << 20))
    (void)::ftruncate(notes_.get(), 0);
}

int WritableDirectories::set_mode(int directory_fd, mode_t mode) {
  struct stat info {};
  const std::scoped_lock lock(mutex_);
  if (::fstat(directory_fd, &info) != 0) return errno;
  const auto known = open_.find({info.st_dev, info.st_ino});
  if (known == open_.end()) return ::fchmod(directory_fd, mode) == 0 ? 0 : errno;
  // What the note says is given back only where the mode is still the opened one.
  Open& open = known->second;
  const mode_t opened = mode | kOwner;
  if (!note(fmt::format("+ {} {} {} {} {}", info.st_dev, info.st_ino, mode, opened,
                        in_digits(path_of(directory_fd))),
            true))
    return EIO;
  open.mode = mode;
  open.opened = opened;
  return ::fchmod(directory_fd, opened) == 0 ? 0 : errno;
}

}  // namespace sluice::exports
