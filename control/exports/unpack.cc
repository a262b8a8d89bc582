// SPDX-License-Identifier: Apache-2.0
#include "control/exports/unpack.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "control/exports/beneath.h"
#include "control/exports/read_back.h"
#include "control/exports/refusals.h"
#include "control/exports/temporary.h"
#include "control/exports/times.h"
#include "control/exports/xattrs.h"
#include "control/hash/several.h"
#include "dataplane/base/check.h"
#include "dataplane/base/progress.h"
#include "dataplane/base/write_all.h"
#include "dataplane/crc/crc.h"

namespace sluice::exports {
namespace {

using catalog::Entry;
using catalog::EntryKind;
using catalog::Failure;

// These concern the whole disk, not one name.
bool stops_all(int reason) {
  return reason == ENOSPC || reason == EDQUOT || reason == EIO || reason == EROFS || reason == EMFILE ||
         reason == ENFILE || reason == ENOMEM;
}

bool may_only_be_read(int fd) {
  struct statvfs info {};
  return ::fstatvfs(fd, &info) == 0 && (info.f_flag & ST_RDONLY) != 0;
}

constexpr auto kKind = wire::CrcKind::kCrc64Ecma;

catalog::Bearer bearer_of(const Entry& entry) {
  const bool linked = entry.kind == EntryKind::kSymlink || entry.kind == EntryKind::kHardLink;
  return linked                                ? catalog::Bearer::kLink
         : entry.kind == EntryKind::kDirectory ? catalog::Bearer::kDirectory
                                               : catalog::Bearer::kFile;
}

}  // namespace

Status check_wanted(const tree::Index& index, const catalog::AskedNames* asked, const catalog::Keep& keep,
                    uint64_t names_max) {
  if (index.entries.size() > names_max)
    return Error{ErrorCode::kIncompatible, "the peer sends " + std::to_string(index.entries.size()) +
                                               " names in a pack of which it offered " +
                                               std::to_string(names_max) + ": nothing of its pack is stored"};
  for (const Entry& entry : index.entries) {
    const std::string_view wrong = catalog::attributes_problem(entry.attributes, keep, bearer_of(entry));
    if (!wrong.empty())
      return Error{ErrorCode::kIncompatible, "the peer sends " + printable(entry.path) + " with " +
                                                 std::string(wrong) + ": nothing of its pack is stored"};
    if (entry.path == catalog::kTop) {
      if (keep.top) continue;
      return Error{
          ErrorCode::kIncompatible,
          "the peer sends mode and time of the destination itself, which was not agreed upon: nothing of "
          "its pack is stored"};
    }
    const bool linked = entry.kind == EntryKind::kHardLink;
    // What did not arrive is only told of, maybe by another name than its own.
    const bool wanted =
        asked == nullptr ||
        (entry.failure != Failure::kNone ? asked->include(entry.path)
                                         : asked->include(entry.path, entry.kind == EntryKind::kDirectory));
    if (wanted && (asked == nullptr || !linked || asked->include(entry.target, false))) continue;
    return Error{ErrorCode::kIncompatible, "the peer sends " + printable(entry.path) +
                                               ", which was not asked for: nothing of its pack is stored"};
  }
  return {};
}

Unpacker::Unpacker(DestinationTree tree, const std::string& staging, Options options)
    : tree_(std::move(tree)),
      options_(std::move(options)),
      staging_(tree_.fd.get(), staging),
      accounts_(options_.threads.threads_max),
      parent_(tree_) {
  DCHECK(tree_.fd && tree_.given && tree_.writable, "a tree is open");
  DCHECK(is_temporary_name(staging), "nobody takes what is staged for what has its name");
}

Status Unpacker::stage(std::span<const uint8_t> pack, const catalog::AskedNames* asked) {
  Result<tree::Index> index = tree::read_index(pack);
  if (!index) return index.error();
  index_ = std::move(*index);
  if (Status status = check_wanted(index_, asked, options_.keep, options_.names_max); !status) return status;
  missing_ = {};
  settled_.assign(index_.entries.size(), false);
  other_time_.assign(index_.entries.size(), false);
  failed_.assign(index_.entries.size(), false);
  digests_.assign(options_.digests != 0 ? index_.entries.size() : 0, {});
  const std::string shown = tree_.path + "/" + staging_.name();
  if (const int reason = make_staging(); reason != 0)
    return stops_all(reason) ? disk_error(shown, reason, tree_.fd.get())
                             : refusal_of(tree_.fd.get(), staging_.name(), printable(tree_.path), reason);
  if (Status status = stage_names(pack); !status) return status;
  if (::syncfs(staging_.fd()) != 0) return disk_error(shown, errno);
  if (options_.verify) return read_back();
  return {};
}

// Places are chosen first, in order, since the names of a directory come together.
Status Unpacker::stage_names(std::span<const uint8_t> pack) {
  const size_t count = index_.entries.size();
  std::vector<std::span<const uint8_t>> bytes;
  std::vector<Result<Failure>> staged;
  uint64_t at = index_.data_at;
  for (size_t i = 0; i < count; ++i) {
    base::note_progress();
    const Entry& entry = index_.entries[i];
    DCHECK(at <= pack.size() && entry.size_bytes <= pack.size() - at,
           "the index was read, and all bytes are there");
    bytes.push_back(pack.subspan(at, entry.size_bytes));
    at += entry.size_bytes;
    const Failure failure = entry.failure == Failure::kNone ? refusal(entry) : entry.failure;
    staged.emplace_back(failure);
    if (failure == Failure::kNone && is_made(entry)) staging_.choose(i, entry.path);
  }
  DCHECK(at <= pack.size(), "no more bytes than the pack has");
  side_by_side(count, options_.threads, [&](size_t i, size_t thread) {
    if (*staged[i] == Failure::kNone && is_made(index_.entries[i]))
      staged[i] = stage_name(i, bytes[i], accounts_[thread]);
    return static_cast<bool>(staged[i]);
  });
  for (size_t i = 0; i < count; ++i) {
    if (!staged[i]) return staged[i].error();
    if (*staged[i] != Failure::kNone) settle(i, *staged[i]);
  }
  return {};
}

// What comes may choose the mode of the directory that it comes into, as of any within: then that one is
// opened up as they are.
int Unpacker::make_staging() {
  if (options_.keep.top && !tree_.keeps_own) top_open_ = tree_.writable->if_needed(tree_.fd.get());
  return staging_.make(index_.entries.size(), *tree_.given);
}

// Why a name is not given. An error where that is the disk's.
Result<Failure> Unpacker::told(const std::string& path, int reason) const {
  // What is mounted within may be so alone.
  if (stops_all(reason) && (reason != EROFS || may_only_be_read(tree_.fd.get())))
    return disk_error(path, reason, tree_.fd.get());
  return why_not(tree_.fd.get(), path, reason);
}

// What no peer may do here, whatever rights this process has.
Unpacker::Failure Unpacker::refusal(const Entry& entry) const {
  const bool linked = entry.kind == EntryKind::kHardLink;
  if (leads_through_temporary(entry.path) || (linked && leads_through_temporary(entry.target)))
    return Failure::kName;
  if (!permitted(tree_.nested, entry.path) || (linked && !permitted(tree_.nested, entry.target)))
    return Failure::kForbidden;
  return Failure::kNone;
}

Result<Failure> Unpacker::stage_name(size_t number, std::span<const uint8_t> bytes, Accounts& accounts) {
  const bool is_link = index_.entries[number].kind == EntryKind::kSymlink;
  Result<Failure> staged = is_link ? stage_link(number, accounts) : stage_file(number, bytes, accounts);
  if (!staged || *staged != Failure::kNone) staging_.discard(number);
  return staged;
}

// Of the bytes that are stored. What a list of this node wants goes before what the source says of one.
Result<Failure> Unpacker::digest(size_t number, std::span<const uint8_t> bytes) {
  if (options_.digests == 0) return Failure::kNone;
  const Entry& entry = index_.entries[number];
  Result<digests::Values> values = digests::compute(options_.digests, bytes.data(), bytes.size());
  if (!values) return values.error();
  const digests::Values wanted =
      options_.expected ? digests::expected_of(options_.expected, entry.path) : entry.expected;
  if (!digests::difference(wanted, *values).empty()) return Failure::kNotAsListed;
  digests_[number] = std::move(*values);
  return Failure::kNone;
}

std::vector<digests::Named> Unpacker::digests() const {
  std::vector<digests::Named> named;
  for (size_t i = 0; i < digests_.size(); ++i) {
    const Entry& entry = index_.entries[i];
    const bool linked = entry.kind == EntryKind::kHardLink;
    if (failed_[i] || (!linked && entry.kind != EntryKind::kFile)) continue;
    named.push_back({.path = entry.path,
                     .size_bytes = entry.size_bytes,
                     .target = linked ? entry.target : "",
                     .values = digests_[i]});
  }
  return named;
}

Result<Failure> Unpacker::stage_link(size_t number, Accounts& accounts) {
  const Entry& entry = index_.entries[number];
  const int at = staging_.fd();
  const char* name = staging_.at(number).c_str();
  int made = ::symlinkat(entry.target.c_str(), at, name);
  if (made != 0 && errno == EEXIST) {
    name = staging_.choose_number(number).c_str();
    made = ::symlinkat(entry.target.c_str(), at, name);
  }
  if (made != 0) return told(entry.path, errno);
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, timespec_of(entry.mtime_ns)};
  if (const int reason = accounts.give(at, entry.attributes, name); reason != 0)
    return told(entry.path, reason);
  if (::utimensat(at, name, times, AT_SYMLINK_NOFOLLOW) != 0) return told(entry.path, errno);
  struct stat now {};
  other_time_[number] =
      ::fstatat(at, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && !same_time(now.st_mtim, times[1]);
  return Failure::kNone;
}

Result<Failure> Unpacker::stage_file(size_t number, std::span<const uint8_t> bytes, Accounts& accounts) {
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  const Entry& entry = index_.entries[number];
  if (crc::compute(kKind, 0, bytes.data(), bytes.size()) != entry.digest) return Failure::kDamaged;
  if (const Result<Failure> as_listed = digest(number, bytes); !as_listed || *as_listed != Failure::kNone)
    return as_listed;
  UniqueFd fd(::openat(staging_.fd(), staging_.at(number).c_str(), kFlags, 0600));
  if (!fd && errno == EEXIST)
    fd = UniqueFd(::openat(staging_.fd(), staging_.choose_number(number).c_str(), kFlags, 0600));
  if (!fd || !base::write_all(fd.get(), bytes.data(), bytes.size())) return told(entry.path, errno);
  if (Result<Failure> given = give_attributes(fd.get(), entry, accounts); !given || *given != Failure::kNone)
    return given;
  // Until it was read back it can be read.
  const mode_t mode = options_.verify ? 0600 : mode_of(entry);
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, timespec_of(entry.mtime_ns)};
  if (::fchmod(fd.get(), mode) != 0 || ::futimens(fd.get(), times) != 0) return told(entry.path, errno);
  struct stat now {};
  other_time_[number] = ::fstat(fd.get(), &now) == 0 && !same_time(now.st_mtim, times[1]);
  return Failure::kNone;
}

// An ACL that is kept says what others may; its mask is in the mode.
mode_t Unpacker::mode_of(const Entry& entry) const {
  return entry.mode & 0777U & ~(options_.keep.acls ? 0U : options_.umask);
}

// The owner last: who gives a file away may not write to it any more.
Result<Failure> Unpacker::give_attributes(int fd, const Entry& entry, Accounts& accounts) const {
  const bool is_directory = entry.kind == EntryKind::kDirectory;
  const Refused refused = give_kept(fd, is_directory, entry.attributes, options_.keep, accounts);
  if (refused.reason != 0)
    return concerns_disk(fd, refused.reason) ? Result<Failure>(disk_error(entry.path, refused.reason))
                                             : Failure::kAttributesRefused;
  const int reason = accounts.give(fd, entry.attributes);
  return reason == 0 ? Failure::kNone : told(entry.path, reason);
}

Status Unpacker::read_back() {
  std::vector<Status> read(index_.entries.size());
  side_by_side(read.size(), options_.threads, [&](size_t i, size_t /*thread*/) {
    if (!settled_[i] && index_.entries[i].kind == EntryKind::kFile) read[i] = read_back(i);
    return static_cast<bool>(read[i]);
  });
  const auto bad = std::ranges::find_if(read, [](const Status& status) { return !status; });
  return bad == read.end() ? Status() : *bad;
}

Status Unpacker::read_back(size_t number) const {
  const Entry& entry = index_.entries[number];
  const UniqueFd fd = open_beneath(staging_.fd(), staging_.at(number), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd) return disk_error(tree_.path + "/" + entry.path, errno);
  const Result<uint64_t> crc = exports::read_back_crc(fd.get(), kKind, 0, entry.size_bytes);
  if (!crc) return crc.error();
  if (*crc != entry.digest)
    return Error{ErrorCode::kIntegrity, printable(tree_.path + "/" + entry.path) +
                                            ": the disk gives back other bytes than were written: check it"};
  if (::fchmod(fd.get(), mode_of(entry)) != 0) return disk_error(tree_.path + "/" + entry.path, errno);
  return {};
}

}  // namespace sluice::exports
