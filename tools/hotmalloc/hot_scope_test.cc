// That the preloaded allocator catches what it is for; run with it (CMakeLists.txt sets LD_PRELOAD).
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>

#include "dataplane/core/hot.h"

namespace sluice {
namespace {

void* volatile kept;  // so that no compiler leaves an allocation out

void allocate() {
  kept = std::malloc(64);
  std::free(kept);
}

TEST(HotScope, AllocationElsewhereIsFree) {
  allocate();
  EXPECT_EQ(sluice_in_hot_scope(), 0);
}

TEST(HotScope, ColdPartsMayAllocate) {
  HotScope hot;
  EXPECT_EQ(sluice_in_hot_scope(), 1);
  {
    ColdScope cold;
    allocate();
  }
  EXPECT_EQ(sluice_in_hot_scope(), 1);
  ColdScope for_the_test_library;
}

TEST(HotScopeDeathTest, AllocationEndsTheProcess) {
  EXPECT_EXIT(
      {
        HotScope hot;
        allocate();
      },
      testing::KilledBySignal(SIGABRT), "hotmalloc: malloc in a hot scope");
}

TEST(HotScopeDeathTest, FreeingEndsTheProcess) {
  EXPECT_EXIT(
      {
        kept = std::malloc(64);
        HotScope hot;
        std::free(kept);
      },
      testing::KilledBySignal(SIGABRT), "hotmalloc: free in a hot scope");
}

}  // namespace
}  // namespace sluice
