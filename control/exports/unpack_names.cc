// The way of what was unpacked to its final names.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "control/exports/beneath.h"
#include "control/exports/read_back.h"
#include "control/exports/refusals.h"
#include "control/exports/temporary.h"
#include "control/exports/times.h"
#include "control/exports/unpack.h"
#include "dataplane/base/check.h"
#include "dataplane/base/progress.h"

namespace sluice::exports {

using catalog::Entry;
using catalog::EntryKind;
using catalog::Failure;

Status Unpacker::commit() {
  DCHECK(settled_.size() == index_.entries.size(), "a pack is staged before it gets its names");
  const Result<bool> there = leads_to(tree_.root_path, tree_.relative, tree_.fd.get());
  if (!there) return there.error();
  if (!*there)
    return Error{ErrorCode::kStorage,
                 printable(tree_.path) +
                     ": its path leads elsewhere since the session began: a directory was "
                     "renamed or replaced, or something mounted over it; put it back, then "
                     "continue the session"};
  staging_.give_directories([this](const std::string& path) { return parent_.open(path); },
                            [this](size_t i) {
                              DCHECK(i < settled_.size() && !settled_[i], "a name is given once");
                              settled_[i] = true;
                            });
  const auto of_top = [this](size_t i) { return index_.entries[i].path == catalog::kTop; };
  if (Status status = give_names([&](size_t i) { return !of_top(i); }); !status) return status;
  parent_.close();
  staging_.remove();
  top_open_.reset();
  // That was the last name that came or went in it.
  if (Status status = give_names(of_top); !status) return status;
  note_other_times();
  if (::syncfs(tree_.fd.get()) != 0) return disk_error(tree_.path, errno);
  staging_.close();
  return {};
}

Status Unpacker::give_names(const std::function<bool(size_t)>& which) {
  const auto due = [&](size_t i) { return !settled_[i] && which(i); };
  for (size_t first = 0, end = 0; first < index_.entries.size(); first = end) {
    end = first + 1;
    if (!due(first)) continue;
    end = end_of_run(first);
    std::vector<std::optional<Result<Failure>>> given(end - first);
    side_by_side(given.size(), options_.threads, [&](size_t i, size_t thread) {
      if (due(first + i)) given[i] = give_name(first + i, accounts_[thread]);
      return !given[i] || *given[i];
    });
    Status status;
    for (size_t i = first; i < end; ++i) {
      const std::optional<Result<Failure>>& one = given[i - first];
      if (one && !*one) status = one->error();
      if (one && *one) settle(i, **one);
    }
    if (!status) return status;
  }
  return {};
}

void Unpacker::settle(size_t number, Failure failure) {
  DCHECK(!settled_[number], "a name is given once");
  settled_[number] = true;
  if (failure == Failure::kNone) return;
  missing_.note(index_.entries[number].path, failure);
  other_time_[number] = false;
  failed_[number] = true;
}

// Files and links of one directory are given their names in any order, but where two names may be one.
size_t Unpacker::end_of_run(size_t first) {
  const std::vector<Entry>& entries = index_.entries;
  const std::string directory = parent_of(entries[first].path);
  size_t end = first + 1;
  if (!is_made(entries[first]) || parent_.open(entries[first].path) < 0 || parent_.folds()) return end;
  while (end < entries.size() && is_made(entries[end]) && parent_of(entries[end].path) == directory) ++end;
  return end;
}

// Last, since only so many names are told.
void Unpacker::note_other_times() {
  for (size_t i = 0; i < index_.entries.size(); ++i) {
    if (other_time_[i]) missing_.note(index_.entries[i].path, catalog::kOtherTime);
  }
  other_time_.assign(index_.entries.size(), false);
}

Result<Failure> Unpacker::give_name(size_t number, Accounts& accounts) {
  const Entry& entry = index_.entries[number];
  if (entry.kind == EntryKind::kDirectory) return set_attributes(number, accounts);
  if (entry.kind == EntryKind::kHardLink) {
    const Result<Failure> linked = link_to_target(entry, staging_.choose_number(number));
    if (!linked || *linked != Failure::kNone) return linked;
  }
  DCHECK(!staging_.at(number).empty(), "what gets its name was made");
  return place(entry, staging_.at(number), accounts);
}

Result<Failure> Unpacker::place(const Entry& entry, const std::string& staged, Accounts& accounts) {
  const int parent = parent_.open(entry.path);
  if (parent < 0) return told(entry.path, errno);
  const std::string name = last_component(entry.path);
  const int from = staging_.fd();
  const auto alone = parent_.one_by_one();
  if (parent_.has_other(name)) return Failure::kOtherLetters;
  if (options_.overwrite) {
    // A file or a link is replaced, whatever else stands there is not.
    struct stat info {};
    if (::fstatat(parent, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(info.st_mode) &&
        !S_ISLNK(info.st_mode))
      return Failure::kOtherKind;
  }
  const auto renamed = [&] { return rename_between(from, staged, parent, name, options_.overwrite); };
  if (renamed() || (errno == EACCES && parent_.open_up() && renamed())) {
    parent_.gave(name);
    return Failure::kNone;
  }
  const int reason = errno;
  // A server of NFS that was restarted does not know that it did it already.
  if (reason == ENOENT && same_as(entry, parent, name, staged, accounts) == Failure::kNone) {
    parent_.gave(name);
    return Failure::kNone;
  }
  if (reason != EEXIST || options_.overwrite) return told(entry.path, reason);
  const Failure same = same_as(entry, parent, name, staged, accounts);
  if (same == Failure::kNone) parent_.gave(name);
  return same;
}

namespace {

// What stands there is not the same: would it be replaced on request?
Failure in_the_way(int parent_fd, const std::string& name) {
  struct stat info {};
  const bool there = ::fstatat(parent_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
  return there && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode) ? Failure::kOtherKind : Failure::kExists;
}

}  // namespace

// A crash may have come after the name was given. Only bytes that were read say that it is the same file.
Failure Unpacker::same_as(const Entry& entry, int parent_fd, const std::string& name,
                          const std::string& staged, Accounts& accounts) {
  const Failure differs = in_the_way(parent_fd, name);
  if (entry.kind == EntryKind::kSymlink) {
    std::string target(entry.target.size() + 1, '\0');
    const ssize_t bytes = ::readlinkat(parent_fd, name.c_str(), target.data(), target.size());
    const bool same = bytes == static_cast<ssize_t>(entry.target.size()) && target.starts_with(entry.target);
    return same ? Failure::kNone : differs;
  }
  const UniqueFd fd = open_beneath(parent_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return differs;
  if (entry.kind == EntryKind::kHardLink) {
    struct stat linked {};
    const bool same = ::fstatat(staging_.fd(), staged.c_str(), &linked, AT_SYMLINK_NOFOLLOW) == 0 &&
                      linked.st_ino == info.st_ino && linked.st_dev == info.st_dev;
    return same ? Failure::kNone : differs;
  }
  if (static_cast<uint64_t>(info.st_size) != entry.size_bytes) return differs;
  const Result<uint64_t> crc = exports::read_crc(fd.get(), wire::CrcKind::kCrc64Ecma, 0, entry.size_bytes);
  if (!crc || *crc != entry.digest) return differs;
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, timespec_of(entry.mtime_ns)};
  const Result<Failure> given = give_attributes(fd.get(), entry, accounts);
  if (given && *given == Failure::kAttributesRefused) return *given;
  const bool set = given && *given == Failure::kNone && ::fchmod(fd.get(), mode_of(entry)) == 0 &&
                   ::futimens(fd.get(), times) == 0;
  return set ? Failure::kNone : Failure::kForbidden;
}

Result<Failure> Unpacker::link_to_target(const Entry& entry, const std::string& staged) {
  const auto cannot = [&]() -> Result<Failure> {
    if (errno == ENOENT) return Failure::kTargetMissing;
    return told(entry.path, errno);
  };
  Given& given = *tree_.given;
  if (!given.may_enter(tree_.fd.get(), tree_.path, parent_of(entry.target))) return Failure::kOtherLetters;
  const UniqueFd at = open_beneath(tree_.fd.get(), parent_of(entry.target), O_RDONLY | O_DIRECTORY);
  if (!at) return cannot();
  const std::string target = last_component(entry.target);
  struct stat info {};
  if (::fstatat(at.get(), target.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return cannot();
  if (given.has_other(given.folding(at.get()), at.get(), tree_.absolute(entry.target), target))
    return Failure::kOtherLetters;
  // Something else may have had that name, and has it still.
  if (!S_ISREG(info.st_mode)) return Failure::kOtherKind;
  if (!is_made_of(info.st_mtim, timespec_of(entry.mtime_ns), staging_.fd())) return Failure::kExists;
  ::unlinkat(staging_.fd(), staged.c_str(), 0);  // of a commit that was interrupted
  if (::linkat(at.get(), target.c_str(), staging_.fd(), staged.c_str(), 0) == 0) return Failure::kNone;
  return cannot();
}

Result<Failure> Unpacker::set_attributes(size_t number, Accounts& accounts) {
  const Entry& entry = index_.entries[number];
  const bool is_top = entry.path == catalog::kTop;
  if (is_top && tree_.keeps_own) return Failure::kNone;
  parent_.close();
  UniqueFd fd;
  if (is_top) fd = open_beneath(tree_.fd.get(), ".", O_RDONLY | O_DIRECTORY);
  if (is_top && !fd) return told(entry.path, errno);
  if (const int reason = is_top ? 0 : parent_.make(entry.path, &fd); reason != 0)
    return told(entry.path, reason);
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, timespec_of(entry.mtime_ns)};
  if (Result<Failure> given = give_attributes(fd.get(), entry, accounts); !given || *given != Failure::kNone)
    return given;
  // The nine permission bits travel, and that it is sticky; that bit and others of a directory, such as that
  // its group is inherited in it, stay if they are set here.
  struct stat now {};
  if (::fstat(fd.get(), &now) != 0) return told(entry.path, errno);
  const mode_t mode = (now.st_mode & 07000) | (entry.mode & S_ISVTX) | mode_of(entry);
  if (const int reason = tree_.writable->set_mode(fd.get(), mode); reason != 0)
    return told(entry.path, reason);
  if (::futimens(fd.get(), times) != 0) return told(entry.path, errno);
  other_time_[number] = ::fstat(fd.get(), &now) == 0 && !same_time(now.st_mtim, times[1]);
  return Failure::kNone;
}

}  // namespace sluice::exports
