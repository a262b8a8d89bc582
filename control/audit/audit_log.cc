// SPDX-License-Identifier: Apache-2.0
#include "control/audit/audit_log.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "dataplane/base/unique_fd.h"

namespace sluice::audit {

// One write: lines of several threads, and of several daemons, do not mix.
void AuditLog::append(std::string_view line) const {
  const UniqueFd fd(::open(file_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  const ssize_t written = fd ? ::write(fd.get(), line.data(), line.size()) : -1;
  if (written == static_cast<ssize_t>(line.size())) return;
  spdlog::error("audit log {}: {}; what is missing in it: {}", file_.string(),
                written < 0 ? std::strerror(errno) : "written in part", line.substr(0, line.size() - 1));
}

}  // namespace sluice::audit
