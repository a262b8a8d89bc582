// Two whole workers, files on disk, and a wire with faults: every byte must arrive, whatever happens.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/lane/lane_fixture_for_test.h"
#include "dataplane/lane/tx_flow.h"

namespace sluice::lane::testing {
namespace {

TEST_F(Lane, MovesAFileOverACleanWireWithoutRepeatingAnything) {
  const auto data = make_source(3'000'001);
  open_flows(crc_, 8192);
  transfer(data.size(), {}, true);
  expect_identical(data);
  EXPECT_EQ(a_.board().flows[kTxSlot].state.retransmitted_chunks, 0U);
  EXPECT_EQ(b_.board().flows[kRxSlot].state.duplicate_chunks, 0U);
  close_flows();
  expect_counters_add_up(a_);
  expect_counters_add_up(b_);
}

TEST_F(Lane, EverySizeAroundChunkAndExtentBorders) {
  for (const uint64_t bytes : {1, 511, 512, 8191, 8192, 8193, 65535, 65536, 65537, 262143, 262144, 262145}) {
    SCOPED_TRACE(bytes);
    const auto data = make_source(bytes);
    open_flows(crc_, 1384);
    transfer(bytes, {}, true);
    expect_identical(data);
    close_flows();
    a_.objects.retract(0, 0);
    b_.objects.retract(0, 0);
    partitions_.clear();
    next_partition_ = 0;
    written_ = digest_sent_ = digest_written_ = settle_ = sent_end_ = 0;
    closed_ = 0;
    b_.board().flows[kRxSlot].control.settled_below = 0;
  }
}

TEST_F(Lane, Crc32cCarriesTheSameGuarantees) {
  crc_ = wire::CrcKind::kCrc32c;
  const auto data = make_source(1'000'000);
  open_flows(crc_, 8192);
  transfer(data.size(), {.loss = 0.01, .corrupt = 0.01}, true);
  expect_identical(data);
}

TEST_F(Lane, FastRecoveryRepairsLossWithoutNeed) {
  const auto data = make_source(8'000'000);
  open_flows(crc_, 8192);
  transfer(data.size(), {.loss = 0.05, .to_sender_too = false}, true);
  expect_identical(data);
  EXPECT_GT(a_.board().flows[kTxSlot].state.retransmitted_chunks, 20U);
  EXPECT_EQ(a_.board().flows[kTxSlot].state.repaired_chunks, 0U);
  EXPECT_EQ(b_.board().flows[kRxSlot].state.duplicate_chunks, 0U);  // nothing sent twice for one loss
  close_flows();
}

TEST_F(Lane, CopiesPayloadsItselfWhereTheDeviceWantsThat) {
  a_.port.frames().let_caller_copy();
  b_.port.frames().let_caller_copy();
  const auto data = make_source(3'000'001);
  open_flows(crc_, 8192);
  transfer(data.size(), {.loss = 0.02, .reorder = 0.05}, true);
  expect_identical(data);
}

TEST_F(Lane, NeedAloneCompletesATransfer) {
  const auto data = make_source(2'000'000);
  open_flows(crc_, 8192);
  transfer(data.size(), {.loss = 0.2}, false, 2'000'000);
  expect_identical(data);
  EXPECT_EQ(a_.board().flows[kTxSlot].state.retransmitted_chunks, 0U);
  EXPECT_GT(a_.board().flows[kTxSlot].state.repaired_chunks, 0U);
  close_flows();
}

TEST_F(Lane, EveryFaultAtOnce) {
  const auto data = make_source(6'000'000);
  open_flows(crc_, 4096);
  transfer(data.size(), {.loss = 0.05, .duplicate = 0.05, .corrupt = 0.05, .reorder = 0.2}, true, 2'000'000);
  expect_identical(data);
  EXPECT_GT(b_.board().flows[kRxSlot].state.duplicate_chunks, 0U);
  EXPECT_GT(b_.board().flows[kRxSlot].state.crc_errors, 0U);
  close_flows();
  expect_counters_add_up(a_);
  expect_counters_add_up(b_);
}

TEST_F(Lane, FilesInMemoryGoByNoDiskAtAll) {
  in_memory_ = true;
  const auto data = make_source(3'000'001);
  open_flows(crc_, 8192);
  transfer(data.size(), {.loss = 0.02, .duplicate = 0.02, .corrupt = 0.02, .reorder = 0.05}, true);
  expect_identical(data);
  close_flows();
  EXPECT_EQ(a_.counter(Counter::disk_reads), 0U);
  EXPECT_GE(b_.counter(Counter::disk_writes), 45U);
  EXPECT_EQ(a_.worker.disk_operations() + b_.worker.disk_operations(), 0U);
  expect_counters_add_up(b_);
}

// It may hold them from an earlier life, and this one may end before the right ones come.
TEST_F(Lane, DamagedBytesNeverReachAFileInMemory) {
  in_memory_ = true;
  make_source(kExtentBytes);
  const std::string earlier(kExtentBytes, 'e');
  ASSERT_EQ(::pwrite(destination_.get(), earlier.data(), earlier.size(), 0), kExtentBytes);
  open_flows(crc_, 8192);
  a_.command({.kind = board::CommandKind::kPartition, .flow = kTxSlot, .length = kExtentBytes});
  auto& sent = a_.port.frames().sent;
  uint32_t chunks = 0;
  for (int i = 0; i < 100 && b_.counter(Counter::rx_drop_crc) == 0; ++i) {
    now_ns_ += kStepNs;
    a_.board().control_alive_ns = b_.board().control_alive_ns = now_ns_;
    a_.step(now_ns_);
    for (Frame& frame : sent) {
      if (frame.size() > 8192 && chunks++ > 0)
        frame.back() ^= 1;  // all but the first, which opens the extent
    }
    carry(a_, b_, {});
    b_.step(now_ns_);
    carry(b_, a_, {});
  }
  ASSERT_EQ(b_.board().flows[kRxSlot].state.chunks, 1U);
  ASSERT_GT(b_.counter(Counter::rx_drop_crc), 0U);
  std::string there(kExtentBytes, '?');
  ASSERT_EQ(::pread(destination_.get(), there.data(), there.size(), 0), kExtentBytes);
  EXPECT_EQ(there.substr(8192), earlier.substr(8192));
}

// Control would never hear that it is written, and the source never send it again.
TEST_F(Lane, AnExtentInMemoryWaitsUntilItCanBeReported) {
  in_memory_ = true;
  const auto data = make_source(kExtentBytes);
  open_flows(crc_, 8192);
  run_steps(5);
  while (b_.board().workers[0].events.push({.kind = board::EventKind::kWorkEnd})) {
  }
  a_.command({.kind = board::CommandKind::kPartition, .flow = kTxSlot, .length = data.size()});
  for (int i = 0; i < 100; ++i) step_alone();
  EXPECT_GT(b_.counter(Counter::rx_drop_no_buffer), 0U);
  EXPECT_FALSE(b_.objects.find(0, 0)->has_written(0));
}

TEST_F(Lane, ASourceInMemoryThatIsCutOffFails) {
  in_memory_ = true;
  const auto data = make_source(1'000'000);
  ASSERT_EQ(::ftruncate(a_.objects.find(0, 0)->fd.get(), 500'000), 0);
  open_flows(crc_, 8192);
  a_.command({.kind = board::CommandKind::kPartition, .flow = kTxSlot, .length = data.size()});
  bool failed = false;
  for (int i = 0; i < 1000 && !failed; ++i) {
    now_ns_ += kStepNs;
    a_.step(now_ns_);
    b_.step(now_ns_);
    carry(a_, b_, {});
    carry(b_, a_, {});
    board::Event event;
    while (a_.board().workers[0].events.pop(&event)) {
      failed |= event.kind == board::EventKind::kExtentFailed && event.value == ENODATA;
      closed_ += event.kind == board::EventKind::kFlowClosed;
    }
  }
  EXPECT_TRUE(failed);
}

// The simulator's seed 4003497: all else of the lane waited behind it.
TEST_F(Lane, WhatCannotBeReadAndIsGivenUpMakesWay) {
  const auto data = make_source(2 * kExtentBytes);
  ASSERT_EQ(::ftruncate(a_.objects.find(0, 0)->fd.get(), kExtentBytes), 0);
  open_flows(crc_, 8192);
  for (const uint64_t offset : {kExtentBytes, 0U}) {
    a_.command(
        {.kind = board::CommandKind::kPartition, .flow = kTxSlot, .offset = offset, .length = kExtentBytes});
  }
  std::vector<board::Event> events;
  const auto run = [&] {
    for (int i = 0; i < 500; ++i) {
      now_ns_ += kStepNs;
      a_.step(now_ns_);
      b_.step(now_ns_);
      carry(a_, b_, {});
      carry(b_, a_, {});
      board::Event event;
      while (a_.board().workers[0].events.pop(&event)) events.push_back(event);
    }
  };
  const auto count = [&](board::EventKind kind) {
    return std::ranges::count(events, kind, [](const board::Event& event) { return event.kind; });
  };
  run();
  EXPECT_EQ(count(board::EventKind::kExtentFailed), 1);
  EXPECT_EQ(count(board::EventKind::kPartitionSent), 0);
  a_.command({.kind = board::CommandKind::kPeerHas,
              .flow = kTxSlot,
              .offset = kExtentBytes,
              .length = kExtentBytes});
  run();
  EXPECT_EQ(count(board::EventKind::kExtentSent), 1);
  EXPECT_EQ(count(board::EventKind::kPartitionSent), 2);
  EXPECT_TRUE(b_.objects.find(0, 0)->has_written(0));
  EXPECT_EQ(a_.objects.find(0, 0)->extents_in_use.load(), 0U);
}

TEST_F(Lane, ADeviceThatSendsByItsClockIsGivenEachFramesTime) {
  a_.port.frames().let_device_time();
  const auto data = make_source(3'000'000);
  open_flows(crc_, 8192);
  a_.board().flows[kTxSlot].control.rate_bps = 10'000'000'000;
  a_.command({.kind = board::CommandKind::kPartition, .flow = kTxSlot, .length = 4 * kExtentBytes});
  auto& times = a_.port.frames().times;
  std::vector<uint64_t> data_times;
  for (int i = 0; i < 40; ++i) {
    times.clear();
    run_steps(1);
    for (const uint64_t time_ns : times) {
      if (time_ns == 0) continue;  // neighbours, probes
      EXPECT_GE(time_ns, now_ns_);
      EXPECT_LE(time_ns, now_ns_ + kSendAheadNs);
      data_times.push_back(time_ns);
    }
  }
  ASSERT_EQ(data_times.size(), 4 * kExtentBytes / 8192);
  const uint64_t frame_ns = data_times[1] - data_times[0];
  EXPECT_NEAR(static_cast<double>(frame_ns), (8192 + 72 + 42 + 24) * 0.8, 30);
  for (size_t i = 2; i < data_times.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(data_times[i] - data_times[i - 1]), static_cast<double>(frame_ns), 1)
        << i;
  }
}

TEST_F(Lane, CloseInTheMiddleLeavesNothingBehind) {
  const auto data = make_source(4'000'000);
  open_flows(crc_, 8192);
  bytes_ = data.size();
  for (const auto& [offset, length] : partitions_) {
    a_.board().workers[0].commands.push({.kind = board::CommandKind::kPartition,
                                         .flow = kTxSlot,
                                         .object = 0,
                                         .offset = offset,
                                         .length = length});
  }
  for (int i = 0; i < 60; ++i) {
    now_ns_ += kStepNs;
    a_.step(now_ns_);
    carry(a_, b_, {.loss = 0.1});
    b_.step(now_ns_);
    carry(b_, a_, {});
    handle_events();
  }
  ASSERT_GT(a_.board().flows[kTxSlot].state.chunks, 0U);
  close_flows();
}

TEST_F(Lane, ADeviceThatKeepsItsLastFramesHoldsUpNeitherFlowNorFile) {
  a_.port.frames().let_device_keep(8);
  const auto data = make_source(1'000'000);
  open_flows(crc_, 8192);
  transfer(data.size(), {}, false);
  expect_identical(data);
  close_flows();  // nothing is in use, though nothing more is sent
}

// What control does with a file that is done: its chunks are not wanted, and not lost.
TEST_F(Lane, ChunksOfAClosedFileAreNeitherSentAgainNorHeldForEver) {
  const auto data = make_source(200'000);
  open_flows(crc_, 8192);
  const auto closed = b_.objects.retract(0, 0);
  a_.command({.kind = board::CommandKind::kPartition, .flow = kTxSlot, .length = 200'000});
  run_steps(3000);
  EXPECT_GT(b_.counter(Counter::rx_drop_unknown_object), 20U);
  EXPECT_EQ(a_.board().flows[kTxSlot].state.retransmitted_chunks, 0U);
  EXPECT_GT(a_.objects.find(0, 0)->extents_in_use.load(), 0U);
  a_.command({.kind = board::CommandKind::kPeerHas, .flow = kTxSlot, .length = 200'000});
  run_steps(10);
  EXPECT_EQ(a_.objects.find(0, 0)->extents_in_use.load(), 0U);
  EXPECT_EQ(a_.board().flows[kTxSlot].state.opened_extents, 0U) << "their credit is given back";
}

// A law of the rate needs more than losses: where the peer is, and how long data takes to it.
TEST_F(Lane, WhatAStatusSaysOfThePathReachesTheBoard) {
  const auto data = make_source(200'000);
  open_flows(crc_, 8192);
  a_.command({.kind = board::CommandKind::kPartition, .flow = kTxSlot, .length = 200'000});
  run_steps(3000);
  const board::FlowState& state = a_.board().flows[kTxSlot].state;
  EXPECT_EQ(state.peer_bytes_received, 200'000U);
  EXPECT_GE(state.peer_received_end, state.chunks);
  EXPECT_LE(state.delay_min_ns, state.delay_max_ns);
}

TEST_F(Lane, WhatThePeerHasIsNotReadAnyMoreAndItsPartitionsEnd) {
  const auto data = make_source(20 * kExtentBytes);
  open_flows(crc_, 8192);
  a_.board().flows[kTxSlot].control.rate_bps = 100'000'000;
  for (const auto& [offset, length] : partitions_) {
    a_.command({.kind = board::CommandKind::kPartition, .flow = kTxSlot, .offset = offset, .length = length});
  }
  run_steps(5);
  a_.command({.kind = board::CommandKind::kPeerHas, .flow = kTxSlot, .length = data.size()});
  run_steps(30'000);
  EXPECT_EQ(partitions_ended_, partitions_.size());
  EXPECT_LE(a_.board().flows[kTxSlot].state.bytes, 9U * kExtentBytes) << "only what was read already";
}

// A repair opens an extent without credit, and its first pass finds the extent written.
TEST_F(Lane, CreditStaysTrueWhenAnExtentIsRepairedBeforeItsFirstPass) {
  const auto data = make_source(kExtentBytes);
  open_flows(crc_, 8192);
  a_.command({.kind = board::CommandKind::kRepair, .flow = kTxSlot, .length = kExtentBytes});
  run_steps(500);
  const auto& state = a_.board().flows[kTxSlot].state;
  EXPECT_EQ(state.opened_extents, 1U) << "the peer counts it, so it counts here";
  a_.command({.kind = board::CommandKind::kPartition, .flow = kTxSlot, .length = kExtentBytes});
  run_steps(500);
  EXPECT_EQ(a_.objects.find(0, 0)->extents_in_use.load(), 1U) << "never listed again";
  a_.command({.kind = board::CommandKind::kPeerHas, .flow = kTxSlot, .length = kExtentBytes});
  run_steps(10);
  EXPECT_EQ(a_.objects.find(0, 0)->extents_in_use.load(), 0U);
  EXPECT_EQ(state.opened_extents, state.extents_done);
}

// The simulator's seed 20120358. The disk would have written into a buffer that is another extent's by then.
TEST_F(Lane, ARepairIsNotForgottenWhileTheDiskReadsForIt) {
  const auto data = make_source(40 * kExtentBytes);
  open_flows(crc_, 8192);
  run_steps(10);
  a_.disk().hold();
  a_.command({.kind = board::CommandKind::kRepair, .flow = kTxSlot, .length = 1});
  run_steps(5);
  ASSERT_EQ(a_.disk().held(), 1U);
  a_.disk().hold_no_more();
  transfer(data.size(), {}, false);  // has the extent too, earlier; the repair is done from there
  a_.disk().let_go();
  run_steps(10);
  expect_identical(data);
  close_flows();
}

// The pool is for all flows of a worker: one that is alone now does not fill it with what it sends minutes
// later.
TEST_F(Lane, ASlowFlowReadsNoFurtherAheadThanItSoonSends) {
  constexpr uint64_t kBytes = kExtents * kExtentBytes;
  const std::vector<uint8_t> data = make_source(kBytes);
  bytes_ = kBytes;
  open_flows(crc_, 8192);
  a_.board().flows[kTxSlot].control.rate_bps = 100'000;  // five seconds for an extent
  feed();
  run_steps(5000);
  EXPECT_LE(a_.counter(Counter::disk_reads), ReadAhead::kLeast + 2);
  a_.board().flows[kTxSlot].control.rate_bps = 20'000'000'000;
  transfer(kBytes, {}, true);
  expect_identical(data);
  close_flows();
}

TEST_F(Lane, ABufferIsFreedWhenTheExtentWasWrittenElsewhere) {
  make_source(20 * kExtentBytes);
  open_flows(crc_, 8192);
  // One chunk each of as many extents as there are buffers; then another worker writes them all.
  for (uint64_t i = 0; i < kExtents; ++i) {
    a_.command(
        {.kind = board::CommandKind::kRepair, .flow = kTxSlot, .offset = i * kExtentBytes, .length = 1});
    run_steps(50);
  }
  Object& object = *b_.objects.find(0, 0);
  EXPECT_EQ(object.extents_in_use.load(), kExtents / 2);
  for (uint64_t i = 0; i < 8; ++i) object.set_written(i);
  a_.command(
      {.kind = board::CommandKind::kRepair, .flow = kTxSlot, .offset = 10 * kExtentBytes, .length = 1});
  run_steps(200);
  EXPECT_LE(object.extents_in_use.load(), 1U);
}

}  // namespace
}  // namespace sluice::lane::testing
