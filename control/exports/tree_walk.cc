// SPDX-License-Identifier: Apache-2.0
#include "control/exports/tree_walk.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "control/exports/beneath.h"
#include "control/exports/temporary.h"
#include "control/exports/times.h"

namespace sluice::exports {
namespace {

using catalog::Entry;
using catalog::EntryKind;
using catalog::Failure;

constexpr size_t kPathBytesMax = 4096;

class TreeWalk {
 public:
  TreeWalk(const SourceTree& tree, const TakeEntry& take) : tree_(tree), take_(take) {}

  // `path`: of a directory in the tree; empty for the tree itself.
  Status directory(const std::string& path) {
    if (!permitted(tree_.nested, path)) return lost(path, EACCES);
    UniqueFd fd =
        open_beneath(tree_.fd.get(), path.empty() ? "." : path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    struct statx info {};
    if (!fd || ::statx(fd.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, &info) != 0) return lost(path, errno);
    std::optional<std::vector<std::string>> names = names_in(fd.get());
    if (!names) return lost(path, errno);
    std::vector<std::string> directories;
    for (const std::string& name : *names) {
      if (is_temporary_name(name)) continue;  // what another session receives is no file yet
      const std::string its_path = path.empty() ? name : path + "/" + name;
      if (its_path.size() >= kPathBytesMax) {
        if (Status status = take_({.path = its_path.substr(0, kPathBytesMax), .failure = Failure::kName});
            !status)
          return status;
        continue;
      }
      bool is_directory = false;
      if (Status status = one(fd.get(), name, its_path, &is_directory); !status) return status;
      if (is_directory) directories.push_back(its_path);
    }
    fd.reset();  // however deep it goes, one descriptor is open
    names.reset();
    for (const std::string& each : directories) {
      if (Status status = directory(each); !status) return status;
    }
    if (path.empty() && tree_.name.empty()) return {};  // the destination keeps its own attributes
    return take_({.path = path,
                  .kind = EntryKind::kDirectory,
                  .mode = info.stx_mode & 07777U,
                  .mtime_ns = ns_of(info.stx_mtime)});
  }

 private:
  Status lost(const std::string& path, int reason) {
    if (path.empty()) return lookup_error(printable(tree_.path), reason, ErrorCode::kSourceUnreadable);
    return take_({.path = path, .kind = EntryKind::kDirectory, .failure = read_failure(reason)});
  }

  Status one(int fd, const std::string& name, const std::string& path, bool* is_directory) {
    struct statx info {};
    Entry entry{.path = path};
    if (::statx(fd, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &info) != 0) {
      entry.failure = read_failure(errno);
      return take_(std::move(entry));
    }
    *is_directory = S_ISDIR(info.stx_mode);
    if (*is_directory) return {};
    entry.mode = info.stx_mode & 07777U;
    entry.mtime_ns = ns_of(info.stx_mtime);
    entry.ctime_ns = ns_of(info.stx_ctime);
    if (S_ISREG(info.stx_mode)) {
      entry.size_bytes = info.stx_size;
      if (info.stx_nlink > 1) note_links(info, &entry);
    } else if (S_ISLNK(info.stx_mode)) {
      entry.kind = EntryKind::kSymlink;
      std::string target(kPathBytesMax, '\0');
      const ssize_t bytes = ::readlinkat(fd, name.c_str(), target.data(), target.size());
      if (bytes <= 0 || bytes == static_cast<ssize_t>(target.size())) {
        entry.failure = bytes < 0 ? read_failure(errno) : Failure::kName;
      } else {
        entry.target = target.substr(0, static_cast<size_t>(bytes));
      }
    } else {
      entry.failure = Failure::kSpecial;
    }
    return take_(std::move(entry));
  }

  // The first name of a file carries its bytes, the others are links to it.
  void note_links(const struct statx& info, Entry* entry) {
    const auto key = std::make_pair((uint64_t{info.stx_dev_major} << 32) | info.stx_dev_minor, info.stx_ino);
    const auto [first, is_first] = linked_.emplace(key, entry->path);
    if (is_first) return;
    entry->kind = EntryKind::kHardLink;
    entry->target = first->second;
    entry->size_bytes = 0;
  }

  const SourceTree& tree_;
  const TakeEntry& take_;
  std::map<std::pair<uint64_t, uint64_t>, std::string> linked_;
};

}  // namespace

catalog::Failure read_failure(int reason) {
  switch (reason) {
    case ENOENT:
    case ENOTDIR:
    case ELOOP:  // it is another thing than it was a moment ago
      return Failure::kVanished;
    case EACCES:
    case EPERM:
      return Failure::kForbidden;
    case ENAMETOOLONG:
      return Failure::kName;
    default:
      return Failure::kUnreadable;
  }
}

Status walk_tree(const SourceTree& tree, const TakeEntry& take) { return TreeWalk(tree, take).directory(""); }

}  // namespace sluice::exports
