// SPDX-License-Identifier: Apache-2.0
#include "control/audit/audit_log.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "dataplane/base/unique_fd.h"

namespace sluice::audit {

namespace {

// One write: lines of several threads, and of several daemons, do not mix. Empty: it is written. What is put
// into a FIFO is gone once somebody has read it, and without a reader its opening would wait.
std::string why_not_written(const std::filesystem::path& file, std::string_view line) {
  const int flags = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const UniqueFd fd(::open(file.c_str(), flags, 0600));
  struct stat info {};
  if (!fd || ::fstat(fd.get(), &info) != 0) return std::strerror(errno);
  if (!S_ISREG(info.st_mode)) return "it is no file";
  const ssize_t written = ::write(fd.get(), line.data(), line.size());
  if (written < 0) return std::strerror(errno);
  return written == static_cast<ssize_t>(line.size()) ? "" : "written in part";
}

}  // namespace

void AuditLog::append(std::string_view line) const {
  const std::string problem = why_not_written(file_, line);
  if (problem.empty()) return;
  lost_.fetch_add(1, std::memory_order_relaxed);
  spdlog::error("audit log {}: {}; what is missing in it: {}", file_.string(), problem,
                line.substr(0, line.size() - 1));
}

}  // namespace sluice::audit
