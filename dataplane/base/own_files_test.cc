// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/own_files.h"

#include <gtest/gtest.h>

namespace sluice::base {
namespace {

TEST(OwnFiles, AProgramThatTheHostsLoaderStartsHasItsFellowsBesideIt) {
  EXPECT_EQ(programs_beside("/usr/sbin/sluice-control"), "/usr/sbin");
  EXPECT_EQ(bundle_of("/usr/sbin/sluice-control"), "");
  EXPECT_EQ(bundled_drivers("/usr/sbin/sluice-dataplane"), "");
  EXPECT_EQ(programs_beside(""), "");  // no /proc
}

TEST(OwnFiles, AProgramOfABundleHasThemInTheBundle) {
  EXPECT_EQ(bundle_of("/opt/sluice/lib/ld-linux-x86-64.so.2"), "/opt/sluice");
  EXPECT_EQ(programs_beside("/opt/sluice/lib/ld-linux-x86-64.so.2"), "/opt/sluice/bin");
  EXPECT_EQ(bundled_drivers("/opt/sluice/lib/ld-linux-x86-64.so.2"), "/opt/sluice/lib/dpdk");
}

TEST(OwnFiles, ThisProgramIsFound) {
  EXPECT_TRUE(std::filesystem::exists(own_executable()));
  EXPECT_EQ(bundle_of(own_executable()), "");
}

}  // namespace
}  // namespace sluice::base
