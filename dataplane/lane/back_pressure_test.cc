// A disk that is slower than the wire: the sender waits for it, and no chunk is lost for want of room.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/lane/lane_fixture_for_test.h"

namespace sluice::lane::testing {
namespace {

class BackPressure : public Lane {
 protected:
  static constexpr uint64_t kBytes = 120 * kExtentBytes;

  void begin() {
    data_ = make_source(kBytes);
    bytes_ = kBytes;
    open_flows(crc_, 8192);
    b_.board().flows[kRxSlot].control.credit_extents = 7;  // of the eight that there are
  }
  // The sender does what it is advised, as its control would.
  void run(int steps, bool obeys) {
    for (int i = 0; i < steps && written_ < kBytes; ++i) {
      if (next_partition_ < partitions_.size() && i % 4 == 0 && partitions_ended_ + 4 > next_partition_) {
        const auto [offset, length] = partitions_[next_partition_++];
        a_.command(
            {.kind = board::CommandKind::kPartition, .flow = kTxSlot, .offset = offset, .length = length});
      }
      if (steps_ % steps_per_write_ == 0) b_.disk().let_go(1);
      const uint64_t advice = tx().peer_advice_bps;
      a_.board().flows[kTxSlot].control.rate_bps = obeys && advice != 0 ? std::min(advice, kWire) : kWire;
      step_alone();
      if (++steps_ % 50 == 0) detect_loss();
      handle_events();
    }
  }
  // Writes are under way that do not end, and nothing more comes.
  void begin_until_the_disk_stands_still() {
    begin();
    run(40, false);
    b_.disk().hold();
    steps_per_write_ = UINT64_MAX;
    steps_ = 1;
    run(5000, false);
  }
  board::FlowState& tx() { return a_.board().flows[kTxSlot].state; }
  board::FlowState& rx() { return b_.board().flows[kRxSlot].state; }
  void expect_nothing_was_lost() {
    EXPECT_EQ(written_, kBytes);
    EXPECT_EQ(rx().no_buffer_drops, 0U);
    EXPECT_EQ(tx().peer_no_room, 0U);
    EXPECT_EQ(tx().network_lost, 0U);
    EXPECT_EQ(tx().retransmitted_chunks, 0U);
    expect_identical(data_);
  }

  static constexpr uint64_t kWire = 20'000'000'000;
  std::vector<uint8_t> data_;
  uint64_t steps_ = 0;
  uint64_t steps_per_write_ = 25;  // 0.5 ms for 64 KiB: a twentieth of the wire
};

constexpr double kDiskBps = 65536 * 8 / 0.5e-3;

TEST_F(BackPressure, ASlowDiskSlowsTheSenderAndLosesNoChunk) {
  begin();
  b_.disk().hold();
  run(1500, false);
  EXPECT_GT(tx().peer_advice_bps, kDiskBps * 0.4);
  EXPECT_LT(tx().peer_advice_bps, kDiskBps * 1.2);
  run(100'000, false);
  expect_nothing_was_lost();
}

TEST_F(BackPressure, ASenderThatDoesAsAdvisedGoesAtTheDisksSpeed) {
  begin();
  b_.disk().hold();
  run(100'000, true);
  expect_nothing_was_lost();
  // 120 writes of 25 steps, and a little more.
  EXPECT_LT(steps_, 120U * 25 * 5 / 4);
}

TEST_F(BackPressure, ADiskThatStandsStillForTenSecondsPausesTheTransfer) {
  begin_until_the_disk_stands_still();
  const uint64_t sent = tx().chunks;
  run(10'000'000'000 / kStepNs, false);
  EXPECT_EQ(tx().chunks, sent) << "what is on its way is all that may be";
  EXPECT_EQ(tx().peer_advice_bps, DrainRate::kLeastBps);
  EXPECT_GT(tx().blocked_credit_ns + tx().blocked_memory_ns, 9'000'000'000U);
  b_.disk().hold_no_more();
  b_.disk().let_go();
  run(10'000, false);
  expect_nothing_was_lost();
  step_alone();
  run_steps(100);
  EXPECT_EQ(tx().peer_advice_bps, 0U);
}

TEST_F(BackPressure, TheTimeOfEachWriteIsCountedUntilItsEnd) {
  begin_until_the_disk_stands_still();
  const uint32_t held = b_.disk().held();
  const uint64_t before_ns = b_.counter(Counter::disk_write_ns);
  ASSERT_GT(held, 1U);
  run_steps(1000);
  EXPECT_EQ(b_.counter(Counter::disk_write_ns) - before_ns, held * 1000 * kStepNs);
  EXPECT_EQ(b_.counter(Counter::disk_read_ns), 0U) << "it only writes";
  EXPECT_EQ(a_.counter(Counter::disk_write_ns), 0U);
  b_.disk().hold_no_more();
  b_.disk().let_go();
  run(10'000, false);
  expect_nothing_was_lost();
  const uint64_t ended_ns = b_.counter(Counter::disk_write_ns);
  run_steps(1000);
  EXPECT_EQ(b_.counter(Counter::disk_write_ns), ended_ns) << "none is under way";
}

TEST_F(BackPressure, CreditGrowsWhileTheFlowRuns) {
  begin();
  run(2000, false);
  EXPECT_EQ(rx().credit_extents, rx().extents_done + 7);
  b_.board().flows[kRxSlot].control.credit_extents = 5'000'000;
  run_steps(1000);
  EXPECT_EQ(rx().credit_extents, rx().extents_done + kExtents / 2) << "no more than the worker has";
  EXPECT_GT(tx().wanted_extents, 0U);
  EXPECT_EQ(rx().wanted_extents, tx().wanted_extents) << "what the sender wants is told to the receiver";
}

}  // namespace
}  // namespace sluice::lane::testing
