// Destinations: the way of what is complete to its final name, and what may stand there already.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "control/exports/beneath.h"
#include "control/exports/destination_state.h"
#include "control/exports/owners.h"
#include "control/exports/read_back.h"
#include "control/exports/refusals.h"
#include "control/exports/temporary.h"
#include "control/exports/times.h"
#include "control/exports/xattrs.h"
#include "dataplane/base/check.h"

namespace sluice::exports {

using catalog::Failure;

Status DestinationFile::State::refuse(Failure failure, Error error) const {
  why = failure;
  return error;
}

Status DestinationFile::State::check_name(const std::string& shown) const {
  if (!valid_file_name(name))
    return Error{ErrorCode::kStorage,
                 shown + ": '" + printable(name) + "' is not a file name; name the destination in full"};
  if (is_temporary_name(name))
    return refuse(Failure::kName, {ErrorCode::kStorage, path + ": such names are kept for files under way; "
                                                               "choose another"});
  const size_t most = name_bytes_max(directory.get());
  if (name.size() > most)
    return refuse(Failure::kName, {ErrorCode::kStorage, path + ": the name is too long; use at most " +
                                                            std::to_string(most) + " bytes"});
  return {};
}

// What stands under the final name must not be there, or be a regular file that may be replaced, or, of
// several names, one that may turn out to be the same.
Status DestinationFile::State::check_final_name() const {
  const int at = directory.get();
  struct stat info {};
  if (::fstatat(at, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    const int reason = errno;
    if (reason == ENOENT) return {};
    why = why_not(at, name, reason);
    return refusal_of(at, name, path, reason);
  }
  if (!S_ISREG(info.st_mode))
    return refuse(Failure::kOtherKind,
                  {ErrorCode::kDestinationExists,
                   path + ": exists and is no regular file, which is never replaced; choose another name"});
  const bool may_be_same = spec.one_of_many && static_cast<uint64_t>(info.st_size) == spec.size;
  if (!spec.overwrite && !may_be_same) return exists();
  if (given->has_other(given->folding(at), at, absolute(), name))
    return refuse(Failure::kOtherLetters, other_letters(path));
  return {};
}

Status DestinationFile::State::exists() const {
  return refuse(Failure::kExists,
                {ErrorCode::kDestinationExists, path + ": exists; replace it with --overwrite"});
}

Status DestinationFile::State::rename_to_final() {
  const int at = directory.get();
  const Result<bool> there = in_place();
  if (!there) return there.error();
  if (!*there)
    return elsewhere(ErrorCode::kStorage, "its",
                     "its data is " + place_now() + ", as " + printable(temporary) +
                         ": put the directory back, then continue the session");
  const bool unnamed = !still_named(at, temporary, fd.get());
  if (unnamed && !has_final_name())
    return Error{ErrorCode::kStorage,
                 path + ": its temporary file was removed or replaced by somebody; this file begins anew"};
  const auto open = writable_for_now();
  const Folding folding = spec.one_of_many ? given->folding(at) : Folding();
  const auto alone = given->one_by_one(folding, directory.get());
  if (!unnamed && (spec.overwrite || spec.one_of_many))
    if (Status status = check_final_name(); !status) return status;
  if (!unnamed && !rename_between(at, temporary, at, name, spec.overwrite))
    if (Status status = not_renamed(errno); !status) return status;
  given->gave(folding, at, absolute(), name);
  return {};
}

// A try that failed may have been done all the same: a server of NFS that is restarted does not know what it
// has answered, so its client's second question finds it done (EEXIST, ENOENT), and a soft mount does not
// wait for the answer (EIO). What the client remembers of the directory is older than that.
bool DestinationFile::State::has_final_name() const {
  struct statx asked {};
  ::statx(directory.get(), "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_MTIME | STATX_CTIME, &asked);
  return still_named(directory.get(), name, fd.get());
}

// After all it may be there.
Status DestinationFile::State::not_renamed(int reason) {
  if (has_final_name()) {
    // link(2) gave the name in place of rename(2), and the temporary one is left.
    if (still_named(directory.get(), temporary, fd.get())) ::unlinkat(directory.get(), temporary.c_str(), 0);
    return {};
  }
  if (reason == EEXIST && spec.one_of_many) return take_what_is_there();
  if (reason == EEXIST)
    return refuse(Failure::kExists, {ErrorCode::kDestinationExists,
                                     path + ": appeared while it was received; replace it with --overwrite"});
  if (reason == EISDIR || reason == ENOTEMPTY)
    return refuse(Failure::kOtherKind,
                  {ErrorCode::kDestinationExists,
                   path + ": is a directory, which is never replaced; choose another name"});
  why = why_not(directory.get(), name, reason);
  if (why == Failure::kUnwritable) return storage_error(path, reason);
  if (why == Failure::kForbidden || why == Failure::kDirectoryForbidden) return no_right_to_name();
  return refusal_of(directory.get(), name, path, reason);
}

// The same bytes under the final name are as good as the file: they stay, and get what is kept of it. Whoever
// sends a tree again is not told that it exists.
Status DestinationFile::State::take_what_is_there() {
  constexpr auto kKind = wire::CrcKind::kCrc64Ecma;
  const int at = directory.get();
  UniqueFd there = open_beneath(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat info {};
  if (!there || ::fstat(there.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
      static_cast<uint64_t>(info.st_size) != spec.size)
    return exists();
  const Result<uint64_t> received = exports::read_crc(fd.get(), kKind, 0, spec.size);
  if (!received) return Error{received.error().code, path + ": " + received.error().message};
  const Result<uint64_t> stored = exports::read_crc(there.get(), kKind, 0, spec.size);
  if (!stored || *stored != *received) return exists();
  if (Status status = give_all(there.get()); !status) return status;
  if (still_named(at, temporary, fd.get())) ::unlinkat(at, temporary.c_str(), 0);
  fd = std::move(there);
  return {};
}

// Owner, attributes, mode and times, durably.
Status DestinationFile::State::give_all(int file_fd) const {
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, timespec_of(spec.mtime_ns)};
  Accounts accounts;
  if (const Refused refused = give_kept(file_fd, false, spec.attributes, spec.keep, accounts);
      refused.reason != 0)
    return concerns_disk(file_fd, refused.reason)
               ? storage_error(path, refused.reason)
               : Error{ErrorCode::kAttributes,
                       path + ": cannot be given " + refused.what + ": " + std::strerror(refused.reason) +
                           "; send it to another file system, or leave out --xattrs and --acls"};
  if (const int reason = accounts.give(file_fd, spec.attributes); reason != 0)
    return Error{ErrorCode::kStorage,
                 path + ": cannot be given its owner or group: " + std::strerror(reason) +
                     "; let sluice-control do it (CAP_CHOWN, CAP_FOWNER), or leave out --owner and --group"};
  if (::fchmod(file_fd, spec.mode & 0777) == 0 && ::futimens(file_fd, times) == 0 && ::fsync(file_fd) == 0)
    return {};
  if (errno != EPERM) return storage_error(path, errno);
  return refuse(
      Failure::kForbidden,
      {ErrorCode::kStorage, path + ": belongs to another user, who alone may set its mode and times; "
                                   "let sluice-control run as its owner"});
}

Status DestinationFile::finish() {
  State& s = *state_;
  if (s.user) return s.user->finish(s.for_user());
  // All else is of the file that several sessions write, and for the one that finishes it.
  if (selection::is_part(s.spec.part) && s.spec.part.what != selection::FilePart::What::kFinish)
    return ::fsync(s.fd.get()) == 0 ? Status() : Status(storage_error(s.path, errno));
  if (::ftruncate(s.fd.get(), static_cast<off_t>(s.spec.size)) != 0) return storage_error(s.path, errno);
  return s.give_all(s.fd.get());
}

bool DestinationFile::has_its_time() const {
  struct stat info {};
  const selection::FilePart& part = state_->spec.part;
  if (selection::is_part(part) && part.what != selection::FilePart::What::kFinish) return true;
  return ::fstat(state_->fd.get(), &info) != 0 || same_time(info.st_mtim, timespec_of(state_->spec.mtime_ns));
}

Status DestinationFile::commit() {
  State& s = *state_;
  if (s.user) return s.commit_for_user();
  if (!s.committed) {
    if (auto status = s.rename_to_final(); !status) return status;
    DCHECK(s.under_way, "its place was taken until it had its name");
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

}  // namespace sluice::exports
