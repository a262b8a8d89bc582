// How long files take over slow and fast paths, compressed and not, in virtual time.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tools/sim/world.h"

namespace sluice::sim {
namespace {

using options::Compress;
constexpr uint64_t kMbps = 1'000'000;

struct Case {
  uint64_t link_bps = 100 * kMbps;
  bool text = true;
  double loss = 0;
  uint32_t rtt_ms = 20;
};

Plan plan_of(const Case& one, Compress compress, uint64_t seed) {
  constexpr uint64_t kSecondNs = 1'000'000'000;
  Plan p;
  p.seed = seed;
  p.sizes = {20'000'000};
  p.extent_bytes = 1U << 20;
  p.partition_bytes = 16U << 20;
  p.chunk_bytes = 1400;
  p.tx_extents = p.rx_extents = 100;
  p.credit = 32;
  p.rate_bps = 2 * one.link_bps;
  p.rate_mode = rate::Mode::kAdaptive;
  p.compress = compress;
  p.compressible = one.text;
  for (emulator::Settings& way : p.path) {
    way.delay.fixed_us = one.rtt_ms * 500;
    way.delay.keep_order = true;
  }
  emulator::Settings& there = p.path[kSource];
  there.rate.bits_per_s = one.link_bps;
  there.rate.queue_bytes = one.link_bps / 8000 * 20;
  there.loss.probability = one.loss;
  p.sync_lag_bytes = 64U << 20;
  p.stall_timeout_ns = 60 * kSecondNs;
  p.safety_ns = 600 * kSecondNs;
  return p;
}

double seconds_of(const Case& one, Compress compress) {
  constexpr uint64_t kFiles = 3;
  double seconds = 0;
  for (uint64_t seed = 1; seed <= kFiles; ++seed) {
    const Outcome out = World(plan_of(one, compress, seed)).run();
    EXPECT_EQ(out.failure, "");
    EXPECT_EQ(out.end, End::kDone);
    seconds += static_cast<double>(out.virtual_ns) * 1e-9 / kFiles;
  }
  return seconds;
}

// Three quarters of it are of two bits a byte: it gets 0.44 as long.
TEST(Compression, WhatGetsShorterIsFasterWhereTheNetworkIsSlow) {
  for (const double loss : {0.0, 0.01}) {
    const Case one{.loss = loss};
    const double off_s = seconds_of(one, Compress::kOff);
    EXPECT_LT(seconds_of(one, Compress::kAuto), 0.62 * off_s) << loss;
    EXPECT_LT(seconds_of(one, Compress::kZstd), 0.62 * off_s) << loss;
  }
}

TEST(Compression, WhatDoesNotGetShorterIsAsFast) {
  for (const uint64_t link_bps : {10 * kMbps, 100 * kMbps, 1000 * kMbps}) {
    const Case one{.link_bps = link_bps, .text = false};
    EXPECT_LE(seconds_of(one, Compress::kAuto), 1.02 * seconds_of(one, Compress::kOff)) << link_bps;
  }
}

}  // namespace
}  // namespace sluice::sim
