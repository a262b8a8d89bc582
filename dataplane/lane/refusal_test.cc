// What control or a peer gets wrong is counted and changes nothing: no check of ours ends the process for it.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "dataplane/lane/lane_fixture_for_test.h"

namespace sluice::lane::testing {
namespace {

TEST_F(Lane, RefusesCommandsThatMakeNoSense) {
  a_.command({.kind = board::CommandKind::kOpenFlow, .flow = 1u << 30});
  a_.command({.kind = board::CommandKind::kPartition, .flow = 5, .offset = 1, .length = 1});
  a_.command({.kind = static_cast<board::CommandKind>(77), .flow = 5});
  a_.board().flows[9].config.direction = board::Direction::kTx;  // everything else is zero
  a_.command({.kind = board::CommandKind::kOpenFlow, .flow = 9});
  a_.step(now_ns_);
  EXPECT_EQ(a_.counter(Counter::bad_commands), 4U);
}

// A control that died has left a command to open a flow, and the next one has given the slot to another.
TEST_F(Lane, AFlowIsOpenedOnlyByItsOwnCommand) {
  open_flows(crc_, 8192);
  a_.step(now_ns_);
  const auto events = [this] {
    std::vector<board::Event> all;
    for (board::Event e; a_.board().workers[0].events.pop(&e);) all.push_back(e);
    return all;
  };
  const uint32_t tag = a_.board().flows[kTxSlot].config.tag;
  ASSERT_EQ(events().at(0).tag, tag);
  ASSERT_NE(tag, 0U);
  a_.board().flows[kTxSlot + 1].config = a_.board().flows[kTxSlot].config;
  a_.command({.kind = board::CommandKind::kOpenFlow, .flow = kTxSlot + 1, .tag = tag + 1});
  // Whatever is in the slot is closed; whoever asked for another flow need not wait for that.
  a_.command({.kind = board::CommandKind::kCloseFlow, .flow = kTxSlot, .tag = tag + 1});
  a_.step(now_ns_);
  const std::vector<board::Event> answers = events();
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].kind, board::EventKind::kFlowOpened);
  EXPECT_EQ(answers[0].tag, tag + 1);
  EXPECT_EQ(answers[0].value, static_cast<uint64_t>(ECANCELED));
  EXPECT_EQ(answers[1].kind, board::EventKind::kFlowClosed);
  EXPECT_EQ(answers[1].tag, tag + 1);
  EXPECT_EQ(answers[2].kind, board::EventKind::kFlowClosed);
  EXPECT_EQ(answers[2].tag, tag);
}

TEST_F(Lane, GapsThatNoStatusCanCarryAreRefused) {
  const auto data = make_source(3'000'000);
  open_flows(crc_, 8192);
  auto& gaps = b_.board().flows[kRxSlot].gaps;
  for (const board::Gap& gap : {board::Gap{5, 0}, {UINT64_MAX, 2}, {1ULL << 40, 3}, {7, 1}}) gaps.push(gap);
  transfer(data.size(), {.loss = 0.01}, true);
  expect_identical(data);
  EXPECT_EQ(b_.counter(Counter::bad_commands), 3U);
  EXPECT_EQ(a_.counter(Counter::rx_drop_bad_status), 0U);
}

TEST_F(Lane, WhatControlWritesOverThePortsDataChangesNothing) {
  const auto data = make_source(500'000);
  for (Side* side : {&a_, &b_}) side->board().port = {};
  open_flows(crc_, 8192);
  transfer(data.size(), {}, true);
  expect_identical(data);
  a_.command({.kind = board::CommandKind::kPartition,
              .flow = kTxSlot,
              .offset = ~uint64_t{0} << 16,
              .length = 2 * kExtentBytes});
  a_.step(now_ns_);
  EXPECT_EQ(a_.counter(Counter::bad_commands), 1U) << "a range that runs over";
}

TEST_F(Lane, AStrangersDatagramsChangeNothing) {
  const auto data = make_source(300'000);
  open_flows(crc_, 8192);
  transfer(data.size(), {}, true);
  // The last data frame again, but from another UDP port.
  net::FrameTemplate t;
  Frame frame(14 + 20 + 8 + wire::kHeaderBytes);
  net::Address from;
  net::Address to;
  std::memcpy(from.bytes, a_.port.info().ip4, 16);
  std::memcpy(to.bytes, b_.port.info().ip4, 16);
  t = net::FrameTemplate(from, 4711, to, 47000);
  t.write(frame.data(), wire::kHeaderBytes);
  wire::encode({.type = wire::Type::kProbe, .flow_id = 0xABCDEF0000000000ULL | kRxSlot, .tx_seq = 1ULL << 40},
               std::span<uint8_t, wire::kHeaderBytes>(frame.data() + 42, wire::kHeaderBytes));
  b_.port.frames().arrived.push_back(frame);
  const uint64_t before = b_.counter(Counter::rx_drop_unknown_flow);
  b_.step(now_ns_);
  EXPECT_EQ(b_.counter(Counter::rx_drop_unknown_flow), before + 1);
  EXPECT_LT(b_.board().flows[kRxSlot].state.probe_end, 1ULL << 40);
}

// A data frame as `a` sends it on a flow of any configuration.
Frame data_frame(Side& from, Side& to, uint64_t flow_id, uint16_t port, wire::CrcKind kind, uint64_t offset,
                 uint32_t bytes) {
  const net::Address source = net::Address::of(from.port.info().ip4);
  const net::FrameTemplate front(source, port, net::Address::of(to.port.info().ip4), port);
  Frame frame(front.bytes() + wire::kHeaderBytes + bytes);
  front.write(frame.data(), static_cast<uint32_t>(wire::kHeaderBytes + bytes));
  uint8_t* const header = frame.data() + front.bytes();
  const std::vector<uint8_t> payload(bytes, 0x77);
  Tap().seal(kind).seal({.flow_id = flow_id, .offset = offset, .length = bytes}, payload,
                        std::span<uint8_t, wire::kHeaderBytes>(header, wire::kHeaderBytes),
                        header + wire::kHeaderBytes);
  return frame;
}

// Its map and digest know the chunks of the flow that opened it, and no others.
TEST_F(Lane, ChunksOfAnotherSizeOrKindDoNotGoIntoAnOpenExtent) {
  make_source(2 * kExtentBytes);
  open_flows(crc_, 8192);
  run_steps(5);
  auto& arrived = b_.port.frames().arrived;
  const auto drops = [&] { return b_.counter(Counter::rx_drop_out_of_range); };
  const uint64_t flow_id = b_.board().flows[kRxSlot].config.flow_id;
  arrived.push_back(data_frame(a_, b_, flow_id, 47000, crc_, 0, 8192));
  b_.step(now_ns_);
  ASSERT_EQ(b_.board().flows[kRxSlot].state.chunks, 1U);
  for (const auto& [slot, chunk_bytes, kind] :
       {std::tuple{8U, 512U, crc_}, {9U, 8192U, wire::CrcKind::kCrc32c}, {10U, 8192U, crc_}}) {
    board::FlowConfig c = b_.board().flows[kRxSlot].config;
    c.flow_id = (flow_id & ~0xFFFFULL) | slot;
    c.chunk_bytes = chunk_bytes;
    c.crc_kind = static_cast<uint8_t>(kind);
    c.local_port = c.peer_port = static_cast<uint16_t>(47000 + slot);
    b_.board().flows[slot].config = c;
    b_.give_keys(slot, c.tag);
    b_.command({.kind = board::CommandKind::kOpenFlow, .flow = slot, .tag = c.tag});
    b_.step(now_ns_);
    const uint64_t before = drops();
    const uint64_t offset = kExtentBytes - chunk_bytes;
    arrived.push_back(data_frame(a_, b_, c.flow_id, c.local_port, kind, offset, chunk_bytes));
    b_.step(now_ns_);
    const bool alike = slot == 10;
    EXPECT_EQ(drops(), before + (alike ? 0 : 1)) << slot;
    EXPECT_EQ(b_.board().flows[slot].state.chunks, alike ? 1U : 0U) << slot;
  }
  expect_counters_add_up(b_);
}

// A gap report of what was sent before the object was closed and opened again, shorter.
TEST_F(Lane, ALostChunkOfALongerLifeOfTheObjectIsNotSentFromBehindItsEnd) {
  const auto data = make_source(kExtentBytes);
  open_flows(crc_, 8192);
  transfer(data.size(), {}, false);
  run_steps(100);
  ASSERT_EQ(a_.objects.find(0, 0)->extents_in_use.load(), 0U);
  const UniqueFd file(::dup(a_.objects.find(0, 0)->fd.get()));
  a_.objects.retract(0, 0);
  a_.open_object(::dup(file.get()), 10'000, 0);
  a_.command({.kind = board::CommandKind::kPartition, .flow = kTxSlot, .length = 10'000});
  b_.objects.retract(0, 0);  // so that it is never complete there
  run_steps(20);
  ASSERT_EQ(a_.objects.find(0, 0)->extents_in_use.load(), 1U);
  const uint64_t before = a_.board().flows[kTxSlot].state.retransmitted_chunks;
  ASSERT_TRUE(b_.board().flows[kRxSlot].gaps.push({0, 8}));  // all chunks of the first life
  run_steps(200);
  EXPECT_EQ(a_.board().flows[kTxSlot].state.retransmitted_chunks, before + 1) << "what both lives have";
}

}  // namespace
}  // namespace sluice::lane::testing
