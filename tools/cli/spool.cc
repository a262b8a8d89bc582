// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "dataplane/base/unique_fd.h"
#include "dataplane/base/write_all.h"
#include "tools/cli/canceller.h"
#include "tools/cli/format.h"
#include "tools/cli/target.h"

namespace sluice::cli {
namespace {

constexpr size_t kPartBytes = 1U << 20;
constexpr int kLookMs = 200;  // whether somebody interrupted

Error cannot(const std::filesystem::path& path, const char* what) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  return {full ? ErrorCode::kNoSpace : ErrorCode::kStorage,
          fmt::format("-: cannot {} {}: {}; set TMPDIR to a directory with room for all that comes", what,
                      printable(path.string()), std::strerror(errno))};
}

}  // namespace

Spool::Spool(Spool&& other) noexcept : file_(std::exchange(other.file_, {})) {}

Spool::~Spool() {
  if (file_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(file_.parent_path(), ignored);
}

Result<Spool> Spool::take(const Environment& environment, const std::string& destination,
                          const Canceller& canceller) {
  const Result<Target> target = parse_target(destination);
  if (!target) return target.error();
  const std::string name = target->path.substr(target->path.rfind('/') + 1);
  if (name.empty() || name == target->path || name == "." || name == "..")
    return usage(fmt::format("-: standard input has no name; give one, as in {}:EXPORT/NAME", target->node));
  const char* const wished = std::getenv("TMPDIR");
  std::string directory =
      (environment.working_directory / (wished != nullptr && *wished != '\0' ? wished : "/var/tmp") /
       "sluice-stdin-XXXXXX")
          .string();
  if (::mkdtemp(directory.data()) == nullptr) return cannot(directory, "make");
  Spool spool;
  spool.file_ = std::filesystem::path(directory) / name;
  const UniqueFd file(::open(spool.file_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return cannot(spool.file_, "make");
  std::vector<char> part(kPartBytes);
  while (true) {
    pollfd in{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (canceller.interrupted()) return Error{ErrorCode::kCancelled, "-: interrupted; nothing was sent"};
    if (::poll(&in, 1, kLookMs) == 0) continue;
    const ssize_t got = ::read(STDIN_FILENO, part.data(), part.size());
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (got < 0)
      return Error{ErrorCode::kSourceUnreadable, std::string("-: cannot read: ") + std::strerror(errno)};
    if (got == 0) return spool;
    if (!base::write_all(file.get(), part.data(), static_cast<size_t>(got)))
      return cannot(spool.file_, "write");
  }
}

}  // namespace sluice::cli
