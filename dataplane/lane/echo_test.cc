// Echoes: they come back as they came to the peer, and what was damaged on the way is told byte by byte.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <set>

#include "dataplane/core/echo_run.h"
#include "dataplane/lane/lane_fixture_for_test.h"

namespace sluice::lane::testing {
namespace {

constexpr size_t kPayloadAt = 14 + 20 + 8 + wire::kHeaderBytes;  // in a frame
constexpr size_t kTypeAt = 14 + 20 + 8 + 1;
constexpr size_t kUdpChecksumAt = 14 + 20 + 6;

class Echo : public Lane {
 protected:
  void open_with(uint32_t echoes, uint16_t bytes, uint32_t reflected_at_most = wire::kEchoesMax) {
    open_flows(wire::CrcKind::kCrc64Ecma, 1200);
    a_.board().flows[kTxSlot].config.echoes = echoes;
    a_.board().flows[kTxSlot].config.echo_bytes = bytes;
    b_.board().flows[kRxSlot].config.echoes = reflected_at_most;
  }
  static bool is_echo(const Frame& frame) {
    return frame.size() > kPayloadAt && frame[kTypeAt] == static_cast<uint8_t>(wire::Type::kEcho);
  }
  void run(int steps = 1000) {
    for (int i = 0; i < steps; ++i) {
      step_alone();
      board::Event e;
      while (a_.board().workers[0].events.pop(&e)) {
        if (e.kind == board::EventKind::kEchoFault) faults_.push_back(e);
        if (e.kind == board::EventKind::kPartitionSent) data_left_ = true;
      }
    }
  }
  // Until none is awaited any more.
  void run_to_the_end() {
    for (int i = 0; i < 2000 && state().echoes_over == 0; ++i) run(100);
    EXPECT_EQ(state().echoes_over, 1U);
  }
  board::FlowState& state() { return a_.board().flows[kTxSlot].state; }
  board::FlowState& peer() { return b_.board().flows[kRxSlot].state; }

  std::vector<board::Event> faults_;
  bool data_left_ = false;
};

TEST_F(Echo, AllComeBackAsTheyLeft) {
  open_with(300, 1111);
  uint64_t seen = 0;
  on_the_way = [&](Frame& frame, bool) {
    if (!is_echo(frame)) return true;
    ++seen;
    EXPECT_EQ(frame.size(), kPayloadAt + 1111);
    EXPECT_EQ(frame[kUdpChecksumAt] | frame[kUdpChecksumAt + 1], 0) << "no UDP checksum";
    return true;
  };
  run_to_the_end();
  EXPECT_EQ(seen, 600U) << "one for one";
  EXPECT_EQ(state().echoes, 300U);
  EXPECT_EQ(state().echoes_came, 300U);
  EXPECT_EQ(state().echoes_wrong + state().echo_bytes_wrong + state().echo_copies, 0U);
  EXPECT_EQ(peer().echoes, 300U);
  EXPECT_EQ(a_.counter(Counter::rx_echoes), 300U);
  EXPECT_EQ(b_.counter(Counter::rx_echoes), 300U);
  EXPECT_TRUE(faults_.empty());
  expect_counters_add_up(a_);
  expect_counters_add_up(b_);
}

TEST_F(Echo, WhatIsDamagedThereOrBackIsToldByItsPlace) {
  open_with(10, 100);
  std::map<bool, uint64_t> seen;
  on_the_way = [&](Frame& frame, bool from_a) {
    if (!is_echo(frame)) return true;
    const uint64_t number = seen[from_a]++;
    if (from_a && number == 3) frame[kPayloadAt + 42] ^= 0x10;
    if (!from_a && number == 6) frame[kPayloadAt + 98] ^= 0xFF, frame[kPayloadAt + 99] ^= 0xFF;
    return true;
  };
  run_to_the_end();
  EXPECT_EQ(state().echoes_came, 10U);
  EXPECT_EQ(state().echoes_wrong, 2U);
  EXPECT_EQ(state().echo_bytes_wrong, 3U);
  ASSERT_EQ(faults_.size(), 2U);
  EXPECT_EQ(faults_[0].object, 3U);
  EXPECT_EQ(faults_[0].offset, 40U);
  EXPECT_EQ(faults_[0].length, 8U);
  EXPECT_EQ(faults_[0].digest ^ faults_[0].value, uint64_t{0x10} << 16) << "the third of these bytes";
  EXPECT_EQ(faults_[0].digest, UINT64_MAX) << "the fourth is all ones";
  EXPECT_EQ(faults_[1].object, 6U);
  EXPECT_EQ(faults_[1].offset, 96U);
  EXPECT_EQ(faults_[1].length, 4U);
  EXPECT_EQ(faults_[1].digest ^ faults_[1].value, 0xFFFF0000U);
}

// A header that was damaged proves nothing: it is dropped, and the echo is missed.
TEST_F(Echo, ADamagedHeaderIsALoss) {
  open_with(72 - 56 + 40, 64);
  uint64_t seen = 0;
  on_the_way = [&](Frame& frame, bool from_a) {
    if (is_echo(frame) && from_a) frame[14 + 20 + 8 + 16 + seen++] ^= 0x01;
    return true;
  };
  run_to_the_end();
  EXPECT_EQ(state().echoes, 56U);
  EXPECT_EQ(state().echoes_came, 0U);
  EXPECT_EQ(b_.counter(Counter::rx_echoes), 0U);
  EXPECT_EQ(b_.counter(Counter::rx_drop_udp_checksum), 0U);
  EXPECT_GT(b_.counter(Counter::rx_drop_forged), 20U);
  expect_counters_add_up(b_);
}

TEST_F(Echo, WhatIsLostIsNotWaitedForForEver) {
  open_with(50, 64);
  uint64_t seen = 0;
  on_the_way = [&](Frame& frame, bool from_a) { return !is_echo(frame) || !from_a || seen++ % 5 != 0; };
  run_to_the_end();
  EXPECT_EQ(state().echoes, 50U);
  EXPECT_EQ(state().echoes_came, 40U);
}

TEST_F(Echo, CopiesAreReflectedOnceAndCountedOnTheWayBack) {
  open_with(20, 64);
  on_the_way = [&](Frame& frame, bool from_a) {
    if (is_echo(frame)) (from_a ? b_ : a_).port.frames().arrived.push_back(frame);
    return true;
  };
  run_to_the_end();
  run(10);
  EXPECT_EQ(peer().echoes, 20U);
  EXPECT_EQ(b_.counter(Counter::rx_drop_replayed), 20U);
  EXPECT_EQ(state().echoes_came, 20U);
  EXPECT_EQ(state().echo_copies, 20U);
}

TEST_F(Echo, DataWaitUntilNoneIsAwaited) {
  const auto data = make_source(2 * kExtentBytes);
  open_with(200, 1000);
  a_.board().flows[kTxSlot].control.rate_bps = 100'000'000;
  feed();
  bool early = false;
  uint64_t seen = 0;
  on_the_way = [&](Frame& frame, bool from_a) {
    if (frame.size() > kPayloadAt && frame[kTypeAt] == static_cast<uint8_t>(wire::Type::kData))
      early |= state().echoes_over == 0;
    return !is_echo(frame) || !from_a || seen++ != 50;  // one is waited for, and never comes
  };
  const uint64_t begin_ns = now_ns_;
  run_to_the_end();
  EXPECT_GT(now_ns_ - begin_ns, 10'000'000 + EchoRun::kWaitNs) << "200 of 1 KB at 100 Mbit/s, and the wait";
  EXPECT_EQ(state().echoes_came, 199U);
  for (int i = 0; i < 100 && !data_left_; ++i) run(100);
  EXPECT_TRUE(data_left_);
  EXPECT_FALSE(early);
}

TEST_F(Echo, AFlowThatHasNoneReflectsNone) {
  open_with(20, 64, 0);
  run_to_the_end();
  EXPECT_EQ(state().echoes_came, 0U);
  EXPECT_EQ(b_.counter(Counter::rx_drop_echo), 20U);
  EXPECT_EQ(b_.counter(Counter::rx_echoes), 0U);
  expect_counters_add_up(b_);
}

TEST_F(Echo, NoMoreAreReflectedThanWereAgreedUpon) {
  open_with(20, 64, 7);
  run_to_the_end();
  EXPECT_EQ(state().echoes_came, 7U);
  EXPECT_EQ(b_.counter(Counter::rx_drop_echo), 13U);
}

// The peer lies, or somebody has its keys.
TEST_F(Echo, ReflectionsOfWhatWasNeverSentAreDropped) {
  open_with(4, 64);
  std::optional<Frame> last;
  on_the_way = [&](Frame& frame, bool from_a) {
    if (!from_a && is_echo(frame)) last = frame;
    return true;
  };
  run_to_the_end();
  ASSERT_TRUE(last);
  // From b: datagrams that are right in all but what they reflect.
  const uint64_t dropped = a_.counter(Counter::rx_drop_echo);
  seal::FlowKeys keys(wire::Protection::kCrc, kFlowSecret, seal::KeyChain::kEpochBits,
                      seal::best_gcm_engine(), true);
  const auto scratch = std::make_unique<seal::Scratch>();
  seal::FlowSeal seal(wire::CrcKind::kCrc64Ecma, wire::Protection::kCrc, keys, *scratch);
  const auto forge = [&](uint64_t number, uint32_t bytes) {
    const std::vector<uint8_t> payload(bytes, 1);
    Frame frame(last->begin(), last->begin() + kPayloadAt - wire::kHeaderBytes);
    frame.resize(kPayloadAt + bytes);
    seal.seal(
        {.type = wire::Type::kEcho,
         .flags = wire::kFlagReflected,
         .flow_id = a_.board().flows[kTxSlot].config.flow_id,
         .tx_seq = number,
         .length = bytes},
        payload,
        std::span<uint8_t, wire::kHeaderBytes>(&frame[kPayloadAt - wire::kHeaderBytes], wire::kHeaderBytes),
        &frame[kPayloadAt]);
    wire::store_be16(&frame[14 + 20 + 4], static_cast<uint16_t>(8 + wire::kHeaderBytes + bytes));
    wire::store_be16(&frame[14 + 2], static_cast<uint16_t>(20 + 8 + wire::kHeaderBytes + bytes));
    wire::store_be16(&frame[kUdpChecksumAt], 0);
    wire::store_be16(&frame[14 + 10], 0);
    uint32_t sum = 0;
    for (size_t at = 14; at < 34; at += 2) sum += wire::load_be16(&frame[at]);
    while (sum > 0xFFFF) sum = (sum & 0xFFFF) + (sum >> 16);
    wire::store_be16(&frame[14 + 10], static_cast<uint16_t>(~sum));
    a_.port.frames().arrived.push_back(frame);
  };
  forge(4, 64);
  forge(wire::kEchoesMax, 64);
  forge(2, 63);
  run(2);
  EXPECT_EQ(a_.counter(Counter::rx_drop_echo), dropped + 3);
  EXPECT_EQ(a_.counter(Counter::rx_drop_malformed_ip), 0U);
  forge(2, 64);
  run(2);
  EXPECT_EQ(state().echo_copies, 1U) << "right, and here before";
  expect_counters_add_up(a_);
}

TEST_F(Echo, AFlowOfMoreOrLongerOnesThanCanBeDoesNotOpen) {
  open_with(wire::kEchoesMax + 1, 64);
  run(10);
  EXPECT_EQ(a_.counter(Counter::bad_commands), 1U);
  open_with(1, 1204);
  run(10);
  EXPECT_EQ(a_.counter(Counter::bad_commands), 2U);
  open_with(1, 0);
  run(10);
  EXPECT_EQ(a_.counter(Counter::bad_commands), 3U);
}

TEST_F(Echo, FaultsBeyondMeasureAreCountedAndNotTold) {
  open_with(600, 1200);
  on_the_way = [&](Frame& frame, bool from_a) {
    if (is_echo(frame) && from_a)
      for (size_t at = kPayloadAt; at < frame.size(); at += 8) frame[at] ^= 0x80;
    return true;
  };
  run_to_the_end();
  EXPECT_EQ(state().echoes_wrong, 600U);
  EXPECT_EQ(state().echo_bytes_wrong, 600U * 150);
  EXPECT_EQ(faults_.size(), 4096U);
  EXPECT_EQ(a_.counter(Counter::event_ring_full), 0U);
}

}  // namespace
}  // namespace sluice::lane::testing
