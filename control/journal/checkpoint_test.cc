// When the journal's log is put into its database.
// SPDX-License-Identifier: Apache-2.0
#include "control/journal/checkpoint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <future>
#include <mutex>

#include "control/journal/checkpointer.h"
#include "control/journal/journal_fixture.h"

namespace sluice::journal {
namespace {

TEST(Checkpoint, IsNotWorthItForAShortLog) {
  Checkpoint checkpoint;
  EXPECT_EQ(checkpoint.due_ns(), UINT64_MAX);
  checkpoint.written(Checkpoint::kPagesWorthIt - 1, 7);
  EXPECT_EQ(checkpoint.due_ns(), UINT64_MAX);
}

TEST(Checkpoint, WaitsUntilNothingWasWrittenForAWhile) {
  Checkpoint checkpoint;
  checkpoint.written(Checkpoint::kPagesWorthIt, 1'000);
  EXPECT_EQ(checkpoint.due_ns(), 1'000 + Checkpoint::kQuietNs);
  checkpoint.written(Checkpoint::kPagesWorthIt + 3, 5'000);
  EXPECT_EQ(checkpoint.due_ns(), 5'000 + Checkpoint::kQuietNs);
}

TEST(Checkpoint, DoesNotLetTheLogGrowForEver) {
  Checkpoint checkpoint;
  checkpoint.written(Checkpoint::kPagesMax, 5'000);
  EXPECT_EQ(checkpoint.due_ns(), 5'000U);
}

TEST(Checkpoint, IsDoneOnce) {
  Checkpoint checkpoint;
  checkpoint.written(Checkpoint::kPagesMax, 5'000);
  checkpoint.done();
  EXPECT_EQ(checkpoint.due_ns(), UINT64_MAX);
  checkpoint.written(2, 6'000);
  EXPECT_EQ(checkpoint.due_ns(), UINT64_MAX);
}

TEST(Checkpointer, WorksWithTheMutexHeldOnceItIsDue) {
  std::mutex mutex;
  std::promise<bool> held;
  Checkpointer checkpointer(mutex, [&] { held.set_value(!mutex.try_lock()); });
  {
    const std::scoped_lock lock(mutex);
    checkpointer.written(1);
    checkpointer.written(Checkpoint::kPagesWorthIt);
  }
  EXPECT_TRUE(held.get_future().get());
}

TEST(Checkpointer, OfALogThatGrowsOnIsNotWaitedFor) {
  std::mutex mutex;
  int worked = 0;
  Checkpointer checkpointer(mutex, [&] { ++worked; });
  const std::scoped_lock lock(mutex);
  checkpointer.written(Checkpoint::kPagesMax);
  EXPECT_EQ(worked, 1);
}

TEST(Checkpointer, EndsWhileNothingIsDue) {
  std::mutex mutex;
  const Checkpointer checkpointer(mutex, [] { ADD_FAILURE() << "nothing was written"; });
}

TEST_F(JournalTest, TheLogDoesNotGrowForEver) {
  const auto journal = open();
  const auto log_bytes = [&] { return std::filesystem::file_size(path_.string() + "-wal"); };
  transfer::Batch batch;
  batch.record = transfer::Record{.id = "a"};
  batch.record->legs.push_back({.peer = std::string(256 * 4096, 'x')});
  // Several times as much as the log may hold: where it began anew it did not grow.
  uint64_t written_bytes = 0;
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(journal->write("a", batch, transfer::Durability::kProcess));
    written_bytes += 256 * 4096;
  }
  EXPECT_LT(log_bytes(), written_bytes / 2);
}

}  // namespace
}  // namespace sluice::journal
