// SPDX-License-Identifier: Apache-2.0
#include "control/words/bounds.h"

#include <gtest/gtest.h>

#include "control/words/terms.h"

namespace sluice::transfer {
namespace {

TEST(Bounds, ASessionHasNoMoreBytesThanItsExtentsHold) {
  EXPECT_TRUE(check_bytes(kSessionBytesMax, 1U << 20));
  const Status most = check_bytes(kSessionBytesMax + (1U << 20), 1U << 20);
  ASSERT_FALSE(most);
  EXPECT_EQ(most.error().code, ErrorCode::kResources);
  EXPECT_EQ(most.error().message.find("extent_bytes"), std::string::npos)
      << "no remedy is named that is at its maximum: " << most.error().message;
  const Status small = check_bytes(kSessionBytesMax, 1U << 16);
  ASSERT_FALSE(small);
  EXPECT_NE(small.error().message.find("extent_bytes"), std::string::npos) << small.error().message;
}

}  // namespace
}  // namespace sluice::transfer
