// SPDX-License-Identifier: Apache-2.0
#include "control/board/worker_figures.h"

#include <gtest/gtest.h>

#include <memory>

#include "dataplane/base/time_for_test.h"

namespace sluice::board {
namespace {

TEST(WorkerFigures, AreReadFromTheBoard) {
  const auto slot = std::make_unique<WorkerSlot>();
  slot->counters[static_cast<uint32_t>(Counter::busy_ns)] = 1;
  slot->counters[static_cast<uint32_t>(Counter::rx_missed)] = 2;
  slot->counters[static_cast<uint32_t>(Counter::disk_writes)] = 3;
  slot->counters[static_cast<uint32_t>(Counter::disk_writing_ns)] = 4;
  const WorkerFigures figures = figures_of(*slot);
  EXPECT_EQ(figures.busy_ns, 1U);
  EXPECT_EQ(figures.missed, 2U);
  EXPECT_EQ(figures.writes, 3U);
  EXPECT_EQ(figures.writing_ns, 4U);
}

TEST(Load, IsThatOfTheWorkerWithMost) {
  const std::vector<WorkerFigures> before = {{.busy_ns = 100 * kMs, .missed = 5}, {.missed = 1}};
  const std::vector<WorkerFigures> now = {
      {.busy_ns = 190 * kMs, .missed = 8, .writes = 10, .write_ns = 50 * kMs, .writing_ns = 30 * kMs},
      {.busy_ns = 20 * kMs, .missed = 2, .reads = 2, .read_ns = 8 * kMs, .reading_ns = 60 * kMs}};
  const Load load = load_of(before, now, 100 * kMs);
  EXPECT_DOUBLE_EQ(load.busy, 0.9);
  EXPECT_DOUBLE_EQ(load.writing, 0.3);
  EXPECT_DOUBLE_EQ(load.reading, 0.6);
  EXPECT_EQ(load.write_ns, 5 * kMs);
  EXPECT_EQ(load.read_ns, 4 * kMs);
  EXPECT_EQ(load.missed, 4U);
}

TEST(Load, OfNoTimeOrAnotherBoardIsNone) {
  const std::vector<WorkerFigures> workers = {{.busy_ns = 90 * kMs, .missed = 3}};
  EXPECT_EQ(load_of({}, workers, 100 * kMs).busy, 0);
  EXPECT_EQ(load_of(workers, workers, 0).busy, 0);
  const std::vector<WorkerFigures> anew(1);
  EXPECT_EQ(load_of(workers, anew, 100 * kMs).missed, 0U)
      << "a dataplane that was started anew counts from 0";
}

}  // namespace
}  // namespace sluice::board
