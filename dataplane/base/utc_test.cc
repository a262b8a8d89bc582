// SPDX-License-Identifier: Apache-2.0
#include "dataplane/base/utc.h"

#include <gtest/gtest.h>

namespace sluice::base {
namespace {

TEST(Utc, IsWrittenAsRfc3339HasIt) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00Z");
  EXPECT_EQ(utc_text(-1), "1969-12-31T23:59:59Z");
  EXPECT_EQ(utc_text(1'795'348'800'000'000'000), "2026-11-22T12:00:00Z");
  EXPECT_EQ(utc_text(951'782'400'000'000'000), "2000-02-29T00:00:00Z");
  EXPECT_EQ(utc_text(4'107'542'399'000'000'000), "2100-02-28T23:59:59Z");
  EXPECT_EQ(utc_text(4'107'542'400'000'000'000), "2100-03-01T00:00:00Z");
}

TEST(Utc, MayHaveMicroseconds) {
  EXPECT_EQ(utc_text_us(1'123'456'789), "1970-01-01T00:00:01.123456Z");
  EXPECT_EQ(utc_text_us(-1), "1969-12-31T23:59:59.999999Z");
}

}  // namespace
}  // namespace sluice::base
