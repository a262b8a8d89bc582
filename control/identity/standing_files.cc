// SPDX-License-Identifier: Apache-2.0
#include "control/identity/standing_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace sluice::identity {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;
using std::chrono::system_clock;
using Marks = std::vector<std::pair<std::string, Stamp>>;

struct DirectoryCloser {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

bool is_absent(int error) { return error == ENOENT || error == ENOTDIR; }

// Through symbolic links: what counts is what would be read.
bool mark(int directory, const std::string& path, Marks* marks) {
  struct stat status {};
  const bool there = ::fstatat(directory, path.c_str(), &status, 0) == 0;
  if (!there && !is_absent(errno)) return false;
  marks->emplace_back(path, there ? stamp_of(status) : Stamp());
  return true;
}

// The directory, and each entry of it.
bool mark_all(const fs::path& path, Marks* marks) {
  const std::unique_ptr<DIR, DirectoryCloser> directory(::opendir(path.c_str()));
  if (!directory) {
    marks->emplace_back(path.string(), Stamp());
    return is_absent(errno);
  }
  const int descriptor = ::dirfd(directory.get());
  if (!mark(descriptor, ".", marks)) return false;
  errno = 0;
  while (const dirent* const entry = ::readdir(directory.get())) {
    const char* const name = entry->d_name;
    if (std::strcmp(name, ".") != 0 && std::strcmp(name, "..") != 0 && !mark(descriptor, name, marks))
      return false;
    errno = 0;
  }
  return errno == 0;
}

int64_t changed_last_ns(const Marks& marks) {
  int64_t last_ns = 0;
  for (const auto& [path, stamp] : marks) last_ns = std::max(last_ns, stamp.changed_ns);
  return last_ns;
}

}  // namespace

std::optional<Marks> StandingFiles::look() const {
  Marks marks;
  if (marks_) marks.reserve(marks_->size());
  for (const char* const each : {"identity", "trusted", "trusted/former", "distrusted"}) {
    if (!mark_all(node_.directory / each, &marks)) return std::nullopt;
  }
  for (const std::string& file :
       {node_.ca_file, node_.crl_file, node_.addresses_file, node_.users_map_file}) {
    if (!file.empty() && !mark(AT_FDCWD, file, &marks)) return std::nullopt;
  }
  return marks;
}

Status StandingFiles::take_users(Standing* standing) {
  if (node_.users_map_file.empty()) return {};
  auto map = UserMap::load(node_.users_map_file);
  if (map) users_ = std::move(*map);
  // Nobody can be judged without one.
  if (!users_) return map.error();
  if (!map) standing->users_problem = map.error();
  standing->users = users_;
  return {};
}

Result<Standing> StandingFiles::now(steady_clock::time_point asked) {
  const std::scoped_lock lock(mutex_);
  if (last_ && looked_ >= asked) return *last_;
  looked_ = steady_clock::now();
  const std::chrono::nanoseconds unix_time = system_clock::now().time_since_epoch();
  // Before the files are read: what changes meanwhile does not look like this any more.
  std::optional<Marks> marks = look();
  if (last_ && marks_ && marks == marks_) return *last_;
  last_.reset();
  marks_.reset();
  Result<Standing> standing = load_standing(node_);
  if (!standing) return standing;
  if (const Status users = take_users(&*standing); !users) return users.error();
  last_ = *standing;
  // A problem with a file may be one of the moment.
  const bool whole = standing->trust->problems().empty() && !standing->users_problem;
  if (whole && marks && changed_last_ns(*marks) + settled_after_.count() < unix_time.count())
    marks_ = std::move(marks);
  return standing;
}

}  // namespace sluice::identity
