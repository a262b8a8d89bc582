// SPDX-License-Identifier: Apache-2.0
#include "tools/manifest/hash_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include "control/exports/beneath.h"
#include "control/hash/digest.h"

namespace sluice::manifest {
namespace {

constexpr size_t kBlockBytes = 1U << 20;
constexpr off_t kDropBytes = 32 << 20;  // so much is dropped from the page cache at a time

int64_t ns_of(const timespec& time) { return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec; }

FileMark mark_of(const struct stat& info) {
  return {.inode = info.st_ino,
          .size_bytes = static_cast<uint64_t>(info.st_size),
          .modified_ns = ns_of(info.st_mtim),
          .changed_ns = ns_of(info.st_ctim)};
}

OpenedFile not_opened(Problem problem, std::string reason) {
  return {.fd = {}, .mark = {}, .problem = problem, .reason = std::move(reason)};
}

OpenedFile refused_by_system(int reason) {
  switch (reason) {
    case ENOENT:
    case ENOTDIR:
      return not_opened(Problem::kMissing, "no such file");
    case ELOOP:
      return not_opened(Problem::kRefused, "a symbolic link, which is not followed");
    case EXDEV:
      return not_opened(Problem::kRefused, "leads out of the directory");
    default:
      return not_opened(Problem::kUnreadable, std::strerror(reason));
  }
}

}  // namespace

std::string_view name_of(Problem problem) {
  constexpr std::string_view kNames[] = {"none", "differs", "missing", "refused", "unreadable", "extra"};
  return kNames[static_cast<size_t>(problem)];
}

OpenedFile open_file(int directory_fd, const std::string& name) {
  const std::optional<std::vector<std::string>> parts = exports::components(name);
  if (name.starts_with('/') || !parts)
    return not_opened(Problem::kRefused, "the name leads out of the directory");
  if (parts->empty()) return not_opened(Problem::kRefused, "no name of a file");
  const std::string plain = exports::join(*parts, 0, parts->size());
  // First without opening: a pipe or a device is not to be woken.
  const UniqueFd place = exports::open_beneath(directory_fd, plain, O_PATH | O_NOFOLLOW);
  struct stat info {};
  if (!place || ::fstat(place.get(), &info) != 0) return refused_by_system(errno);
  if (S_ISLNK(info.st_mode)) return refused_by_system(ELOOP);
  if (!S_ISREG(info.st_mode)) return not_opened(Problem::kRefused, "no regular file");
  OpenedFile file;
  file.fd = exports::open_beneath(directory_fd, plain, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!file.fd || ::fstat(file.fd.get(), &info) != 0) return refused_by_system(errno);
  if (!S_ISREG(info.st_mode)) return not_opened(Problem::kRefused, "no regular file");
  file.mark = mark_of(info);
  return file;
}

Hashed hash_file(const OpenedFile& file, const std::vector<Kind>& kinds, Pace& pace) {
  Hashed result;
  const auto failed = [&result](std::string reason) {
    result.problem = Problem::kUnreadable;
    result.reason = std::move(reason);
    return result;
  };
  std::vector<std::unique_ptr<digests::Digest>> all;
  for (const Kind kind : kinds) {
    auto digest = digests::begin_digest(kind);
    if (!digest) return failed(digest.error().message);
    all.push_back(std::move(*digest));
  }
  const int fd = file.fd.get();
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
  const auto block = std::make_unique_for_overwrite<char[]>(kBlockBytes);
  off_t dropped = 0;
  for (off_t at = 0;;) {
    if (pace.stop.load(std::memory_order_relaxed)) {
      result.stopped = true;
      return result;
    }
    const ssize_t got = ::pread(fd, block.get(), kBlockBytes, at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed(std::string(std::strerror(errno)) + "; check the disk and its file system");
    if (got == 0) break;
    for (const auto& digest : all) digest->add(block.get(), static_cast<size_t>(got));
    at += got;
    pace.bytes.fetch_add(static_cast<uint64_t>(got), std::memory_order_relaxed);
    if (at - dropped < kDropBytes) continue;
    ::posix_fadvise(fd, dropped, at - dropped, POSIX_FADV_DONTNEED);
    dropped = at;
  }
  ::posix_fadvise(fd, dropped, 0, POSIX_FADV_DONTNEED);
  struct stat info {};
  if (::fstat(fd, &info) != 0 || mark_of(info) != file.mark)
    return failed("it was written while it was read; check it again once nobody writes it");
  for (const auto& digest : all) result.hex.push_back(digest->hex());
  return result;
}

}  // namespace sluice::manifest
