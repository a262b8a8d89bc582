// SPDX-License-Identifier: Apache-2.0
#include "control/board/figures.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <memory>

#include "dataplane/base/time_for_test.h"

namespace sluice::board {
namespace {

TEST(RateMeter, CountsTheLastSecondOnly) {
  RateMeter meter;
  EXPECT_EQ(meter.rate_bps(), std::nullopt);
  uint64_t bytes = 0;
  uint64_t now_ns = 5'000 * kMs;
  for (int i = 0; i < 50; ++i) meter.sample(bytes += 1'000'000, now_ns += 100 * kMs);
  EXPECT_NEAR(*meter.rate_bps(), 80e6, 1e6);
  for (int i = 0; i < 11; ++i) meter.sample(bytes, now_ns += 100 * kMs);
  EXPECT_EQ(meter.rate_bps(), 0);
}

TEST(RateMeter, SaysNothingBeforeThereIsAFigureAndZeroAfterASecondWithoutBytes) {
  RateMeter meter;
  uint64_t now_ns = 5'000 * kMs;
  for (int i = 0; i < 10; ++i, now_ns += 100 * kMs) {
    meter.sample(7'000'000, now_ns);
    EXPECT_EQ(meter.rate_bps(), std::nullopt) << "what was there before has no rate";
  }
  meter.sample(7'000'000, now_ns);
  EXPECT_EQ(meter.rate_bps(), 0);
  RateMeter moves;
  moves.sample(7'000'000, now_ns);
  moves.sample(8'000'000, now_ns + 100 * kMs);
  EXPECT_NEAR(*moves.rate_bps(), 80e6, 1);
}

TEST(SenderWait, NamesWhatHoldsTheSenderUp) {
  FlowFigures before;
  FlowFigures now;
  now.last_peer_ns = 10'000 * kMs;
  EXPECT_EQ(sender_wait(before, now, 100 * kMs, 10'000 * kMs), "");
  now.blocked.credit_ns = 60 * kMs;
  EXPECT_EQ(sender_wait(before, now, 100 * kMs, 10'000 * kMs), "peer's disk (credit)");
  now.blocked.source_ns = 90 * kMs;
  EXPECT_EQ(sender_wait(before, now, 100 * kMs, 10'000 * kMs), "source disk");
  EXPECT_EQ(sender_wait(before, now, 100 * kMs, 10'600 * kMs), "network (no status from peer)");
}

TEST(SenderWait, NamesTheMemoryThatALongPathLacks) {
  FlowFigures before;
  FlowFigures now;
  now.last_peer_ns = 10'000 * kMs;
  now.blocked.credit_ns = 80 * kMs;
  now.credit_extents = 1016;
  now.extents.done = 1000;
  now.extents.wanted = 32;
  EXPECT_EQ(sender_wait(before, now, 100 * kMs, 10'000 * kMs), "peer's disk (credit)");
  now.extents.wanted = 476;
  EXPECT_EQ(
      sender_wait(before, now, 100 * kMs, 10'000 * kMs),
      "peer's memory (credit for 16 of 476 extents that the path takes: raise [dataplane] memory_mib there)");
  now.blocked.memory_ns = 90 * kMs;
  now.opened_extents = 1030;
  EXPECT_EQ(sender_wait(before, now, 100 * kMs, 10'000 * kMs),
            "this node's memory (buffers for 30 of 476 extents that the path takes: raise [dataplane] "
            "memory_mib here)");
  now.opened_extents = 1400;
  EXPECT_EQ(sender_wait(before, now, 100 * kMs, 10'000 * kMs), "peer's disk (credit)");
}

TEST(SenderWait, NamesTheMemoryThatOtherSessionsHold) {
  FlowFigures before;
  FlowFigures now;
  now.last_peer_ns = 10'000 * kMs;
  now.blocked.memory_ns = 80 * kMs;
  now.credit_extents = 3;
  now.extents.wanted = 1;
  EXPECT_EQ(sender_wait(before, now, 100 * kMs, 10'000 * kMs),
            "this node's memory (other sessions hold all buffers: raise [dataplane] memory_mib here)");
}

TEST(SenderWait, NamesTheNeighbourThatDoesNotAnswer) {
  const auto states = std::make_unique<FlowState[]>(2);
  FlowFigures before;
  const auto wait = [&](uint64_t now_ns) {
    FlowFigures now;
    for (int i = 0; i < 2; ++i) now.add(states[i]);
    return sender_wait(before, now, 100 * kMs, now_ns);
  };
  const auto set = [&](const char* ip) {
    uint64_t halves[2] = {};
    inet_pton(AF_INET6, ip, halves);
    for (int i = 0; i < 2; ++i) states[1].next_hop[i] = halves[i];
  };
  states[1].unreachable_since_ns = 1000 * kMs;
  set("::ffff:10.0.0.2");
  EXPECT_EQ(wait(1100 * kMs), "") << "it may just begin";
  EXPECT_EQ(wait(1600 * kMs), "network (neighbour 10.0.0.2 does not answer ARP)");
  set("fd77::2");
  EXPECT_EQ(wait(1600 * kMs), "network (neighbour fd77::2 does not answer neighbour discovery)");
  set("::");
  EXPECT_EQ(
      wait(1600 * kMs),
      "network (no route to the peer: set [port] gateway4 or gateway6; with sockets, the host's routes)");
  states[1].unreachable_since_ns = 0;
  EXPECT_EQ(wait(1600 * kMs), "");
}

TEST(Report, CarriesWhatTheNewestStatusOfEachLaneSaid) {
  const auto states = std::make_unique<FlowState[]>(3);
  states[0].peer_bytes_received = 1000;
  states[0].delay_min_ns = -700;  // clocks of two machines
  states[0].delay_max_ns = -500;
  states[1].peer_bytes_received = 200;
  states[1].delay_min_ns = -900;
  states[1].delay_max_ns = -600;
  states[1].credit_extents = 7;
  FlowFigures figures;
  for (int i = 0; i < 3; ++i) figures.add(states[i]);  // the last has heard nothing yet
  const rate::PathReport report = figures.report();
  EXPECT_EQ(report.bytes_received, 1200U);
  EXPECT_EQ(report.credit_extents, 7U);
  EXPECT_TRUE(report.delay_known);
  EXPECT_EQ(report.delay_min_ns, -900);
  EXPECT_EQ(report.delay_spread_ns, 300U);
  EXPECT_FALSE(FlowFigures().report().delay_known);
}

TEST(DigestHex, HasTheWidthOfItsKind) {
  EXPECT_EQ(digest_hex(wire::CrcKind::kCrc64Ecma, 0x12), "0000000000000012");
  EXPECT_EQ(digest_hex(wire::CrcKind::kCrc32c, 0xabc), "00000abc");
  EXPECT_EQ(digest_hex(wire::CrcKind::kNone, 0), "");
}

}  // namespace
}  // namespace sluice::board
