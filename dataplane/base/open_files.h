// The limit of open files (RLIMIT_NOFILE): raised by each daemon when it starts, before its sandbox.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <string>

#include "dataplane/base/error.h"

namespace sluice::base {

inline uint64_t open_files_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

// As far as the system lets this user. kResources: this daemon could not do its work with what it gets.
inline Status raise_open_files(uint64_t least) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &limit);
  }
  const uint64_t now = open_files_limit();
  if (now >= least) return {};
  return Error{ErrorCode::kResources, "the limit of open files is " + std::to_string(now) +
                                          ", and it needs at least " + std::to_string(least) +
                                          ": raise it (ulimit -n 65536, or LimitNOFILE=65536 in its unit)"};
}

}  // namespace sluice::base
