// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/clock.h"

#include <gtest/gtest.h>

namespace sluice::lane {
namespace {

constexpr uint64_t kToleratedNs = 2'000'000;  // a guest's counter may part from its clock while the test runs

TEST(Clock, TellsTheSystemsTime) {
  for (const bool with_tsc : {false, true}) {
    Clock clock(with_tsc);
    uint64_t last_ns = 0;
    for (const uint64_t end_ns = monotonic_ns() + 100'000'000; last_ns < end_ns;) {
      const uint64_t before_ns = monotonic_ns();
      const uint64_t now_ns = clock.now_ns();
      const uint64_t after_ns = monotonic_ns();
      ASSERT_GE(now_ns, last_ns);
      ASSERT_GE(now_ns + kToleratedNs, before_ns);
      ASSERT_LE(now_ns, after_ns + kToleratedNs);
      last_ns = now_ns;
    }
  }
}

TEST(Clock, TheTscIsUsedWhereTheKernelUsesIt) {
  EXPECT_TRUE(tsc_is_usable("tsc"));
  EXPECT_TRUE(tsc_is_usable("kvm-clock"));
  EXPECT_TRUE(tsc_is_usable("hyperv_clocksource_tsc_page"));
  EXPECT_FALSE(tsc_is_usable("hpet"));
  EXPECT_FALSE(tsc_is_usable("acpi_pm"));
  EXPECT_FALSE(tsc_is_usable("jiffies"));
}

}  // namespace
}  // namespace sluice::lane
