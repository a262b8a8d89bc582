// SPDX-License-Identifier: Apache-2.0
#include "control/words/place_text.h"

#include <gtest/gtest.h>

namespace sluice::transfer {
namespace {

TEST(PlaceText, SaysAPlaceAsPeopleDo) {
  EXPECT_EQ(place_text(1, 3), "1st of 3");
  EXPECT_EQ(place_text(2, 3), "2nd of 3");
  EXPECT_EQ(place_text(3, 5), "3rd of 5");
  EXPECT_EQ(place_text(11, 12), "11th of 12");
  EXPECT_EQ(place_text(112, 121), "112th of 121");
  EXPECT_EQ(place_text(121, 121), "121st of 121");
}

}  // namespace
}  // namespace sluice::transfer
