// SPDX-License-Identifier: Apache-2.0
#include "control/exports/part_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "control/exports/beneath.h"
#include "control/exports/refusals.h"
#include "control/exports/room.h"
#include "control/exports/temporary.h"
#include "dataplane/base/check.h"
#include "dataplane/base/progress.h"
#include "dataplane/base/write_all.h"

namespace sluice::exports {
namespace {

using What = selection::FilePart::What;

// A session that has ended lets go of its descriptors a little later than its peer hears of the end.
constexpr auto kLockWait = std::chrono::seconds(10);
constexpr auto kLockLook = std::chrono::milliseconds(50);

constexpr size_t kOffsetDigits = 16;
// What stands around the file's name in that of a record: dots, the set, the offset, the suffix.
constexpr size_t kAroundName = 3 + selection::kPartSetDigits + kOffsetDigits + kTemporarySuffix.size();

}  // namespace

PartFiles::PartFiles(int directory_fd, const std::string& name, const std::string& set, std::string path)
    : directory_fd_(directory_fd), path_(std::move(path)) {
  DCHECK(set.size() == selection::kPartSetDigits, "a set that was looked at");
  const size_t most = name_bytes_max(directory_fd);
  stem_ = "." + shortened_name(name, most - std::min(most, kAroundName)) + "." + set;
  data_name_ = stem_ + std::string(kTemporarySuffix);
  DCHECK(is_temporary_name(data_name_), "nobody takes it for a whole file");
}

std::string PartFiles::record_name(uint64_t offset) const {
  return fmt::format("{}.{:016x}{}", stem_, offset, kTemporarySuffix);
}

Error PartFiles::failed(const std::string& what, int reason) const {
  if (reason == ENOSPC || reason == EDQUOT) return full(path_, reason, directory_fd_);
  return {ErrorCode::kStorage, path_ + ": " + what + ": " + std::strerror(reason)};
}

Status PartFiles::sync_directory() const {
  return ::fsync(directory_fd_) == 0 ? Status() : Status(storage_error(path_, errno));
}

Result<UniqueFd> PartFiles::open(What what) const {
  const bool shared = what == What::kRange;
  const auto until = std::chrono::steady_clock::now() + kLockWait;
  for (;;) {
    UniqueFd fd = open_beneath(directory_fd_, data_name_,
                               O_RDWR | O_NOFOLLOW | O_NONBLOCK | (shared ? O_CREAT : 0), shared ? 0600 : 0);
    if (!fd && errno == ENOENT && !shared)
      return Error{ErrorCode::kUsage, path_ + ": no part of this set is here; send the parts first"};
    if (!fd) return refusal_of(directory_fd_, data_name_, path_, errno);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return storage_error(path_, errno);
    if (!S_ISREG(info.st_mode))
      return Error{ErrorCode::kDestinationExists,
                   path_ + ": " + printable(data_name_) + " is in the way, which is no file; remove it"};
    if (::flock(fd.get(), (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) {
      // Between the two somebody may have given it its name, or removed it.
      if (still_named(directory_fd_, data_name_, fd.get())) return fd;
    } else if (errno != EWOULDBLOCK && errno != EINTR) {
      return storage_error(path_, errno);
    }
    if (std::chrono::steady_clock::now() >= until)
      return Error{
          ErrorCode::kDestinationExists,
          path_ + (shared ? ": is being finished, or dropped, by another session; wait for its end"
                          : ": sessions still write parts of it; wait for their end, or cancel them")};
    base::note_progress();
    std::this_thread::sleep_for(kLockLook);
  }
}

std::optional<ranges::Record> PartFiles::record_at(uint64_t offset) const {
  const UniqueFd fd = open_beneath(directory_fd_, record_name(offset), O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!fd) return std::nullopt;
  std::array<char, ranges::kRecordBytesMax + 1> bytes{};
  const ssize_t got = ::pread(fd.get(), bytes.data(), bytes.size(), 0);
  if (got <= 0) return std::nullopt;
  return ranges::decode({bytes.data(), static_cast<size_t>(got)});
}

Status PartFiles::note(const ranges::Record& record) const {
  const std::string name = record_name(record.part.offset);
  const UniqueFd fd =
      open_beneath(directory_fd_, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (!fd) return failed("what is noted of its part cannot be written", errno);
  const std::string bytes = ranges::encode(record);
  if (!base::write_all(fd.get(), bytes.data(), bytes.size()) || ::fsync(fd.get()) != 0)
    return failed("what is noted of its part cannot be written", errno);
  return sync_directory();
}

Status PartFiles::forget(uint64_t offset) const {
  if (::unlinkat(directory_fd_, record_name(offset).c_str(), 0) == 0) return sync_directory();
  return errno == ENOENT ? Status() : Status(failed("what is noted of its part cannot be removed", errno));
}

Result<uint64_t> PartFiles::digest_of_all(const selection::FilePart& finish, base::FileTimeNs mtime_ns,
                                          wire::CrcKind crc_kind) const {
  ranges::Joined joined(finish, mtime_ns, crc_kind);
  while (!joined.complete()) {
    const auto record = record_at(joined.next_offset());
    if (!record)
      return Error{ErrorCode::kUsage,
                   fmt::format("{}: its bytes from {} on are not here yet: send that part, then finish it",
                               path_, joined.next_offset())};
    if (Status status = joined.take(*record); !status)
      return Error{status.error().code, path_ + ": " + status.error().message};
    base::note_progress();
  }
  return joined.digest();
}

Status PartFiles::remove(bool with_data) const {
  const auto all = names_in(directory_fd_);
  if (!all) return storage_error(path_, errno);
  const std::string begin = stem_ + ".";
  const size_t length = begin.size() + kOffsetDigits + kTemporarySuffix.size();
  std::vector<std::string> names;
  for (const std::string& name : *all) {
    if (name.size() == length && name.starts_with(begin) && name.ends_with(kTemporarySuffix))
      names.push_back(name);
  }
  // The file last: while it is there, what was noted of it can be found.
  if (with_data) names.push_back(data_name_);
  for (const std::string& name : names) {
    if (::unlinkat(directory_fd_, name.c_str(), 0) != 0 && errno != ENOENT)
      return cannot_remove(path_, errno);
  }
  return sync_directory();
}

}  // namespace sluice::exports
