// Destinations: a temporary file beside the final name, allocated in full and locked. naming.cc renames it.
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
#include "control/exports/refusals.h"
#include "control/exports/reserved.h"
#include "control/exports/room.h"
#include "control/exports/temporary.h"
#include "dataplane/base/check.h"

namespace sluice::exports {
DestinationFile::State::~State() {
  if (!fd || committed || keep || selection::is_part(spec.part)) return;
  if (user) {
    (void)user->drop(for_user());
    return;
  }
  // Before the descriptor closes, and the lock with it.
  const auto open = writable_for_now();
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

DestinationFile::DestinationFile(std::unique_ptr<State> state) : state_(std::move(state)) {
  DCHECK(state_ && state_->fd && state_->directory, "an unfinished file is open, and so is its directory");
  DCHECK(valid_file_name(state_->name), "it will have one name, in this directory");
  DCHECK(is_temporary_name(state_->temporary),
         "what is not complete has a name that nobody takes for one that is");
}
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
catalog::Failure DestinationFile::why() const { return state_->why; }

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

Status DestinationFile::State::remove() const {
  if (Status status = unlink(); !status) return status;
  return ::fsync(directory.get()) == 0 ? Status() : Status(storage_error(path, errno));
}

Status DestinationFile::drop() {
  return state_->user ? state_->user->drop(state_->for_user()) : state_->remove();
}

namespace {

// Where the file goes: which directory beneath the root, and the name in it.
struct Target {
  std::string directory = ".";
  std::string directory_path;  // absolute; empty for "/"
  std::string name;
};

Error missing_directory(const std::string& path) {
  return {ErrorCode::kStorage, "directory " + path + " does not exist; make it first, or use --mkdir"};
}

// `relative` and `absolute` are the normalised destination.
Result<Target> target_of(int root_fd, const std::string& relative, const std::string& absolute,
                         const DestinationSpec& spec) {
  const UniqueFd probe = open_beneath(root_fd, relative, O_PATH | O_NOFOLLOW);
  struct stat info {};
  const bool there = probe && ::fstat(probe.get(), &info) == 0;
  // A name that is too long is told as what it is to be.
  if (!there && errno != ENOENT && errno != ENAMETOOLONG)
    return lookup_error(absolute, errno, ErrorCode::kStorage);
  if (there && S_ISDIR(info.st_mode)) return Target{relative, absolute == "/" ? "" : absolute, spec.name};
  if (spec.is_directory || spec.path.ends_with('/')) {
    if (!there) return missing_directory(absolute);
    return Error{ErrorCode::kStorage, absolute + ": is not a directory; name a directory, or a single file"};
  }
  const size_t slash = relative.rfind('/');
  Target target;
  if (slash != std::string::npos) target.directory = relative.substr(0, slash);
  target.directory_path = absolute.substr(0, absolute.rfind('/'));
  target.name = slash == std::string::npos ? relative : relative.substr(slash + 1);
  return target;
}

// 0 when the file cannot be that big.
uint64_t aligned_bytes(const DestinationSpec& spec) {
  const uint64_t alignment = spec.alignment == 0 ? 1 : spec.alignment;
  DCHECK((alignment & (alignment - 1)) == 0, "a power of two");
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

// With its directory open; nothing is made yet.
Result<std::unique_ptr<DestinationFile::State>> Exports::state_for(const DestinationSpec& spec,
                                                                   catalog::Failure* why) const {
  const auto location = locate_writable(spec.path);
  if (!location) return location.error();
  if (Status status = check_keep(*location, spec.keep); !status) return status.error();
  const int root_fd = location->root->fd->get();
  const auto target = target_of(root_fd, location->relative, location->absolute, spec);
  if (!target) return target.error();

  auto state = std::make_unique<DestinationFile::State>();
  state->spec = spec;
  state->name = target->name;
  state->root_path = location->root->config.path;
  state->relative = target->directory;
  state->path = target->directory_path + "/" + printable(target->name);
  state->name_path = state->absolute();
  state->given = given_;
  if (spec.beneath_tree) state->writable = writable_;
  const Status opened = state->open_directory(root_fd, target->directory_path);
  if (!opened && why != nullptr) *why = state->why;
  if (!opened) return opened.error();
  return state;
}

Result<DestinationFile> Exports::create_destination(const DestinationSpec& spec,
                                                    catalog::Failure* why) const {
  if (user_) {
    const auto location = locate_writable(spec.path);
    if (!location) return location.error();
    if (Status status = check_keep(*location, spec.keep); !status) return status.error();
    return create_for_user(*location, spec, why);
  }
  auto found = state_for(spec, why);
  if (!found) return found.error();
  std::unique_ptr<DestinationFile::State> state = std::move(*found);
  const Status made = selection::is_part(spec.part) ? state->create_part() : create_in(*state);
  if (!made && why != nullptr) *why = state->why;
  if (!made) return made.error();
  state->direct = make_direct_at(state->absolute(), state->fd.get());
  state->under_way = Reserved::add_path(reserved_, state->absolute());
  DestinationFile file(std::move(state));
  // They count as durable from now on.
  if (Status status = spec.holes.empty() ? Status() : file.sync(); !status) return status.error();
  return file;
}

Status DestinationFile::State::open_directory(int root_fd, const std::string& shown) {
  directory = open_beneath(root_fd, relative, O_RDONLY | O_DIRECTORY);
  if (!directory && errno == EACCES && writable) {
    const UniqueFd closed = open_beneath(root_fd, relative, O_PATH | O_DIRECTORY);
    const auto open = closed ? writable->open_up(closed.get()) : nullptr;
    if (open) directory = open_beneath(root_fd, relative, O_RDONLY | O_DIRECTORY);
    if (!open) errno = EACCES;
  }
  if (directory) return {};
  const int reason = errno;
  if (reason == ENOENT) return missing_directory(shown);
  why = why_not(root_fd, relative, reason);
  return refusal_of(root_fd, relative, shown, reason);
}

// The unfinished file of a name in an open directory.
Status Exports::create_in(DestinationFile::State& state) const {
  const int at = state.directory.get();
  const std::string directory_path = state.path.substr(0, state.path.rfind('/'));
  if (Status status = state.check_name(directory_path); !status) return status;
  state.temporary = temporary_name_in(at, state.name);
  const std::string temporary_path = directory_path + "/" + printable(state.temporary);
  const auto open = state.writable_for_now();
  if (Status status = state.check_final_name(); !status) {
    // Of this file, maybe, made just before a crash, when the name was free: nobody else looks for it. Nor is
    // anything of this file synced later, so that the power could bring it back.
    if (::faccessat(at, state.temporary.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
      (void)remove_leftover(at, state.temporary, temporary_path, *reserved_);
      ::fsync(at);
    }
    return status;
  }
  const DestinationSpec& spec = state.spec;
  const uint64_t needed_bytes = aligned_bytes(spec);
  if (needed_bytes == 0 && spec.size != 0) return no_space(state.path, spec.size, free_bytes_of(at));
  auto fd = create_temporary(at, state.temporary, temporary_path, *reserved_, &state.why);
  if (!fd) return fd.error();
  state.fd = std::move(*fd);  // from here the destructor removes it
  const Status room = take_room(state.fd.get(), spec.size, needed_bytes, spec.holes, state.path);
  if (!room) (void)state.remove();  // the destructor tries again
  return room;
}

Reservation Exports::reserve(const catalog::FileIdentity& unfinished, const std::string& name_path) const {
  using Both = std::pair<Reservation, Reservation>;
  DCHECK(reserved_, "exports were opened");
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
  if (!named.directory && errno != ENOENT)
    return lookup_error(location->absolute, errno, ErrorCode::kStorage);
  return named;
}

Result<std::optional<DestinationFile>> Exports::reopen_destination(const DestinationSpec& spec,
                                                                   const catalog::FileIdentity& identity,
                                                                   UniqueFd fd) const {
  if (user_) return reopen_for_user(spec, identity, std::move(fd));
  auto named = open_named(spec.path);
  if (!named) return named.error();
  if (!named->directory) return std::optional<DestinationFile>();
  auto state = std::make_unique<DestinationFile::State>();
  state->keep = true;  // whatever goes wrong here: it is not ours to remove
  state->spec = spec;
  state->name = named->name;
  state->name_path = spec.path;
  state->path = printable(spec.path);
  state->given = given_;
  if (spec.beneath_tree) state->writable = writable_;
  state->root_path = std::move(named->root_path);
  state->relative = std::move(named->relative);
  state->directory = std::move(named->directory);
  const int at = state->directory.get();
  const bool part = selection::is_part(spec.part);
  state->temporary = part ? state->part_files().data_name() : temporary_name_in(at, state->name);
  const bool fetched = static_cast<bool>(fd);
  state->fd = fetched ? std::move(fd) : open_beneath(at, state->temporary, O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  if (!state->fd && errno == ENOENT) return std::optional<DestinationFile>();
  if (!state->fd) return lookup_error(state->path, errno, ErrorCode::kStorage);
  const int lock = selection::is_range(spec.part) ? LOCK_SH : LOCK_EX;
  if (!fetched && ::flock(state->fd.get(), lock | LOCK_NB) != 0)
    return errno == EWOULDBLOCK ? busy(state->path) : storage_error(state->path, errno);
  DestinationFile file(std::move(state));
  if (!same_file(file.identity(), identity) ||
      !still_named(at, file.state_->temporary, file.state_->fd.get()))
    return std::optional<DestinationFile>();
  file.state_->direct = make_direct_at(spec.path, file.state_->fd.get());
  file.state_->keep = false;
  file.state_->under_way = Reserved::add_path(reserved_, file.state_->absolute());
  return std::optional<DestinationFile>(std::move(file));
}

Result<bool> Exports::is_committed(const std::string& name_path,
                                   const catalog::FileIdentity& identity) const {
  if (user_) return user_->is_committed({.peer = peer_, .spec = {.path = name_path}, .identity = identity});
  const auto named = open_named(name_path);
  if (!named) return named.error();
  if (!named->directory) return false;
  const int at = named->directory.get();
  const UniqueFd there = open_beneath(at, named->name, O_PATH | O_NOFOLLOW);
  if (!there && errno == ENOENT) return false;
  const std::optional<FileState> state = there ? state_of(there.get()) : std::nullopt;
  if (!state) return storage_error(printable(name_path), errno);
  if (!same_file(state->identity, identity)) return false;
  // After a link instead of a rename both names are there.
  const std::string temporary = temporary_name_in(at, named->name);
  if (still_named(at, temporary, there.get())) ::unlinkat(at, temporary.c_str(), 0);
  if (::fsync(at) != 0) return storage_error(printable(name_path), errno);
  return true;
}

}  // namespace sluice::exports
