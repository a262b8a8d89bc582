// Destinations: a temporary file beside the final name, allocated in full, locked, renamed when complete.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>

#include "control/exports/beneath.h"
#include "control/exports/destination_state.h"
#include "control/exports/exports.h"
#include "control/exports/file_state.h"
#include "control/exports/letters.h"
#include "control/exports/owners.h"
#include "control/exports/reserved.h"
#include "control/exports/room.h"
#include "control/exports/temporary.h"
#include "control/exports/times.h"
#include "control/exports/xattrs.h"
#include "dataplane/base/path.h"

namespace sluice::exports {
namespace {

using base::kNameBytesMax;

// What stands under the final name must not be there, or be a regular file that may be replaced.
Status check_final_name(int directory_fd, const std::string& name, const std::string& path, bool overwrite) {
  struct stat info {};
  if (::fstatat(directory_fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT) return {};
    return lookup_error(path, errno, ErrorCode::kStorage);
  }
  if (!S_ISREG(info.st_mode))
    return Error{ErrorCode::kDestinationExists,
                 path + ": exists and is no regular file, which is never replaced; choose another name"};
  if (!overwrite) return Error{ErrorCode::kDestinationExists, path + ": exists; replace it with --overwrite"};
  if (folds_case(directory_fd, name) && has_other_letters(directory_fd, name))
    return Error{ErrorCode::kDestinationExists, path +
                                                    ": exists, written with other letters, which are the "
                                                    "same to this file system; choose another name"};
  return {};
}

}  // namespace

DestinationFile::State::~State() {
  if (!fd || committed || keep) return;
  if (user) {
    (void)user->drop(for_user());
    return;
  }
  // Before the descriptor closes, and the lock with it.
  if (still_named(directory.get(), temporary, fd.get())) ::unlinkat(directory.get(), temporary.c_str(), 0);
}

// The directory, for people who look for it under its own name and do not find the file there.
std::string DestinationFile::State::place_now() const {
  const std::string now = path_now(directory.get());
  return now == path.substr(0, path.rfind('/')) ? "beneath what was mounted over " + now : "in " + now;
}

Error DestinationFile::State::elsewhere(ErrorCode code, const std::string& begin,
                                        const std::string& end) const {
  return {code, path + ": " + begin +
                    " path leads elsewhere since the session began: a directory was renamed or replaced, or "
                    "something mounted over it; " +
                    end};
}

DestinationFile::DestinationFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
DestinationFile::DestinationFile(DestinationFile&&) noexcept = default;
DestinationFile& DestinationFile::operator=(DestinationFile&&) noexcept = default;
DestinationFile::~DestinationFile() = default;

int DestinationFile::fd() const { return state_->fd.get(); }
int DestinationFile::directory_fd() const { return state_->directory.get(); }
bool DestinationFile::direct() const { return state_->direct; }
const std::string& DestinationFile::final_path() const { return state_->path; }

std::string DestinationFile::name_path() const { return state_->name_path; }
bool DestinationFile::has_name() const { return state_->committed; }
void DestinationFile::keep() { state_->keep = true; }

catalog::FileIdentity DestinationFile::identity() const {
  const std::optional<FileState> state = state_of(state_->fd.get());
  return state ? state->identity : catalog::FileIdentity();
}

Status DestinationFile::sync() {
  State& s = *state_;
  if (!s.directory_synced) {
    if (::fsync(s.directory.get()) != 0) return storage_error(s.path, errno);
    s.directory_synced = true;
  }
  if (::fdatasync(s.fd.get()) != 0) return storage_error(s.path, errno);
  return {};
}

Status DestinationFile::State::rename_to_final() const {
  const int at = directory.get();
  const Result<bool> there = in_place();
  if (!there) return there.error();
  if (!*there)
    return elsewhere(ErrorCode::kStorage, "its",
                     "its data is " + place_now() + ", as " + printable(temporary) +
                         ": put the directory back, then continue the session");
  if (!still_named(at, temporary, fd.get()))
    return Error{ErrorCode::kStorage,
                 path + ": its temporary file was removed or replaced by somebody; this file begins anew"};
  if (Status status = check_final_name(at, name, path, spec.overwrite); !status && spec.overwrite)
    return status;
  if (rename_between(at, temporary, at, name, spec.overwrite)) return {};
  if (errno == EEXIST)
    return Error{ErrorCode::kDestinationExists,
                 path + ": appeared while it was received; replace it with --overwrite"};
  if (errno == EISDIR || errno == ENOTEMPTY)
    return Error{ErrorCode::kDestinationExists,
                 path + ": is a directory, which is never replaced; choose another name"};
  return storage_error(path, errno);
}

Status DestinationFile::State::remove() const {
  if (still_named(directory.get(), temporary, fd.get()) &&
      ::unlinkat(directory.get(), temporary.c_str(), 0) != 0 && errno != ENOENT)
    return storage_error(path, errno);
  return ::fsync(directory.get()) == 0 ? Status() : Status(storage_error(path, errno));
}

Status DestinationFile::drop() {
  return state_->user ? state_->user->drop(state_->for_user()) : state_->remove();
}

Status DestinationFile::finish() {
  State& s = *state_;
  if (s.user) return s.user->finish(s.for_user());
  const int fd = s.fd.get();
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, timespec_of(s.spec.mtime_ns)};
  Accounts accounts;
  if (const Refused refused = give_kept(fd, false, s.spec.attributes, s.spec.keep, accounts);
      refused.reason != 0)
    return concerns_disk(fd, refused.reason)
               ? storage_error(s.path, refused.reason)
               : Error{ErrorCode::kAttributes,
                       s.path + ": cannot be given " + refused.what + ": " + std::strerror(refused.reason) +
                           "; send it to another file system, or leave out --xattrs and --acls"};
  if (const int reason = accounts.give(fd, s.spec.attributes); reason != 0)
    return Error{ErrorCode::kStorage,
                 s.path + ": cannot be given its owner or group: " + std::strerror(reason) +
                     "; let sluice-control do it (CAP_CHOWN, CAP_FOWNER), or leave out --owner and --group"};
  if (::ftruncate(fd, static_cast<off_t>(s.spec.size)) != 0 || ::fchmod(fd, s.spec.mode & 0777) != 0 ||
      ::futimens(fd, times) != 0 || ::fsync(fd) != 0)
    return storage_error(s.path, errno);
  return {};
}

bool DestinationFile::has_its_time() const {
  struct stat info {};
  return ::fstat(state_->fd.get(), &info) != 0 || same_time(info.st_mtim, timespec_of(state_->spec.mtime_ns));
}

Status DestinationFile::commit() {
  State& s = *state_;
  if (s.user) return s.commit_for_user();
  if (!s.committed) {
    if (auto status = s.rename_to_final(); !status) return status;
    s.committed = true;
    s.under_way.reset();
  }
  if (::fsync(s.directory.get()) != 0) return storage_error(s.path, errno);
  // The name was given in the directory that is open. Whoever waits for files may have taken it from there
  // already, so only the way to that directory is looked at.
  const Result<bool> there = s.in_place();
  if (!there) return there.error();
  if (*there) return {};
  return s.elsewhere(ErrorCode::kOutsideExports, "complete, but its",
                     "the file is " + s.place_now() + ": move it from there");
}

namespace {

// Where the file goes: which directory beneath the root, and the name in it.
struct Place {
  std::string directory = ".";
  std::string directory_path;  // absolute; empty for "/"
  std::string name;
};

Error missing_directory(const std::string& path) {
  return {ErrorCode::kStorage, "directory " + path + " does not exist; make it first, or use --mkdir"};
}

// `relative` and `absolute` are the normalised destination.
Result<Place> place_of(int root_fd, const std::string& relative, const std::string& absolute,
                       const DestinationSpec& spec) {
  const UniqueFd probe = open_beneath(root_fd, relative, O_PATH | O_NOFOLLOW);
  struct stat info {};
  const bool there = probe && ::fstat(probe.get(), &info) == 0;
  if (!there && errno != ENOENT) return lookup_error(absolute, errno, ErrorCode::kStorage);
  if (there && S_ISDIR(info.st_mode)) return Place{relative, absolute == "/" ? "" : absolute, spec.name};
  if (spec.is_directory || spec.path.ends_with('/')) {
    if (!there) return missing_directory(absolute);
    return Error{ErrorCode::kStorage, absolute + ": is not a directory; name a directory, or a single file"};
  }
  const size_t slash = relative.rfind('/');
  Place place;
  if (slash != std::string::npos) place.directory = relative.substr(0, slash);
  place.directory_path = absolute.substr(0, absolute.rfind('/'));
  place.name = slash == std::string::npos ? relative : relative.substr(slash + 1);
  return place;
}

Status check_name(const std::string& name, const std::string& directory) {
  if (!valid_file_name(name))
    return Error{ErrorCode::kStorage,
                 directory + ": '" + printable(name) + "' is not a file name; name the destination in full"};
  if (is_temporary_name(name))
    return Error{ErrorCode::kStorage, directory + "/" + printable(name) +
                                          ": such names are kept for files under way; choose another"};
  if (temporary_name(name).size() > kNameBytesMax)
    return Error{ErrorCode::kStorage,
                 directory + "/" + printable(name) + ": the name is too long; use at most " +
                     std::to_string(kNameBytesMax - kTemporarySuffix.size() - 1) + " bytes"};
  return {};
}

// 0 when the file cannot be that big.
uint64_t aligned_bytes(const DestinationSpec& spec) {
  const uint64_t alignment = spec.alignment == 0 ? 1 : spec.alignment;
  constexpr auto kMax = static_cast<uint64_t>(std::numeric_limits<off_t>::max());
  if (spec.size > kMax - alignment) return 0;
  return (spec.size + alignment - 1) / alignment * alignment;
}

}  // namespace

Result<Exports::Location> Exports::locate_writable(std::string_view path) const {
  auto location = locate(path);
  if (!location) return location.error();
  if (!location->root->config.write)
    return Error{ErrorCode::kOutsideExports, location->absolute + ": export " + location->root->config.name +
                                                 " may only be read; set mode = \"rw\" in node.toml"};
  if (Status status = check_in_place(*location->root); !status) return status.error();
  return location;
}

Result<DestinationFile> Exports::create_destination(const DestinationSpec& spec) const {
  const auto location = locate_writable(spec.path);
  if (!location) return location.error();
  if (user_) return create_for_user(*location, spec);
  if (Status status = check_keep(*location, spec.keep); !status) return status.error();
  const int root_fd = location->root->fd->get();
  const auto place = place_of(root_fd, location->relative, location->absolute, spec);
  if (!place) return place.error();
  if (auto status = check_name(place->name, place->directory_path); !status) return status.error();

  auto state = std::make_unique<DestinationFile::State>();
  state->spec = spec;
  state->name = place->name;
  state->root_path = location->root->config.path;
  state->relative = place->directory;
  state->path = place->directory_path + "/" + printable(place->name);
  state->name_path = place->directory_path + "/" + place->name;
  state->temporary = temporary_name(place->name);
  const std::string temporary_path = place->directory_path + "/" + printable(state->temporary);
  state->directory = open_beneath(root_fd, place->directory, O_RDONLY | O_DIRECTORY);
  if (!state->directory)
    return errno == ENOENT ? missing_directory(place->directory_path)
                           : lookup_error(place->directory_path, errno, ErrorCode::kStorage);
  const int at = state->directory.get();
  if (auto status = check_final_name(at, state->name, state->path, spec.overwrite); !status) {
    // Of this file, maybe, made just before a crash, when the name was free: nobody else looks for it. Nor is
    // anything of this file synced later, so that the power could bring it back.
    if (::faccessat(at, state->temporary.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
      (void)remove_leftover(at, state->temporary, temporary_path, *reserved_);
      ::fsync(at);
    }
    return status.error();
  }

  const uint64_t needed_bytes = aligned_bytes(spec);
  if (needed_bytes == 0 && spec.size != 0) return no_space(state->path, spec.size, free_bytes_of(at));
  auto fd = create_temporary(at, state->temporary, temporary_path, *reserved_);
  if (!fd) return fd.error();
  state->fd = std::move(*fd);  // from here the destructor removes it
  const Status room = take_room(state->fd.get(), spec.size, needed_bytes, spec.holes, state->path);
  if (!room) {
    (void)state->remove();  // the destructor tries again
    return room.error();
  }
  state->direct = make_direct(state->fd.get());
  state->under_way = Reserved::add_path(reserved_, state->absolute());
  DestinationFile file(std::move(state));
  // They count as durable from now on.
  if (Status status = spec.holes.empty() ? Status() : file.sync(); !status) return status.error();
  return file;
}

Reservation Exports::reserve(const catalog::FileIdentity& unfinished, const std::string& name_path) const {
  using Both = std::pair<Reservation, Reservation>;
  return std::make_shared<const Both>(Reserved::add(reserved_, unfinished),
                                      Reserved::add_path(reserved_, name_path));
}

Result<Exports::Named> Exports::open_named(const std::string& name_path) const {
  const size_t slash = name_path.rfind('/');
  if (slash == std::string::npos || !valid_file_name(name_path.substr(slash + 1)))
    return Error{ErrorCode::kOutsideExports, printable(name_path) + ": is not the path of a file"};
  const std::string directory = slash == 0 ? "/" : name_path.substr(0, slash);
  const auto location = locate_writable(directory);
  if (!location) return location.error();
  Named named;
  named.name = name_path.substr(slash + 1);
  named.root_path = location->root->config.path;
  named.relative = location->relative;
  named.directory = open_beneath(location->root->fd->get(), location->relative, O_RDONLY | O_DIRECTORY);
  if (!named.directory) return lookup_error(location->absolute, errno, ErrorCode::kStorage);
  return named;
}

Result<std::optional<DestinationFile>> Exports::reopen_destination(const DestinationSpec& spec,
                                                                   const catalog::FileIdentity& identity,
                                                                   UniqueFd fd) const {
  if (user_) return reopen_for_user(spec, identity, std::move(fd));
  auto named = open_named(spec.path);
  if (!named) return named.error();
  auto state = std::make_unique<DestinationFile::State>();
  state->keep = true;  // whatever goes wrong here: it is not ours to remove
  state->spec = spec;
  state->name = named->name;
  state->name_path = spec.path;
  state->path = printable(spec.path);
  state->temporary = temporary_name(named->name);
  state->root_path = std::move(named->root_path);
  state->relative = std::move(named->relative);
  state->directory = std::move(named->directory);
  const int at = state->directory.get();
  const bool fetched = static_cast<bool>(fd);
  state->fd = fetched ? std::move(fd) : open_beneath(at, state->temporary, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  if (!state->fd && errno == ENOENT) return std::optional<DestinationFile>();
  if (!state->fd) return lookup_error(state->path, errno, ErrorCode::kStorage);
  if (!fetched && ::flock(state->fd.get(), LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK ? busy(state->path) : storage_error(state->path, errno);
  DestinationFile file(std::move(state));
  if (!same_file(file.identity(), identity) ||
      !still_named(at, file.state_->temporary, file.state_->fd.get()))
    return std::optional<DestinationFile>();
  file.state_->direct = make_direct(file.state_->fd.get());
  file.state_->keep = false;
  file.state_->under_way = Reserved::add_path(reserved_, file.state_->absolute());
  return std::optional<DestinationFile>(std::move(file));
}

Result<bool> Exports::is_committed(const std::string& name_path,
                                   const catalog::FileIdentity& identity) const {
  if (user_) return user_->is_committed({.peer = peer_, .spec = {.path = name_path}, .identity = identity});
  const auto named = open_named(name_path);
  if (!named) return named.error();
  const int at = named->directory.get();
  const UniqueFd there = open_beneath(at, named->name, O_PATH | O_NOFOLLOW);
  if (!there && errno == ENOENT) return false;
  const std::optional<FileState> state = there ? state_of(there.get()) : std::nullopt;
  if (!state) return storage_error(printable(name_path), errno);
  if (!same_file(state->identity, identity)) return false;
  // After a link instead of a rename both names are there.
  const std::string temporary = temporary_name(named->name);
  if (still_named(at, temporary, there.get())) ::unlinkat(at, temporary.c_str(), 0);
  if (::fsync(at) != 0) return storage_error(printable(name_path), errno);
  return true;
}

}  // namespace sluice::exports
