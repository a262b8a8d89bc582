// The exports as a user of this host has them: rights of the exports are judged here, those of the user by
// the system, where he opens.
// SPDX-License-Identifier: Apache-2.0
#include "control/exports/as_user.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "control/exports/beneath.h"
#include "control/exports/destination_state.h"
#include "control/exports/file_state.h"
#include "control/exports/reserved.h"
#include "control/exports/temporary.h"
#include "dataplane/base/check.h"

namespace sluice::exports {
namespace {

Error wrong_answer(const std::string& path) {
  return {ErrorCode::kInternal,
          path + ": sluice-users handed over something else than was asked for; see its log"};
}

// What the user's own process hands over is not believed: it may be anything that he could open.
Status check_open(int fd, int access, bool directory, const std::string& path) {
  struct stat info {};
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags >= 0 && (flags & O_PATH) == 0 && (flags & O_ACCMODE) == access && ::fstat(fd, &info) == 0 &&
      (directory ? S_ISDIR(info.st_mode) : S_ISREG(info.st_mode)))
    return {};
  return wrong_answer(path);
}

}  // namespace

Exports Exports::for_user(std::shared_ptr<UserFiles> user) const {
  DCHECK(user, "somebody opens files as the user");
  Exports result = *this;
  result.user_ = std::move(user);
  for (Root& root : result.roots_) root.config.manage = false;
  return result;
}

std::string Exports::user_key() const {
  DCHECK(user_, "these are a user's");
  return user_->key();
}

UserTrees* Exports::trees_of_user() const { return user_ ? user_->trees() : nullptr; }

Error Exports::not_as_user(std::string_view path, const char* what) {
  return {
      ErrorCode::kUsage,
      printable(path) + ": " + what +
          "; outside the exports files are sent and fetched one by one: name the files, or make an export of "
          "it"};
}

Error Exports::part_not_as_user(std::string_view path) {
  return {ErrorCode::kUsage,
          printable(path) +
              ": a part of a file (--part) is not received as a user of this host; send the whole file, or "
              "have an operator of this node do it"};
}

Result<SourceFile> Exports::open_for_user(const Location& location, bool unfinished,
                                          catalog::Failure* why) const {
  Result<UniqueFd> fd = user_->open_source(peer_, location.path(), unfinished);
  if (!fd) return fd.error();
  if (Status status = check_open(fd->get(), O_RDONLY, false, location.absolute); !status)
    return status.error();
  return as_source(location, std::move(*fd), why);
}

Result<DestinationFile> Exports::create_for_user(const Location& location, const DestinationSpec& spec,
                                                 catalog::Failure* why) const {
  if (selection::is_part(spec.part)) return part_not_as_user(spec.path);
  if (trees_of_user() == nullptr &&
      (spec.keep.owner || spec.keep.group || spec.keep.xattrs || spec.keep.acls))
    return not_as_user(spec.path, "it is to keep its owner, attributes or ACL");
  const std::string in_it = (location.path() == "/" ? "" : location.path()) + "/" + spec.name;
  // What a paused session has let go of is not locked, and nobody but this process knows of it.
  for (const std::string& place : {location.path(), in_it}) {
    if (reserved_->has_path(place)) return busy(printable(place));
  }
  UserFile wanted{.peer = peer_, .spec = spec, .identity = {}};
  wanted.spec.path = location.path() + (spec.path.ends_with('/') ? "/" : "");
  Result<UserFiles::Opened> made = user_->create(wanted, why);
  if (!made) return made.error();
  if (made->name_path != location.path() && made->name_path != in_it) return wrong_answer(location.absolute);
  DestinationSpec there = spec;
  there.path = made->name_path;
  return take_for_user(there, std::move(made->fd), std::move(made->directory));
}

Result<std::optional<DestinationFile>> Exports::reopen_for_user(const DestinationSpec& spec,
                                                                const catalog::FileIdentity& identity,
                                                                UniqueFd fd) const {
  if (const auto location = locate_writable(spec.path); !location) return location.error();
  Result<std::optional<UserFiles::Opened>> found =
      user_->reopen({.peer = peer_, .spec = spec, .identity = identity, .fd = fd.get()});
  if (!found) return found.error();
  if (!found->has_value()) return std::optional<DestinationFile>();
  if (fd) (*found)->fd = std::move(fd);
  Result<DestinationFile> file = take_for_user(spec, std::move((*found)->fd), std::move((*found)->directory));
  if (!file) return file.error();
  if (!catalog::same_file(file->identity(), identity)) {
    file->keep();  // it is not ours to remove
    return std::optional<DestinationFile>();
  }
  return std::optional<DestinationFile>(std::move(*file));
}

// `spec.path`: its name_path.
Result<DestinationFile> Exports::take_for_user(const DestinationSpec& spec, UniqueFd fd,
                                               UniqueFd directory) const {
  const std::string shown = printable(spec.path);
  if (Status status = check_open(fd.get(), O_RDWR, false, shown); !status) return status.error();
  if (Status status = check_open(directory.get(), O_RDONLY, true, shown); !status) return status.error();
  auto state = std::make_unique<DestinationFile::State>();
  state->user = user_;
  state->peer = peer_;
  state->spec = spec;
  state->name = last_component(spec.path);
  state->temporary = temporary_name_in(directory.get(), state->name);
  state->path = shown;
  state->name_path = spec.path;
  state->fd = std::move(fd);
  state->directory = std::move(directory);
  state->direct = make_direct_at(spec.path, state->fd.get());
  state->under_way = Reserved::add_path(reserved_, spec.path);
  return DestinationFile(std::move(state));
}

UserFile DestinationFile::State::for_user() const {
  UserFile file{.peer = peer, .spec = spec, .identity = {}, .fd = fd.get()};
  file.spec.path = name_path;
  file.spec.is_directory = false;
  file.spec.holes.clear();  // they are made
  if (const std::optional<FileState> now = state_of(fd.get())) file.identity = now->identity;
  return file;
}

Status DestinationFile::State::commit_for_user() {
  DCHECK(user, "it is a user's file");
  UserFiles::Committed done = user->commit(for_user());
  if (!committed && done.named) {
    committed = true;
    under_way.reset();
  }
  return std::move(done.status);
}

}  // namespace sluice::exports
