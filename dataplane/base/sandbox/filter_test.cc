// A process that may not filter its own calls says who forbids that.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/sandbox/filter.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <iterator>

#include "dataplane/base/sandbox/sandbox.h"

namespace sluice::sandbox {
namespace {

// As a unit of systemd with SystemCallFilter=@system-service, which has not this call.
bool forbid_filters() {
  sock_filter program[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                           BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                           BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog filter{.len = std::size(program), .filter = program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(Filter, IsRefusedWithARemedyWhereOneAboveForbidsIt) {
  const pid_t child = fork();
  if (child == 0) {
    if (!forbid_filters()) _exit(100);
    const auto filtered = filter_calls({.key = "none"}, false);
    if (filtered) _exit(101);
    const bool said = filtered.error().message.find("SystemCallFilter=") != std::string::npos;
    _exit(said ? static_cast<int>(filtered.error().code) : 102);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), static_cast<int>(ErrorCode::kConfiguration));
}

}  // namespace
}  // namespace sluice::sandbox
