// Cold. See io_uring_denied.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/io_uring_denied.h"

#include <cerrno>
#include <fstream>

namespace sluice::base {

IoUringHost io_uring_host() {
  IoUringHost host;
  int value = 0;
  if (std::ifstream("/proc/sys/kernel/io_uring_disabled") >> value) host.disabled = value;
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "Seccomp:") continue;
    host.filtered = status >> value && value == 2;
    break;
  }
  return host;
}

std::string io_uring_remedy(int error, const IoUringHost& host) {
  switch (error) {
    case ENOMEM:
      return "raise the locked-memory limit (LimitMEMLOCK, ulimit -l) or free memory";
    case EMFILE:
    case ENFILE:
      return "raise the limit of open files (LimitNOFILE, ulimit -n)";
    case EACCES:
      return "a security module (SELinux, AppArmor) denies it: look into the audit log, and allow io_uring";
    case EPERM:
    case ENOSYS:
      break;
    default:
      return "look into the kernel's log (dmesg)";
  }
  // The switch answers before any filter is asked about what io_uring does, but a filter before the switch:
  // only if the switch is open it is the filter for certain.
  const bool switched_off = error == EPERM && host.disabled.value_or(0) != 0;
  std::string filter =
      "a seccomp filter (of the container's engine or of the service) denies it: allow io_uring_setup, "
      "io_uring_enter and io_uring_register there (docker and podman: --security-opt seccomp=PROFILE; "
      "systemd: "
      "SystemCallFilter=)";
  if (!switched_off) {
    if (host.filtered) return filter;
    return error == ENOSYS ? "this kernel has no io_uring: boot one with CONFIG_IO_URING=y"
                           : "a security module or the container's engine denies it: look into the audit log";
  }
  const std::string allow = "sysctl -w kernel.io_uring_disabled=0";
  return host.filtered ? allow + " on the host; if that does not help, " + filter : allow;
}

}  // namespace sluice::base
