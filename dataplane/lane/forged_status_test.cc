// A status that is false in one field is counted, and the transfer goes on by the next true ones.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/lane/forgery_for_test.h"

namespace sluice::lane::testing {
namespace {

class ForgedStatus : public Forgery {};

TEST_F(ForgedStatus, EchoInAStatus) {
  begin();
  const uint64_t rtt_ns = a_.board().flows[kTxSlot].state.rtt_ns;
  for (const uint64_t echo_ns : {uint64_t{1}, now_ns_ + kFar, uint64_t{UINT64_MAX}}) {
    wire::Status status = true_status();
    status.echo_send_time_ns = echo_ns;
    forge_status(status, status_seq());
  }
  wire::Status status = true_status();
  status.echo_hold_ns = UINT64_MAX;
  forge_status(status, status_seq());
  step_alone();
  EXPECT_EQ(a_.counter(Counter::rx_false_echo), 4U);
  EXPECT_LT(a_.board().flows[kTxSlot].state.rtt_ns, 2 * rtt_ns);
  expect_mended();
}

TEST_F(ForgedStatus, ReceivedEndInAStatus) {
  begin();
  wire::Status status = true_status();
  status.received_end = kFar;
  status.bytes_received = kFar;
  forge_status(status, status_seq());
  step_alone();
  EXPECT_EQ(a_.counter(Counter::rx_false_received_end), 1U);
  transfer(20 * kExtentBytes);
  EXPECT_LT(a_.board().flows[kTxSlot].state.peer_bytes_received, kFar);
  expect_mended();
}

// That nothing of what is held is missing. Where little is lost no peer tells of holes, so none could take
// that back.
TEST_F(ForgedStatus, HolesInAStatus) {
  begin();
  uint64_t frames = 0;
  on_the_way = [&](Frame&, bool from_a) {
    if (!from_a) return true;
    ++frames;
    if (frames % 50 == 0) {
      wire::Status status = true_status();
      status.holes_count = wire::kStatusHolesMax;
      for (uint32_t i = 0; i < wire::kStatusHolesMax; ++i) {
        status.holes[i] = {.told = wire::kChunksPerExtentMax, .number = 8 + i, .run_count = 1};
        status.hole_runs[i] = {.first = wire::kChunksPerExtentMax - 1, .count = 1};
      }
      forge_status(status, status_seq());
    }
    return frames % 12 != 0;
  };
  transfer(30 * kExtentBytes);
  on_the_way = nullptr;
  expect_mended();
}

TEST_F(ForgedStatus, CreditInAStatus) {
  for (const uint64_t credit : {uint64_t{0}, uint64_t{200}, kFar}) {
    SCOPED_TRACE(credit);
    if (data_.empty()) begin();
    wire::Status status = true_status();
    status.credit_extents = credit;
    forge_status(status, status_seq());
    transfer(written_ + 5 * kExtentBytes);
    EXPECT_LE(a_.board().flows[kTxSlot].state.credit_extents, written_ / kExtentBytes + 5);
  }
  EXPECT_EQ(a_.counter(Counter::rx_false_credit), 1U);
  expect_mended(5);
}

TEST_F(ForgedStatus, NumberOfAStatus) {
  begin();
  for (const uint64_t seq : {uint64_t{1}, status_seq() + 100, status_seq() + 500}) {
    wire::Status status = true_status();
    status.credit_extents = 0;
    forge_status(status, seq);
    step_alone();
    transfer(written_ + 2 * kExtentBytes);
  }
  expect_mended();
}

TEST_F(ForgedStatus, GapsInAStatus) {
  begin();
  const uint64_t next = a_.board().flows[kTxSlot].state.chunks;
  wire::Status status = true_status();
  status.gap_count = 2;
  status.gaps[0] = {next - 3, 2};  // which arrive
  status.gaps[1] = {next + 1000, kFar};
  forge_status(status, status_seq());
  step_alone();
  EXPECT_EQ(a_.counter(Counter::rx_false_gaps), 1U);
  EXPECT_EQ(a_.board().flows[kTxSlot].state.gaps_reported, 2U);
  expect_mended();
}

// Of extents that nobody has; of such as are under way, which then are let go too early.
TEST_F(ForgedStatus, DoneListInAStatus) {
  begin();
  for (const uint32_t count : {1U, 64U}) {
    for (const bool held : {false, true}) {
      wire::Status status = true_status();
      const uint32_t first = status.done_end;
      status.done_end += count;
      status.done_back = count;
      status.run_count = 1;
      status.runs[0] = {.object = held ? 0U : 99U, .count = count, .first = held ? first + 2 : 7};
      forge_status(status, status_seq());
      transfer(written_ + 5 * kExtentBytes);
    }
  }
  EXPECT_GE(a_.counter(Counter::rx_false_done_lists), 2U);
  expect_mended(20);
}

TEST_F(ForgedStatus, FirstNumberOfADoneListInAStatus) {
  begin();
  for (const uint32_t first : {5U, 1000U, UINT32_MAX}) {
    wire::Status status = true_status();
    status.done_end = first + 3;
    status.done_back = 3;
    status.run_count = 1;
    status.runs[0] = {.object = 0, .count = 3, .first = 1000};
    forge_status(status, status_seq());
    transfer(written_ + 3 * kExtentBytes);
  }
  expect_mended();
}

}  // namespace
}  // namespace sluice::lane::testing
