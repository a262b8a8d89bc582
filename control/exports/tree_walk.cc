// SPDX-License-Identifier: Apache-2.0
#include "control/exports/tree_walk.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "control/exports/beneath.h"
#include "control/exports/owners.h"
#include "control/exports/temporary.h"
#include "control/exports/times.h"
#include "control/exports/xattrs.h"
#include "dataplane/base/check.h"
#include "dataplane/base/path.h"

namespace sluice::exports {
namespace {

using base::kPathBytesMax;
using catalog::Entry;
using catalog::EntryKind;
using catalog::Failure;

class TreeWalk {
 public:
  TreeWalk(const SourceTree& tree, const selection::Choice& choice, const TakeEntry& take)
      : tree_(tree), choice_(choice), take_(take) {}

  Status all() {
    if (choice_.names() == nullptr) return directory("");
    Part whole;
    whole.names = choice_.names()->names();
    whole.itself = false;
    return listed(whole);
  }

 private:
  // Of a list: a directory, and what of it is listed.
  struct Part {
    std::string path;
    std::span<const std::string> names;  // those deeper
    bool contents = false;
    bool itself = false;
    bool anything = false;  // of it was taken
  };

  // `path`: of a directory in the tree; empty for the tree itself.
  Status directory(const std::string& path) {
    struct statx info {};
    UniqueFd fd = open(path, &info);
    if (!fd) return lost(path, errno);
    std::optional<std::vector<std::string>> names = names_in(fd.get());
    if (!names) return lost(path, errno);
    Entry own = itself(path, info, fd.get());
    std::vector<std::string> directories;
    for (const std::string& name : *names) {
      bool is_directory = false;
      const std::string its_path = path.empty() ? name : path + "/" + name;
      if (Status status = found(fd.get(), name, its_path, &is_directory); !status) return status;
      if (is_directory) directories.push_back(its_path);
    }
    fd.reset();  // however deep it goes, one descriptor is open
    names.reset();
    for (const std::string& each : directories) {
      if (Status status = directory(each); !status) return status;
    }
    return take_itself(std::move(own));
  }

  // 0 and errno otherwise.
  UniqueFd open(const std::string& path, struct statx* info) const {
    if (!permitted(tree_.nested, path)) {
      errno = EACCES;
      return {};
    }
    UniqueFd fd =
        open_beneath(tree_.fd.get(), path.empty() ? "." : path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (fd && ::statx(fd.get(), "", AT_EMPTY_PATH, STATX_BASIC_STATS, info) != 0) return {};
    return fd;
  }

  // What is told of a directory when all in it was, and it is not open any more.
  Entry itself(const std::string& path, const struct statx& info, int fd) {
    Entry entry{.path = path,
                .kind = EntryKind::kDirectory,
                .mode = info.stx_mode & 07777U,
                .mtime_ns = ns_of(info.stx_mtime),
                .attributes = accounts_.attributes(info.stx_uid, info.stx_gid, choice_.keep())};
    entry.failure = read_kept(fd, true, choice_.keep(), accounts_, &entry.attributes);
    return entry;
  }
  Status take_itself(Entry entry) {
    // Otherwise the destination keeps its own attributes.
    if (entry.path.empty() && tree_.name.empty() && !choice_.keep().top) return {};
    return take_(std::move(entry));
  }

  // A name in a directory.
  Status found(int fd, const std::string& name, const std::string& path, bool* is_directory) {
    if (is_passing_name(name)) return {};  // no file yet, or none any more
    if (path.size() < kPathBytesMax) return one(fd, name, path, is_directory);
    if (!takes(path, false)) return {};
    return take_({.path = path.substr(0, kPathBytesMax), .failure = Failure::kName});
  }

  bool takes(const std::string& path, bool is_directory) const {
    return choice_.filter().takes(tree_.name.empty() ? path : tree_.name + "/" + path, is_directory);
  }

  Status lost(const std::string& path, int reason) {
    if (path.empty()) return lookup_error(printable(tree_.path), reason, ErrorCode::kSourceUnreadable);
    return take_({.path = path, .kind = EntryKind::kDirectory, .failure = read_failure(reason)});
  }

  // ---- of a list -------------------------------------------------------------------------------

  Status listed(Part& part) {
    struct statx info {};
    UniqueFd fd = open(part.path, &info);
    if (!fd) return nothing_of(part, errno);
    Entry own = itself(part.path, info, fd.get());
    std::vector<Part> deeper;
    std::set<std::string, std::less<>> seen;
    for (size_t at = 0; at < part.names.size();) {
      const std::string name = component(part, part.names[at]);
      size_t end = at + 1;
      while (end < part.names.size() && component(part, part.names[end]) == name) ++end;
      if (name == ".") {
        part.contents = true;
      } else {
        seen.insert(name);
        if (Status status = group(fd.get(), part, name, part.names.subspan(at, end - at), &deeper); !status)
          return status;
      }
      at = end;
    }
    if (part.contents) {
      if (Status status = contents(fd.get(), part, seen, &deeper); !status) return status;
    }
    fd.reset();
    for (Part& each : deeper) {
      if (Status status = listed(each); !status) return status;
      part.anything = part.anything || each.anything;
    }
    const bool is_top = part.path.empty() && choice_.keep().top;
    if (!part.itself && !part.anything && !is_top) return {};
    part.anything = true;
    return take_itself(std::move(own));
  }

  static std::string_view beneath(const Part& part, std::string_view name) {
    DCHECK(part.path.empty() || (name.size() > part.path.size() && name.starts_with(part.path)),
           "a part has the names that lie in it");
    return name.substr(part.path.empty() ? 0 : part.path.size() + 1);
  }
  static std::string component(const Part& part, std::string_view name) {
    const std::string_view rest = beneath(part, name);
    return std::string(rest.substr(0, rest.find('/')));
  }

  // Those of the names that begin with the same component.
  Status group(int fd, Part& part, const std::string& name, std::span<const std::string> names,
               std::vector<Part>* deeper) {
    Part next;
    next.path = part.path.empty() ? name : part.path + "/" + name;
    size_t own = 0;  // these come first
    while (own < names.size() && beneath(part, names[own]).size() <= name.size() + 1) ++own;
    next.names = names.subspan(own);
    const bool slash = own != 0 && names[own - 1].ends_with('/');
    struct statx info {};
    if (is_temporary_name(name)) return missing(names, Failure::kName);
    if (::statx(fd, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &info) != 0)
      return missing(names, read_failure(errno));
    if (S_ISDIR(info.stx_mode)) {
      next.itself = (own != 0 || part.contents) && takes(next.path, true);
      next.contents = slash && next.itself;
      if (next.itself || !next.names.empty()) deeper->push_back(std::move(next));
      return {};
    }
    if (Status status = missing(next.names, Failure::kVanished); !status) return status;
    // As for open(2), only a directory has a slash behind it.
    if (slash) return missing(names.first(own), Failure::kVanished);
    if (own == 0) return {};
    bool is_directory = false;
    part.anything = part.anything || takes(next.path, false);
    return one(fd, name, next.path, &is_directory);
  }

  // What a directory holds, and nothing deeper.
  Status contents(int fd, Part& part, const std::set<std::string, std::less<>>& seen,
                  std::vector<Part>* deeper) {
    const std::optional<std::vector<std::string>> names = names_in(fd);
    if (!names) return lost(part.path, errno);
    for (const std::string& name : *names) {
      if (seen.contains(name)) continue;
      Part next;
      next.path = part.path.empty() ? name : part.path + "/" + name;
      bool is_directory = false;
      if (Status status = found(fd, name, next.path, &is_directory); !status) return status;
      next.itself = is_directory;
      if (is_directory) deeper->push_back(std::move(next));
    }
    return {};
  }

  Status nothing_of(const Part& part, int reason) {
    if (part.path.empty() || part.itself) {
      if (Status status = lost(part.path, reason); !status) return status;
    }
    return missing(part.names, read_failure(reason));
  }

  Status missing(std::span<const std::string> names, Failure failure) {
    for (std::string path : names) {
      if (path.ends_with('/')) path.pop_back();
      if (Status status = take_({.path = std::move(path), .failure = failure}); !status) return status;
    }
    return {};
  }

  // ---- of each name ----------------------------------------------------------------------------

  Status one(int fd, const std::string& name, const std::string& path, bool* is_directory) {
    struct statx info {};
    Entry entry{.path = path};
    if (::statx(fd, name.c_str(), AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS, &info) != 0) {
      entry.failure = read_failure(errno);
      return takes(path, false) ? take_(std::move(entry)) : Status();
    }
    *is_directory = S_ISDIR(info.stx_mode) && takes(path, true);
    if (S_ISDIR(info.stx_mode) || !takes(path, false)) return {};
    entry.mode = info.stx_mode & 07777U;
    entry.mtime_ns = ns_of(info.stx_mtime);
    entry.ctime_ns = clock_ns_of(info.stx_ctime);
    entry.attributes = accounts_.attributes(info.stx_uid, info.stx_gid, choice_.keep());
    if (S_ISREG(info.stx_mode)) {
      entry.size_bytes = info.stx_size;
      if (info.stx_nlink > 1) note_links(info, &entry);
      if (entry.kind == EntryKind::kFile) entry.failure = kept_of(fd, name, &entry.attributes);
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

  // What is another file by now is found out when it is read.
  Failure kept_of(int fd, const std::string& name, catalog::Attributes* attributes) {
    if (!choice_.keep().extended()) return Failure::kNone;
    const UniqueFd file(
        ::openat(fd, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
    if (!file) return read_failure(errno);
    return read_kept(file.get(), false, choice_.keep(), accounts_, attributes);
  }

  // The first name of a file carries its bytes, the others are links to it.
  void note_links(const struct statx& info, Entry* entry) {
    const auto key = std::make_pair((uint64_t{info.stx_dev_major} << 32) | info.stx_dev_minor, info.stx_ino);
    const auto [first, is_first] = linked_.emplace(key, entry->path);
    if (is_first) return;
    entry->kind = EntryKind::kHardLink;
    entry->target = first->second;
    entry->size_bytes = 0;
    entry->attributes = {};
  }

  const SourceTree& tree_;
  const selection::Choice& choice_;
  const TakeEntry& take_;
  Accounts accounts_;
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

Status walk_tree(const SourceTree& tree, const selection::Choice& choice, const TakeEntry& take) {
  return TreeWalk(tree, choice, take).all();
}

}  // namespace sluice::exports
