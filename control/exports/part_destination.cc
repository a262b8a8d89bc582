// Destinations that are parts: ranges of one unfinished file that other sessions write as well, of this
// node or of others; and the session that gives that file its name, or removes it.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>

#include "control/exports/beneath.h"
#include "control/exports/destination_state.h"
#include "control/exports/exports.h"
#include "control/exports/file_state.h"
#include "control/exports/read_back.h"
#include "control/exports/refusals.h"
#include "control/exports/room.h"
#include "control/exports/temporary.h"
#include "dataplane/base/check.h"

namespace sluice::exports {

using What = selection::FilePart::What;

namespace {

Error is_not_what_arrived(const std::string& path, const std::string& what) {
  return {ErrorCode::kIntegrity,
          path + ": the unfinished file " + what +
              ": somebody has changed it, or the disk has; drop the set, and send its parts again"};
}

// Each part was as long as it had to be when it was noted.
Status check_length(int fd, const selection::FilePart& finish, const std::string& path) {
  const std::optional<FileState> now = state_of(fd);
  if (!now) return storage_error(path, errno);
  if (now->size_bytes >= finish.whole_bytes) return {};
  return is_not_what_arrived(path,
                             fmt::format("has {} bytes, and had {}", now->size_bytes, finish.whole_bytes));
}

}  // namespace

// Opens the unfinished file of its set. Of a range, what was noted of it counts no more from here on.
Status DestinationFile::State::create_part() {
  const std::string shown = path.substr(0, path.rfind('/'));
  if (Status status = check_name(shown); !status) return status;
  if (spec.part.what != What::kDrop) {
    if (Status status = check_final_name(); !status) return status;
  }
  const PartFiles files = part_files();
  temporary = files.data_name();
  const auto open = writable_for_now();
  Result<UniqueFd> opened = files.open(spec.part.what);
  if (!opened && spec.part.what == What::kDrop && opened.error().code == ErrorCode::kUsage)
    opened = files.open(What::kRange);  // to be removed next, with what may be noted of it
  if (!opened) return opened.error();
  fd = std::move(*opened);
  if (spec.part.what == What::kFinish) {
    const Result<uint64_t> digest = files.digest_of_all(spec.part, spec.mtime_ns, spec.crc_kind);
    return digest ? check_length(fd.get(), spec.part, path) : Status(digest.error());
  }
  if (spec.part.what != What::kRange) return {};
  if (Status status = files.forget(spec.part.offset); !status) return status;
  return take_range(fd.get(), spec.part.offset, spec.part.length, path);
}

Result<std::optional<PartFound>> Exports::find_part(const DestinationSpec& spec) const {
  if (user_) return part_not_as_user(spec.path);
  auto found = state_for(spec, nullptr);
  if (!found) return found.error();
  DestinationFile::State& state = **found;
  if (!valid_file_name(state.name)) return std::optional<PartFound>();
  const PartFiles files = state.part_files();
  const auto record = files.record_at(spec.part.offset);
  if (!record || !ranges::tells_of(*record, spec.part, spec.mtime_ns, spec.crc_kind))
    return std::optional<PartFound>();
  const UniqueFd data =
      open_beneath(state.directory.get(), files.data_name(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  const std::optional<FileState> now = data ? state_of(data.get()) : std::nullopt;
  if (!now || !S_ISREG(now->mode)) return std::optional<PartFound>();
  // The directory, too: the record and the file are found again after a loss of power.
  if (::fsync(state.directory.get()) != 0) return storage_error(state.path, errno);
  return std::optional(PartFound{
      .shown = state.path, .path = state.name_path, .identity = now->identity, .digest = record->digest});
}

Result<std::optional<uint64_t>> DestinationFile::commit_part(uint64_t digest) {
  State& s = *state_;
  const PartFiles files = s.part_files();
  const auto open = s.writable_for_now();
  const Result<bool> there = s.in_place();
  if (!there) return there.error();
  if (!*there)
    return s.elsewhere(
        ErrorCode::kStorage, "its",
        "its parts are " + s.place_now() + ": put the directory back, then continue the session");
  if (s.spec.part.what == What::kFinish) {
    if (!s.committed) {
      const Result<uint64_t> all = files.digest_of_all(s.spec.part, s.spec.mtime_ns, s.spec.crc_kind);
      if (!all) return all.error();
      digest = *all;
      if (s.spec.verify) {
        const Result<uint64_t> there_now =
            read_back_crc(s.fd.get(), s.spec.crc_kind, 0, s.spec.part.whole_bytes);
        if (!there_now) return there_now.error();
        if (*there_now != digest)
          return is_not_what_arrived(s.path, "has other bytes than those that arrived");
      }
    }
    if (Status status = commit(); !status) return status.error();
    if (Status status = files.remove(false); !status) return status.error();
    return std::optional<uint64_t>(digest);
  }
  if (!s.committed && !still_named(s.directory.get(), s.temporary, s.fd.get()))
    return Error{ErrorCode::kStorage,
                 s.path + ": its unfinished file was removed or replaced by somebody; its parts begin anew"};
  Status done;
  if (s.spec.part.what == What::kDrop) {
    done = files.remove(true);
  } else {
    done = files.note(
        {.part = s.spec.part, .mtime_ns = s.spec.mtime_ns, .crc_kind = s.spec.crc_kind, .digest = digest});
  }
  if (!done) return done.error();
  s.committed = true;
  s.under_way.reset();
  return std::optional<uint64_t>();
}

Result<bool> Exports::is_part_committed(const DestinationSpec& spec,
                                        const catalog::FileIdentity& identity) const {
  const auto named = open_named(spec.path);
  if (!named) return named.error();
  if (!named->directory) return false;
  const PartFiles files(named->directory.get(), named->name, spec.part.set, printable(spec.path));
  if (spec.part.what == What::kFinish) {
    const Result<bool> has_name = is_committed(spec.path, identity);
    if (!has_name || !*has_name) return has_name;
  }
  const UniqueFd data =
      open_beneath(named->directory.get(), files.data_name(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (spec.part.what == What::kDrop) return !data && errno == ENOENT;
  const std::optional<FileState> now = data ? state_of(data.get()) : std::nullopt;
  const bool same = now && same_file(now->identity, identity);
  if (spec.part.what == What::kFinish) {
    // After a link instead of a rename both names are there.
    if (Status status = files.remove(same); !status) return status.error();
    return true;
  }
  if (!same) return false;
  const auto record = files.record_at(spec.part.offset);
  return record && ranges::tells_of(*record, spec.part, spec.mtime_ns, spec.crc_kind);
}

}  // namespace sluice::exports
