// When a file's last byte comes over long paths that lose, with repair symbols and without, in virtual time.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "tools/sim/world.h"

namespace sluice::sim {
namespace {

constexpr uint64_t kLinkBps = 1'000'000'000;
constexpr uint64_t kTenMb = 10'000'000;

struct LossyPath {
  uint32_t rtt_ms = 0;
  double loss = 0;
  double run = 1;  // lost one behind the other, on the average
};

Plan plan_over(const LossyPath& path, options::Fec fec, uint64_t seed) {
  constexpr uint64_t kSecondNs = 1'000'000'000;
  Plan p;
  p.seed = seed;
  p.sizes = {kTenMb};
  p.extent_bytes = 1U << 20;
  p.partition_bytes = 16U << 20;
  p.chunk_bytes = 8192;
  p.tx_extents = p.rx_extents = 200;
  p.credit = 32;
  p.rate_bps = 2 * kLinkBps;
  p.rate_mode = rate::Mode::kAdaptive;
  p.fec = fec;
  for (emulator::Settings& way : p.path) {
    way.delay.fixed_us = path.rtt_ms * 500;
    way.delay.keep_order = true;
  }
  emulator::Settings& there = p.path[kSource];
  there.rate.bits_per_s = kLinkBps;
  there.rate.queue_bytes = kLinkBps / 8000 * std::max(path.rtt_ms, 10U);
  if (path.run > 1) {
    there.loss.burst.r = 1 / path.run;
    there.loss.burst.p = path.loss / path.run / (1 - path.loss);
  } else {
    there.loss.probability = path.loss;
  }
  p.sync_lag_bytes = 64U << 20;
  p.stall_timeout_ns = 60 * kSecondNs;
  p.safety_ns = 600 * kSecondNs;
  return p;
}

// The mean time of some files.
double seconds_over(const LossyPath& path, options::Fec fec) {
  constexpr uint64_t kFiles = 8;
  double seconds = 0;
  for (uint64_t seed = 1; seed <= kFiles; ++seed) {
    const Outcome out = World(plan_over(path, fec, seed)).run();
    EXPECT_EQ(out.failure, "");
    EXPECT_EQ(out.end, End::kDone);
    seconds += static_cast<double>(out.virtual_ns) * 1e-9 / kFiles;
  }
  return seconds;
}

// A round trip of it is the repair of what the last round trip lost.
TEST(ParityAtTheEnd, SavesTheRepairOfTheLastRoundTrip) {
  const LossyPath path{.rtt_ms = 200, .loss = 0.01};
  const double off_s = seconds_over(path, options::Fec::kOff);
  const double auto_s = seconds_over(path, options::Fec::kAuto);
  EXPECT_LT(auto_s, off_s - 0.14);
  EXPECT_LT(auto_s, 0.85 * off_s);
}

TEST(ParityAtTheEnd, SavesMoreWhereRepairsAreLostAsWell) {
  const LossyPath path{.rtt_ms = 600, .loss = 0.1};
  EXPECT_LT(seconds_over(path, options::Fec::kAuto), 0.78 * seconds_over(path, options::Fec::kOff));
}

// Nobody has told of a loss when the last datagram leaves: the sender expects one.
TEST(ParityAtTheEnd, IsSentBeforeALossIsKnown) {
  const LossyPath path{.rtt_ms = 600, .loss = 0.001};
  EXPECT_LT(seconds_over(path, options::Fec::kAuto), 0.95 * seconds_over(path, options::Fec::kOff));
}

TEST(ParityAtTheEnd, IsNeverSlowerThanNone) {
  for (const LossyPath& path : {LossyPath{1, 0},
                                {1, 0.01},
                                {1, 0.3},
                                {100, 0},
                                {100, 0.05},
                                {200, 0.01, 8},
                                {200, 0.3},
                                {600, 0.1, 8}}) {
    const double off_s = seconds_over(path, options::Fec::kOff);
    EXPECT_LE(seconds_over(path, options::Fec::kAuto), 1.02 * off_s)
        << path.rtt_ms << " ms, loss " << path.loss << ", runs of " << path.run;
  }
}

}  // namespace
}  // namespace sluice::sim
