// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/io_uring_denied.h"

#include <gtest/gtest.h>

#include <cerrno>

namespace sluice::base {
namespace {

bool says(const std::string& text, const std::string& what) { return text.find(what) != std::string::npos; }

TEST(IoUringDenied, TheRemedyNamesWhatDeniesIt) {
  EXPECT_TRUE(says(io_uring_remedy(EPERM, {.disabled = 2}), "kernel.io_uring_disabled=0"));
  EXPECT_TRUE(says(io_uring_remedy(EPERM, {.disabled = 1}), "kernel.io_uring_disabled=0"));
  for (const int error : {EPERM, ENOSYS}) {
    for (const std::optional<int> disabled : {std::optional(0), std::optional<int>()}) {
      const std::string remedy = io_uring_remedy(error, {.disabled = disabled, .filtered = true});
      EXPECT_TRUE(says(remedy, "seccomp")) << remedy;
      EXPECT_FALSE(says(remedy, "sysctl")) << remedy;
    }
  }
  const std::string either = io_uring_remedy(EPERM, {.disabled = 2, .filtered = true});
  EXPECT_TRUE(says(either, "kernel.io_uring_disabled=0") && says(either, "seccomp")) << either;
  EXPECT_TRUE(says(io_uring_remedy(ENOSYS, {}), "CONFIG_IO_URING"));
  EXPECT_TRUE(says(io_uring_remedy(EACCES, {}), "SELinux"));
  EXPECT_TRUE(says(io_uring_remedy(ENOMEM, {}), "LimitMEMLOCK"));
  EXPECT_TRUE(says(io_uring_remedy(EMFILE, {}), "LimitNOFILE"));
  for (const int error : {ENOMEM, EMFILE, ENFILE, EACCES, EINVAL})
    EXPECT_FALSE(says(io_uring_remedy(error, {.filtered = true}), "sysctl")) << error;
}

}  // namespace
}  // namespace sluice::base
