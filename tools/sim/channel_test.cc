// HIPSTER's channel (docs/SOURCES.md, section 3) in virtual time: most datagrams are lost, the others late by
// an exponential time, in both directions.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>

#include "tools/sim/world.h"

namespace sluice::sim {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

Plan hipster(uint64_t bytes, rate::Mode mode, uint64_t rate_bps) {
  Plan p;
  p.sizes = {bytes};
  p.extent_bytes = 1U << 20;
  p.partition_bytes = 16U << 20;
  p.chunk_bytes = 936;
  p.tx_extents = p.rx_extents = 160;
  p.credit = 32;
  p.rate_bps = rate_bps;
  p.rate_mode = mode;
  p.expected_loss_ppm = 650'000;
  for (emulator::Settings& path : p.path) {
    path.loss.length_l0_bytes = 1024;
    path.delay.exponential_us_over_ln = 1'024'000;
  }
  p.sync_lag_bytes = 64U << 20;
  p.stall_timeout_ns = 60 * kSecond;
  p.safety_ns = 600 * kSecond;
  return p;
}

double mb_per_s(const Outcome& out) {
  return static_cast<double>(out.bytes) / 1e6 / (static_cast<double>(out.virtual_ns) * 1e-9);
}

// As fast as its authors' own protocol (its Table 1), at a rate of 1 Gbit/s.
TEST(HipsterChannel, IsCrossed) {
  const std::map<uint64_t, double> table_mb_per_s{{1, 1.56}, {10, 4.07}, {50, 6.7}};
  for (const auto& [mb, least] : table_mb_per_s) {
    const Outcome out = World(hipster(mb * 1'000'000, rate::Mode::kFixed, 1'000'000'000)).run();
    EXPECT_EQ(out.failure, "");
    EXPECT_EQ(out.end, End::kDone);
    EXPECT_GE(mb_per_s(out), least) << mb << " MB";
  }
}

// Delays that are disordered are no queue.
TEST(HipsterChannel, DoesNotMakeTheAdaptiveLawCrawl) {
  const Outcome fixed = World(hipster(20'000'000, rate::Mode::kFixed, 1'000'000'000)).run();
  const Outcome adaptive = World(hipster(20'000'000, rate::Mode::kAdaptive, 1'000'000'000)).run();
  EXPECT_EQ(adaptive.failure, "");
  EXPECT_GE(mb_per_s(adaptive), 0.5 * mb_per_s(fixed));
}

}  // namespace
}  // namespace sluice::sim
