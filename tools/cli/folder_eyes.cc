// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/folder_eyes.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "tools/cli/format.h"

namespace sluice::cli {
namespace {

constexpr size_t kPathMost =
    4000;  // bytes of a name from the folder on: with the folder's own it fits a path
constexpr uint32_t kHappenings =
    IN_CREATE | IN_CLOSE_WRITE | IN_MOVED_TO | IN_ONLYDIR | IN_EXCL_UNLINK | IN_DONT_FOLLOW;

std::string joined(const std::string& directory, const char* name) {
  return directory.empty() ? name : directory + "/" + name;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

Status FolderEyes::open() {
  inotify_.reset(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (inotify_) return {};
  return Error{ErrorCode::kResources, fmt::format("cannot watch {}: {}; raise fs.inotify.max_user_instances",
                                                  printable(folder_.path().string()), std::strerror(errno))};
}

// Again and again: the same directory keeps its watch, and has maybe another name.
void FolderEyes::watch(const std::string& directory, int fd) {
  const std::string path = fmt::format("/proc/self/fd/{}/.", fd);
  const int number = ::inotify_add_watch(inotify_.get(), path.c_str(), kHappenings);
  if (number >= 0) {
    watched_[number] = directory;
  } else {
    blind_ = true;
  }
}

bool FolderEyes::fail(const std::string& directory) {
  problem_ = fmt::format("{}: {}", printable((folder_.path() / directory).string()), std::strerror(errno));
  return false;
}

bool FolderEyes::look(const std::string& directory,
                      const std::function<void(const std::string& name, const struct stat& info)>& on_file) {
  bool whole = true;
  std::vector<std::string> left{directory};
  if (directory.empty()) {
    blind_ = false;
    problem_.clear();
  }
  while (!left.empty()) {
    const std::string at = std::move(left.back());
    left.pop_back();
    UniqueFd fd = folder_.directory(at);
    if (!fd) {
      whole = (errno == ENOENT && !at.empty()) ? whole : fail(at);
      continue;
    }
    watch(at, fd.get());  // before it is read, so that nothing comes in between
    const std::unique_ptr<DIR, CloseDirectory> entries(::fdopendir(fd.release()));
    if (entries == nullptr) return fail(at);
    errno = 0;
    for (const dirent* entry = nullptr; (entry = ::readdir(entries.get())) != nullptr; errno = 0) {
      const std::string name = joined(at, entry->d_name);
      struct stat info {};
      if (entry->d_name[0] == '.' || name.size() > kPathMost) continue;
      if (::fstatat(::dirfd(entries.get()), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISREG(info.st_mode)) on_file(name, info);
      if (S_ISDIR(info.st_mode) && (apart_ == 0 || info.st_ino != apart_)) left.push_back(name);
    }
    if (errno != 0) whole = fail(at);
  }
  return whole;
}

FolderEyes::News FolderEyes::read() {
  News news;
  alignas(inotify_event) std::array<char, 64U << 10> buffer{};
  while (true) {
    const ssize_t got = ::read(inotify_.get(), buffer.data(), buffer.size());
    if (got <= 0) break;
    for (ssize_t at = 0; at < got;) {
      inotify_event event{};
      std::memcpy(&event, buffer.data() + at, sizeof event);
      const char* const name = event.len == 0 ? "" : buffer.data() + at + sizeof event;
      at += static_cast<ssize_t>(sizeof event + event.len);
      if ((event.mask & IN_Q_OVERFLOW) != 0) news.lost = true;
      const auto directory = watched_.find(event.wd);
      if (directory == watched_.end()) continue;
      if ((event.mask & IN_IGNORED) != 0) {
        watched_.erase(directory);
        continue;
      }
      if (name[0] == '\0' || name[0] == '.') continue;
      std::string whole = joined(directory->second, name);
      if ((event.mask & IN_ISDIR) != 0) {
        news.directories.push_back(std::move(whole));
      } else {
        news.changes.push_back({.name = std::move(whole), .closed = (event.mask & IN_CREATE) == 0});
      }
    }
  }
  return news;
}

}  // namespace sluice::cli
