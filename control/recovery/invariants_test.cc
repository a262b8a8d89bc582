// The DCHECKs of recovery look on in all of its tests; and a number that is not there ends the process.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "control/recovery/extent_ledger.h"
#include "control/recovery/numbers_for_test.h"
#include "control/recovery/receiver.h"
#include "dataplane/base/check.h"

namespace sluice::recovery {
namespace {

// Before main(), so that it holds for every test of this program.
[[maybe_unused]] const bool kLooking = [] {
  base::set_dchecks(true);
  return true;
}();

TEST(InvariantsDeathTest, AnExtentThatIsNotOfTheObjectIsNotSet) {
  ExtentMap map(layout_of(2 * kExtent));
  EXPECT_DEATH(map.set(ExtentId(2)), "an extent of this object");
  ExtentLedger ledger(layout_of(2 * kExtent));
  EXPECT_DEATH(ledger.add(ExtentId(2), 1), "an extent of this object");
}

TEST(InvariantsDeathTest, ASyncThatDidNotBeginDoesNotEnd) {
  Receiver receiver({layout_of(kExtent)}, 1, {.sync_lag_bytes = 1, .sync_lag_ns = 1});
  EXPECT_DEATH(receiver.sync_succeeded(kFirst), "what ends has begun");
  EXPECT_DEATH(receiver.sync_failed(kFirst), "what ends has begun");
}

TEST(Invariants, HoldOfAMapWhoseLastExtentIsShort) {
  ExtentMap map(layout_of(64 * kExtent + 1));
  for (ExtentId extent; extent < map.end_id(); ++extent) {
    map.set(extent);
    map.check_invariants();
  }
  map.clear(ExtentId(64));
  map.check_invariants();
  ExtentMap().check_invariants();
}

}  // namespace
}  // namespace sluice::recovery
