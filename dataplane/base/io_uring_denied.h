// Why a process of this host may not set up io_uring, and what to do about it: several things can deny it,
// and the error number alone does not say which.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace sluice::base {

struct IoUringHost {
  std::optional<int> disabled;  // sysctl kernel.io_uring_disabled; nothing: the kernel has no such switch
  bool filtered = false;        // a seccomp filter is on this process
};
IoUringHost io_uring_host();

// `error`: errno of io_uring_setup.
std::string io_uring_remedy(int error, const IoUringHost& host);

}  // namespace sluice::base
