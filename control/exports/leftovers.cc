// Unfinished files that do not become whole: those that are away, may not get their names, or are given up.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "control/exports/beneath.h"
#include "control/exports/destination_state.h"
#include "control/exports/exports.h"
#include "control/exports/file_state.h"
#include "control/exports/temporary.h"
#include "dataplane/base/check.h"

namespace sluice::exports {

bool DestinationFile::away() const {
  const State& s = *state_;
  if (s.user || s.committed) return false;
  const Result<bool> there = s.in_place();
  return (there && !*there) || !still_named(s.directory.get(), s.temporary, s.fd.get());
}

// A right that is missing does not come by itself, and no disk is broken.
Error DestinationFile::State::no_right_to_name() const {
  struct stat there {};
  struct stat its_directory {};
  const bool taken = ::fstatat(directory.get(), name.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0;
  const bool sticky = ::fstat(directory.get(), &its_directory) == 0 && (its_directory.st_mode & S_ISVTX) != 0;
  if (taken && sticky)
    return {ErrorCode::kOutsideExports,
            path +
                ": is another user's, and in a directory with the sticky bit only its owner may replace it; "
                "choose another name, or have its owner remove it"};
  return {ErrorCode::kOutsideExports,
          path +
              ": permission denied to give the file its name; give the user of sluice-control, or who asks "
              "for it as himself, the right to the directory" +
              (taken ? " and to the file that is there" : "")};
}

// What several sessions write is removed by a session that drops it (part_destination.cc).
Status DestinationFile::State::unlink() const {
  if (selection::is_part(spec.part)) return {};
  const auto open = writable_for_now();
  if (still_named(directory.get(), temporary, fd.get()) &&
      ::unlinkat(directory.get(), temporary.c_str(), 0) != 0 && errno != ENOENT)
    return cannot_remove(path, errno);
  return {};
}

Status DestinationFile::give_up() {
  DCHECK(!state_->committed, "what has its name is not given up");
  state_->keep = true;
  return state_->user ? state_->user->drop(state_->for_user()) : state_->unlink();
}

// ---- of sessions that have ended -----------------------------------------------------------------

// They are this node's own, so they go also where nothing may be written any more.
Result<UniqueFd> Exports::open_to_remove(std::string_view directory) const {
  const auto location = locate(directory);
  if (!location) return location.error();
  if (Status status = check_in_place(*location->root); !status) return status.error();
  UniqueFd fd = open_beneath(location->root->fd->get(), location->relative, O_RDONLY | O_DIRECTORY);
  if (!fd && errno != ENOENT) return lookup_error(location->absolute, errno, ErrorCode::kStorage);
  return fd;
}

std::shared_ptr<const void> Exports::open_up_for_now(int directory_fd) const {
  return writable_->if_needed(directory_fd);
}

Result<UniqueFd> Exports::remove_unfinished(const std::string& name_path,
                                            const catalog::FileIdentity& identity) const {
  Result<UniqueFd> directory = open_to_remove(name_path.substr(0, name_path.rfind('/') + 1));
  if (!directory || !*directory) return directory;
  const int at = directory->get();
  const std::string temporary = temporary_name_in(at, last_component(name_path));
  const UniqueFd fd = open_beneath(at, temporary, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd && errno == ENOENT) return directory;
  if (!fd) return lookup_error(printable(name_path), errno, ErrorCode::kStorage);
  const std::optional<FileState> state = state_of(fd.get());
  if (state && !same_file(state->identity, identity)) return directory;  // of somebody else
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return busy(printable(name_path));
  const auto open = open_up_for_now(at);
  if (still_named(at, temporary, fd.get()) && ::unlinkat(at, temporary.c_str(), 0) != 0 && errno != ENOENT)
    return cannot_remove(printable(name_path), errno);
  return directory;
}

Error cannot_remove(const std::string& path, int reason) {
  return {ErrorCode::kStorage, path + ": its unfinished file cannot be removed: " + std::strerror(reason)};
}

}  // namespace sluice::exports
