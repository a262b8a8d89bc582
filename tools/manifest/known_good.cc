// SPDX-License-Identifier: Apache-2.0
#include "tools/manifest/known_good.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "dataplane/base/text.h"
#include "dataplane/base/write_all.h"

namespace sluice::manifest {
namespace {

// A directory's name may have a line's end.
std::string head_line(const std::string& list_sha256, const std::string& directory) {
  std::string plain = directory;
  for (char& c : plain) c = c == '\n' ? '?' : c;
  return "sluice verify 1 " + list_sha256 + " " + plain;
}

bool read_mark(const std::string& line, uint64_t* number, FileMark* mark) {
  int used = 0;
  const int found =
      std::sscanf(line.c_str(), "%" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNd64 " %" SCNd64 "%n", number,
                  &mark->inode, &mark->size_bytes, &mark->modified_ns, &mark->changed_ns, &used);
  return found == 5 && static_cast<size_t>(used) == line.size();
}

}  // namespace

Result<KnownGood> KnownGood::open(const std::filesystem::path& file, const std::string& list_sha256,
                                  const std::string& directory) {
  KnownGood known(file,
                  UniqueFd(::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600)));
  if (!known.fd_) return known.cannot("cannot be opened");
  struct stat info {};
  if (::fstat(known.fd_.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return Error{ErrorCode::kUsage, base::printable(file.string()) + ": no regular file; name another"};
  if (::flock(known.fd_.get(), LOCK_EX | LOCK_NB) != 0)
    return Error{ErrorCode::kDestinationExists, base::printable(file.string()) +
                                                    ": another check uses it now; wait for its end, or name "
                                                    "another file"};
  if (const Status status = known.read(head_line(list_sha256, directory)); !status) return status.error();
  return known;
}

Status KnownGood::read(const std::string& head) {
  std::string rest;
  std::array<char, 65536> block{};
  bool first = true;
  off_t whole_lines = 0;
  for (ssize_t got = 0; (got = ::read(fd_.get(), block.data(), block.size())) != 0;) {
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot("cannot be read");
    rest.append(block.data(), static_cast<size_t>(got));
    size_t at = 0;
    for (size_t end = rest.find('\n'); end != std::string::npos; end = rest.find('\n', at)) {
      const std::string line = rest.substr(at, end - at);
      uint64_t number = 0;
      FileMark mark;
      if (first && line != head) break;
      if (!first && read_mark(line, &number, &mark)) marks_[number] = mark;
      first = false;
      at = end + 1;
    }
    whole_lines += static_cast<off_t>(at);
    rest.erase(0, at);
    if (first) break;
  }
  if (!first) {
    if (!rest.empty() && ::ftruncate(fd_.get(), whole_lines) != 0) return cannot("cannot be written");
    return {};
  }
  // Empty, or the beginning of its first line: nothing is lost.
  if (!head.starts_with(rest))
    return Error{ErrorCode::kUsage,
                 base::printable(file_.string()) +
                     ": not of this list and directory (the list changed?), or no file of a "
                     "check; remove it, or name another"};
  const std::string line = head + "\n";
  if (::ftruncate(fd_.get(), 0) != 0 || !base::write_all(fd_.get(), line.data(), line.size()))
    return cannot("cannot be written");
  return {};
}

bool KnownGood::has(uint64_t line, const FileMark& mark) const {
  const auto found = marks_.find(line);
  return found != marks_.end() && found->second == mark;
}

Status KnownGood::add(uint64_t line, const FileMark& mark) {
  const std::string text =
      fmt::format("{} {} {} {} {}\n", line, mark.inode, mark.size_bytes, mark.modified_ns, mark.changed_ns);
  if (!base::write_all(fd_.get(), text.data(), text.size())) return cannot("cannot be written");
  return {};
}

void KnownGood::remove() { ::unlink(file_.c_str()); }

Error KnownGood::cannot(const char* what) const {
  return {errno == ENOSPC || errno == EDQUOT ? ErrorCode::kNoSpace : ErrorCode::kStorage,
          fmt::format("{}: {}: {}; name another file", base::printable(file_.string()), what,
                      std::strerror(errno))};
}

}  // namespace sluice::manifest
