// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/worker_watch.h"

#include <gtest/gtest.h>

namespace sluice::lane {
namespace {

TEST(WorkerWatch, EachWorkerHasToTurnEachTime) {
  WorkerEpochs epochs;
  for (int i = 0; i < 2; ++i) epochs.push_back(std::make_unique<std::atomic<uint64_t>>(0));
  WorkerWatch watch(epochs);
  EXPECT_FALSE(watch.all_turned()) << "none has begun";
  *epochs[0] = 3;
  EXPECT_FALSE(watch.all_turned()) << "one is stuck";
  *epochs[1] = 1;
  EXPECT_TRUE(watch.all_turned());
  EXPECT_FALSE(watch.all_turned()) << "none since then";
  *epochs[1] = 2;
  EXPECT_FALSE(watch.all_turned());
  *epochs[0] = 4;
  EXPECT_TRUE(watch.all_turned());
}

}  // namespace
}  // namespace sluice::lane
