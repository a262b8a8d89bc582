// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/owners.h"

#include <gtest/gtest.h>

#include "tools/sim/nodes.h"

namespace sluice::sim {
namespace {

constexpr int64_t kUnixSecondNs = 1'000'000'000;

TEST(Owners, WhoeverHasTheHighestEpochWritesAlone) {
  Owners owners;
  owners.leased("first", {.node = 0, .epoch = 1});
  owners.leased("second", {.node = 2, .epoch = 2});
  owners.bind(10, "first");
  owners.bind(20, "second");
  EXPECT_EQ(owners.begins("first", 0, 0), "");
  EXPECT_EQ(owners.wrong_writer(10), "");
  EXPECT_EQ(owners.begins("second", 2, 0), "");
  EXPECT_NE(owners.wrong_writer(10), "");
  EXPECT_EQ(owners.wrong_writer(20), "");
  EXPECT_NE(owners.begins("first", 0, 0), "");
}

TEST(Owners, TwoNodesUnderOneEpochAreOneTooMany) {
  Owners owners;
  owners.leased("first", {.node = 0, .epoch = 1});
  owners.leased("second", {.node = 2, .epoch = 1});
  EXPECT_EQ(owners.begins("first", 0, 0), "");
  EXPECT_EQ(owners.begins("first", 0, 0), "") << "it goes on";
  EXPECT_NE(owners.begins("second", 2, 0), "");
}

TEST(Owners, AGrantIsOfItsHolderOnceAndInItsTime) {
  const auto fresh = [] {
    Owners owners;
    owners.granted(
        "s",
        {.holder = kSource, .start_by_unix_ns = 300 * kUnixSecondNs, .end_by_unix_ns = 3600 * kUnixSecondNs});
    return owners;
  };
  Owners owners = fresh();
  EXPECT_EQ(owners.begins("s", kSource, 0), "");
  EXPECT_EQ(owners.begins("s", kSource, 2000 * kUnixSecondNs), "") << "it began in time, and goes on";
  EXPECT_NE(owners.begins("s", kSource, 4000 * kUnixSecondNs), "");
  EXPECT_NE(owners.begins("s", 2, 0), "") << "another node";
  owners.ended("s");
  EXPECT_NE(owners.begins("s", kSource, 0), "") << "once";
  owners = fresh();
  EXPECT_NE(owners.begins("s", kSource, 500 * kUnixSecondNs), "") << "late";
  owners.bind(10, "s");
  EXPECT_EQ(owners.wrong_writer(10), "");
  owners.grants_are_over();
  EXPECT_NE(owners.wrong_writer(10), "");
  EXPECT_EQ(owners.begins("of nobody", 2, 0), "");
}

}  // namespace
}  // namespace sluice::sim
