// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/check.h"

#include <gtest/gtest.h>

namespace sluice::base {
namespace {

TEST(CheckDeathTest, SaysWhereWhatAndWhy) {
  EXPECT_DEATH(CHECK(1 + 1 == 3, "numbers add up"),
               "check_test.cc:[0-9]+: CHECK failed: 1 \\+ 1 == 3 \\(numbers add up\\)");
}

TEST(CheckDeathTest, ADcheckLooksOnlyWhereItIsSwitchedOn) {
  const bool before = dchecks_enabled;
  bool looked = false;
  const auto wrong = [&] { return looked = true, false; };
  set_dchecks(false);
  DCHECK(wrong(), "not looked at");
  EXPECT_FALSE(looked);
  set_dchecks(true);
  EXPECT_DEATH(DCHECK(wrong(), "looked at"), "looked at");
  set_dchecks(before);
}

}  // namespace
}  // namespace sluice::base
