// What peers may do to names: make directories, move, remove. Each change is durable before it is told.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <variant>

#include "control/exports/as_user.h"
#include "control/exports/beneath.h"
#include "control/exports/exports.h"
#include "control/exports/remover.h"
#include "control/exports/reserved.h"
#include "control/exports/room.h"
#include "control/exports/temporary.h"
#include "control/exports/walk.h"
#include "dataplane/base/check.h"

namespace sluice::exports {
namespace {

constexpr uint64_t kDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW;

std::string shown_parent(const std::string& absolute) {
  const size_t slash = absolute.rfind('/');
  return slash == 0 ? "/" : absolute.substr(0, slash);
}

Status sync_directory(int fd, const std::string& path) {
  return ::fsync(fd) == 0 ? Status() : storage_error(path, errno);
}

// What is wrong with a name that is to be made, or to be moved.
Status check_new_name(const std::string& name, const std::string& path) {
  if (name.size() > names::kNameBytesMax)
    return Error{ErrorCode::kStorage, path + ": the name is too long; use at most 255 bytes"};
  if (!is_temporary_name(name)) return {};
  return Error{ErrorCode::kStorage, path + ": such names are kept for files under way; choose another"};
}

// `fd`: of anything in the file system, which then says what it ran out of; -1: not known.
Error change_error(const std::string& path, int reason, int fd = -1) {
  switch (reason) {
    case EEXIST:
      return {ErrorCode::kDestinationExists, path + ": exists already; choose another name"};
    case ENOSPC:
    case EDQUOT:
      return full(path, reason, fd);
    case EROFS:
      return {ErrorCode::kStorage, path + ": its file system is read-only; mount it for writing"};
    default:
      return lookup_error(path, reason, ErrorCode::kStorage);
  }
}

}  // namespace

Result<Exports::Location> Exports::locate_managed(std::string_view path) const {
  auto location = locate(path);
  if (!location) return location.error();
  if (!location->root->config.manage)
    return Error{ErrorCode::kOutsideExports,
                 location->absolute + ": export " + location->root->config.name +
                     " lacks the right manage; add m to its mode in node.toml, e.g. mode = \"rwm\""};
  if (Status status = check_in_place(*location->root); !status) return status.error();
  return location;
}

Status Exports::check_free(const Location& location, bool with_all_beneath) const {
  const std::string path = location.path();
  const std::string beneath = path == "/" ? path : path + "/";
  for (const Root& root : roots_) {
    const std::string top = root.config.path.string();
    if (top == path)
      return Error{ErrorCode::kOutsideExports, location.absolute + ": is the root of export " +
                                                   root.config.name +
                                                   ", which stays as it is; name something in it"};
    if (with_all_beneath && top.starts_with(beneath))
      return Error{ErrorCode::kOutsideExports, location.absolute + ": holds the root of export " +
                                                   root.config.name + ", which stays where it is"};
  }
  const std::optional<std::string> taken = reserved_->under_way(path);
  if (!taken || (!with_all_beneath && *taken != path)) return {};
  return busy(printable(*taken));
}

// ---- mkdir ---------------------------------------------------------------------------------------

namespace {

// Makes, or finds, one directory of a path and goes into it.
Status make_one(UniqueFd& at, const std::string& name, const std::string& shown, bool may_exist,
                names::Done& done) {
  DCHECK(valid_file_name(name), "a part of a path is one name");
  if (::mkdirat(at.get(), name.c_str(), 0777) == 0) {
    ++done.entries;
  } else if (errno != EEXIST || !may_exist) {
    return change_error(shown, errno, at.get());
  }
  UniqueFd next = open_beneath(at.get(), name, kDirectory);
  if (!next && errno == ENOTDIR) return change_error(shown, may_exist ? EEXIST : errno);
  if (!next) return lookup_error(shown, errno, ErrorCode::kStorage);
  // Also one that was there: whoever made it may not have seen to that.
  if (Status status = sync_directory(next.get(), shown); !status) return status;
  if (Status status = sync_directory(at.get(), shown); !status) return status;
  at = std::move(next);
  return {};
}

}  // namespace

Result<names::Done> Exports::make_directory(const names::MakeDirectory& asked) const {
  const auto location = locate_managed(asked.path);
  if (!location) return location.error();
  names::Done done;
  if (location->relative == ".")
    return asked.parents ? Result<names::Done>(done) : change_error(location->absolute, EEXIST);
  if (const Status status = check_free(*location, false); !status) return status.error();
  const auto parts = components(location->relative);
  DCHECK(parts && !parts->empty(), "a path that was found has a name in it");
  const size_t first = asked.parents ? 0 : parts->size() - 1;
  const std::string before = first == 0 ? "." : join(*parts, 0, first);
  UniqueFd at = open_beneath(location->root->fd->get(), before, O_RDONLY | O_DIRECTORY);
  if (!at && errno == ENOENT)
    return Error{ErrorCode::kStorage, "directory " + shown_parent(location->absolute) +
                                          " does not exist; make it first, or use --parents"};
  if (!at) return lookup_error(shown_parent(location->absolute), errno, ErrorCode::kStorage);
  for (size_t i = first; i < parts->size(); ++i) {
    const std::string shown = printable(location->root->config.path.string() + "/" + join(*parts, 0, i + 1));
    if (const Status status = check_new_name((*parts)[i], shown); !status) return status.error();
    if (const Status status = make_one(at, (*parts)[i], shown, asked.parents, done); !status)
      return status.error();
  }
  return done;
}

Status Exports::make_missing(std::string_view destination, bool is_directory,
                             const catalog::Keep& keep) const {
  if (user_ && trees_of_user() == nullptr)
    return not_as_user(destination, "directories are to be made for it");
  const auto location = locate_writable(destination);
  if (!location) return location.error();
  if (Status status = check_keep(*location, keep); !status) return status;
  const bool whole = is_directory || destination.ends_with('/');
  if (user_) return trees_of_user()->make_missing(peer_, location->path(), whole, keep);
  const auto parts = components(location->relative);
  const size_t count = whole || parts->empty() ? parts->size() : parts->size() - 1;
  const int root_fd = location->root->fd->get();
  // What is there needs no right to read it, as anywhere on a path.
  if (count == 0 || open_beneath(root_fd, join(*parts, 0, count), O_PATH | O_DIRECTORY)) return {};
  UniqueFd at = open_beneath(root_fd, ".", O_RDONLY | O_DIRECTORY);
  if (!at) return lookup_error(location->absolute, errno, ErrorCode::kStorage);
  names::Done done;
  for (size_t i = 0; i < count; ++i) {
    const std::string path = location->root->config.path.string() + "/" + join(*parts, 0, i + 1);
    if (Status status = check_new_name((*parts)[i], printable(path)); !status) return status;
    if (reserved_->under_way(path) == path) return busy(printable(path));
    if (Status status = make_one(at, (*parts)[i], printable(path), true, done); !status) return status;
  }
  return {};
}

// ---- mv ------------------------------------------------------------------------------------------

namespace {

Status check_replaced(int directory_fd, const std::string& name, const std::string& shown, bool replace,
                      bool moves_directory) {
  struct stat info {};
  if (::fstatat(directory_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? Status() : lookup_error(shown, errno, ErrorCode::kStorage);
  if (!replace)
    return Error{ErrorCode::kDestinationExists,
                 shown + ": exists; replace it with --force, or choose another name"};
  if (S_ISREG(info.st_mode) && !moves_directory) return {};
  return Error{ErrorCode::kDestinationExists,
               shown + ": exists, and only a file replaces a file; choose another name"};
}

Error move_error(const std::string& from, const std::string& to, int reason) {
  if (reason == EXDEV)
    return {ErrorCode::kStorage, from + ": lies on another file system than " + to +
                                     "; names are only moved within one: send the file instead"};
  if (reason == EBUSY) return {ErrorCode::kStorage, from + ": something is mounted there; unmount it first"};
  return change_error(reason == EEXIST ? to : from, reason);
}

}  // namespace

Result<names::Done> Exports::move(const names::Move& asked) const {
  const auto from = locate_managed(asked.from);
  if (!from) return from.error();
  if (const Status status = check_free(*from, true); !status) return status.error();
  auto to = locate_managed(asked.to);
  if (!to) return to.error();
  struct stat there {};
  const UniqueFd probe = open_beneath(to->root->fd->get(), to->relative, O_PATH | O_NOFOLLOW);
  const bool into = probe && ::fstat(probe.get(), &there) == 0 && S_ISDIR(there.st_mode);
  if (into) {
    to = locate_managed(to->path() + "/" + last_component(from->relative));
    if (!to) return to.error();
  } else if (asked.to.ends_with('/')) {
    return lookup_error(to->absolute, probe ? ENOTDIR : ENOENT, ErrorCode::kStorage);
  }
  if (from->root != to->root)
    return Error{ErrorCode::kOutsideExports,
                 from->absolute + ": is of export " + from->root->config.name + ", and " + to->absolute +
                     " of " + to->root->config.name +
                     "; names are moved within one export: send the file instead"};
  if (const Status status = check_free(*to, false); !status) return status.error();
  if ((to->path() + "/").starts_with(from->path() + "/") && to->path() != from->path())
    return Error{ErrorCode::kUsage, from->absolute + ": cannot be moved into itself"};
  const std::string from_name = last_component(from->relative);
  const std::string to_name = last_component(to->relative);
  if (const Status status = check_new_name(from_name, from->absolute); !status) return status.error();
  if (const Status status = check_new_name(to_name, to->absolute); !status) return status.error();
  DCHECK(valid_file_name(from_name) && valid_file_name(to_name), "names are moved, and no paths");
  const UniqueFd from_at =
      open_beneath(from->root->fd->get(), parent_of(from->relative), O_RDONLY | O_DIRECTORY);
  if (!from_at) return lookup_error(from->absolute, errno, ErrorCode::kSourceUnreadable);
  const UniqueFd to_at = open_beneath(to->root->fd->get(), parent_of(to->relative), O_RDONLY | O_DIRECTORY);
  if (!to_at) return lookup_error(shown_parent(to->absolute), errno, ErrorCode::kStorage);
  struct stat moved {};
  if (::fstatat(from_at.get(), from_name.c_str(), &moved, AT_SYMLINK_NOFOLLOW) != 0)
    return lookup_error(from->absolute, errno, ErrorCode::kSourceUnreadable);
  const bool directory = S_ISDIR(moved.st_mode);
  if (!directory && asked.from.ends_with('/'))
    return lookup_error(from->absolute, ENOTDIR, ErrorCode::kSourceUnreadable);
  if (directory && root_of(moved.st_dev, moved.st_ino) != nullptr)
    return Error{ErrorCode::kOutsideExports,
                 from->absolute + ": is the root of an export, which stays as it is"};
  if (const Status status = check_replaced(to_at.get(), to_name, to->absolute, asked.replace, directory);
      !status)
    return status.error();
  if (!rename_between(from_at.get(), from_name, to_at.get(), to_name, asked.replace))
    return move_error(from->absolute, to->absolute, errno);
  for (const int fd : {to_at.get(), from_at.get()}) {
    if (const Status status = sync_directory(fd, to->absolute); !status) return status.error();
  }
  return names::Done{.entries = 1};
}

// ---- rm ------------------------------------------------------------------------------------------

Result<names::Done> Exports::remove(const names::Remove& asked, Pulse& pulse, Asker asker) const {
  if (user_) return not_as_user(asked.path, "it is to be removed");
  const auto location = asker == Asker::kPeer ? locate_managed(asked.path) : locate_writable(asked.path);
  if (!location) return location.error();
  if (const Status status = check_free(*location, true); !status) return status.error();
  const std::string name = last_component(location->relative);
  const UniqueFd at =
      open_beneath(location->root->fd->get(), parent_of(location->relative), O_RDONLY | O_DIRECTORY);
  if (!at) return lookup_error(location->absolute, errno, ErrorCode::kSourceUnreadable);
  struct stat info {};
  if (::fstatat(at.get(), name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0)
    return lookup_error(location->absolute, errno, ErrorCode::kSourceUnreadable);
  if (!S_ISDIR(info.st_mode) && asked.path.ends_with('/'))
    return lookup_error(location->absolute, ENOTDIR, ErrorCode::kSourceUnreadable);
  if (asked.empty && !S_ISDIR(info.st_mode))
    return lookup_error(location->absolute, ENOTDIR, ErrorCode::kSourceUnreadable);
  if (S_ISDIR(info.st_mode) && !asked.recursive && !asked.empty)
    return Error{
        ErrorCode::kUsage,
        location->absolute +
            ": is a directory; to remove it with all that is in it, ask for that (recursive; rm -r)"};
  // Who may write could choose their modes as well.
  Remover remover(
      *reserved_, location->root->config.write ? writable_ : nullptr,
      [this](dev_t device, ino_t inode) { return root_of(device, inode) != nullptr; }, pulse);
  const Status removed = asked.empty ? remover.remove_empty(at.get(), name, location->absolute)
                                     : remover.remove(at.get(), name, location->absolute);
  if (!removed) return removed.error();
  if (const Status status = sync_directory(at.get(), location->absolute); !status) return status.error();
  return remover.take_done();
}

std::vector<std::string> Exports::writable() const {
  std::vector<std::string> names;
  for (const Root& root : roots_) {
    if (root.open && root.config.write) names.push_back(root.config.name);
  }
  return names;
}

std::optional<names::Space> Exports::space_of(const std::string& export_name) const {
  for (const Root& root : roots_) {
    struct statvfs info {};
    if (root.config.name != export_name || ::fstatvfs(root.fd->get(), &info) != 0) continue;
    return names::Space{.name = export_name,
                        .size_bytes = uint64_t{info.f_blocks} * info.f_frsize,
                        .free_bytes = uint64_t{info.f_bavail} * info.f_frsize};
  }
  return std::nullopt;
}

Result<names::Done> Exports::change(const names::Request& asked, Pulse& pulse, Asker asker) const {
  if (const auto* const removed = std::get_if<names::Remove>(&asked)) return remove(*removed, pulse, asker);
  const Exports where = asker == Asker::kOperator ? for_operator() : *this;
  if (const auto* const made = std::get_if<names::MakeDirectory>(&asked)) return where.make_directory(*made);
  if (const auto* const moved = std::get_if<names::Move>(&asked)) return where.move(*moved);
  return Error{ErrorCode::kInternal, "no change of names"};
}

}  // namespace sluice::exports
