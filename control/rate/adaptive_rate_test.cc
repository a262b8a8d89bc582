// The law against packets: one bottleneck, virtual time. The figures asked for are those of docs/RATE.md,
// with room for chance.
// SPDX-License-Identifier: Apache-2.0
#include "control/rate/adaptive_rate.h"

#include <gtest/gtest.h>

#include "control/rate/dumbbell_for_test.h"

namespace sluice::rate {
namespace {

constexpr double kLineBps = 10e9;  // of the sender's port: far above most bottlenecks here

std::unique_ptr<Controller> law(double start_s = 0, double cap_bps = kLineBps, double expected_loss = 0) {
  return std::make_unique<AdaptiveRate>(static_cast<uint64_t>(cap_bps), expected_loss,
                                        Dumbbell::kStartNs + static_cast<uint64_t>(start_s * 1e9));
}

struct Cell {
  double rtt_s;
  double loss;
};

class AdaptivePath : public testing::TestWithParam<Cell> {};

TEST_P(AdaptivePath, IsFilledWithAShortQueue) {
  const Cell cell = GetParam();
  Dumbbell path({.capacity_bps = 1e9, .buffer_bytes = 125e6 * std::max(0.02, cell.rtt_s), .loss = cell.loss});
  path.add(law(), cell.rtt_s);
  path.run(cell.rtt_s > 0.05 ? 10 : 5);
  path.reset();
  path.run(path.now_s + 30);
  EXPECT_GT(path.utilisation(), 0.95);
  EXPECT_LT(path.overdrive(), 1.02);
  EXPECT_LT(path.queue_quantile(0.5), 6e-3);
}

INSTANTIATE_TEST_SUITE_P(Cells, AdaptivePath,
                         testing::Values(Cell{0.0002, 0}, Cell{0.001, 0.1}, Cell{0.02, 0}, Cell{0.02, 0.001},
                                         Cell{0.02, 0.05}, Cell{0.1, 0.01}, Cell{0.1, 0.1}, Cell{0.2, 0},
                                         Cell{0.2, 0.05}, Cell{0.2, 0.1}));

TEST(AdaptiveRate, ReachesTheCapacitySoon) {
  for (const auto& [rtt_s, within_s] : {std::pair(0.02, 0.5), {0.2, 4.0}}) {
    Dumbbell path({.capacity_bps = 1e9, .buffer_bytes = 25e6});
    path.add(law(), rtt_s);
    path.run(within_s - 2 * rtt_s);
    path.reset();
    path.run(within_s);
    EXPECT_GT(path.utilisation(), 0.95) << rtt_s;
  }
}

// Each round trip tells of four times the rate, not of twice: 10 MB are there in two round trips and a
// little, whatever is lost by chance, and 10 Gbit/s are found in five.
TEST(AdaptiveRate, FindsAFastPathWithinAFewRoundTrips) {
  for (const double loss : {0.0, 0.01, 0.1}) {
    Dumbbell path({.capacity_bps = 1e9, .buffer_bytes = 25e6, .loss = loss});
    const auto& flow = path.add(law(), 0.2);
    path.run(2.5 * 0.2);
    EXPECT_GT(flow.delivered_bytes, 10e6) << loss;
  }
  // Over a satellite the first word comes so late that the peer looks silent until then.
  for (const double rtt_s : {0.2, 0.6}) {
    Dumbbell path({.capacity_bps = 10e9, .buffer_bytes = 250e6});
    path.add(law(0, 2 * kLineBps), rtt_s);
    path.run(5.5 * rtt_s);
    path.reset();
    path.run(6.5 * rtt_s);
    EXPECT_GT(path.utilisation(), 0.9) << rtt_s;
  }
}

// What a start asks for beyond what there is, it asks for a few milliseconds only.
TEST(AdaptiveRate, AStartDropsLittle) {
  for (const double capacity_bps : {0.4e9, 0.7e9, 1e9, 1.5e9, 3e9, 10e9}) {
    for (const double buffer_of_bdp : {0.1, 1.0}) {
      const double bdp_bytes = capacity_bps / 8 * 0.1;
      Dumbbell path({.capacity_bps = capacity_bps, .buffer_bytes = buffer_of_bdp * bdp_bytes});
      const auto& flow = path.add(law(0, 2 * kLineBps), 0.1);
      path.run(2);
      EXPECT_LT(flow.dropped_bytes, 0.35 * bdp_bytes) << capacity_bps << ", " << buffer_of_bdp;
    }
  }
}

// Where the path carries less than the first rate, the first pulse says so: what is dropped left before its
// first datagrams were reported, a round trip later.
TEST(AdaptiveRate, AStartOnASlowPathDropsARoundTripOfTheFirstRate) {
  constexpr double kFirstBps = 131e6;
  for (const double capacity_bps : {12e6, 50e6, 100e6}) {
    for (const double rtt_s : {0.02, 0.1, 0.2}) {
      for (const double buffer_of_bdp : {0.2, 1.0}) {
        const double bdp_bytes = capacity_bps / 8 * rtt_s;
        Dumbbell path({.capacity_bps = capacity_bps,
                       .buffer_bytes = std::max(5 * Dumbbell::kDatagramBytes, buffer_of_bdp * bdp_bytes)});
        const auto& flow = path.add(law(), rtt_s);
        path.run(1);
        EXPECT_LT(flow.dropped_bytes, kFirstBps / 8 * (1.1 * rtt_s + 0.1))
            << capacity_bps << ", " << rtt_s << " s, " << buffer_of_bdp;
      }
    }
  }
}

// From now on until the first of two windows in a row in which nearly all that the link carries came through
// it, with a short queue: in round trips.
double round_trips_to_settle(Dumbbell& path, double rtt_s) {
  const double window_s = std::max(rtt_s, 0.02);
  const double step_s = path.now_s;
  for (bool before = false; path.now_s < step_s + 30 * rtt_s;) {
    const double at_s = path.now_s;
    path.reset();
    path.run(at_s + window_s);
    const bool settled = path.utilisation() >= 0.9 && path.queue_quantile(0.5) <= 0.01 + 0.05 * rtt_s;
    if (settled && before) return (at_s - window_s - step_s) / rtt_s;
    before = settled;
  }
  return 30;
}

TEST(AdaptiveRate, TakesWhatComesBackAfterAStep) {
  for (const double capacity_bps : {1e9, 10e9}) {
    for (const double rtt_s : {0.02, 0.1, 0.2}) {
      for (const double begin_s : {12.0, 12.4, 12.8}) {
        Dumbbell path({.capacity_bps = capacity_bps, .buffer_bytes = capacity_bps / 8 * rtt_s});
        path.add(law(0, 20e9), rtt_s);
        path.run(begin_s);
        path.link.capacity_bps = capacity_bps / 2;
        EXPECT_LT(round_trips_to_settle(path, rtt_s), 19) << "the half of it, RTT " << rtt_s;
        path.run(begin_s + std::max(3.0, 30 * rtt_s));
        path.link.capacity_bps = capacity_bps;
        EXPECT_LT(round_trips_to_settle(path, rtt_s), 20) << "all of it, RTT " << rtt_s;
      }
    }
  }
}

TEST(AdaptiveRate, SharesWithItsLike) {
  for (const auto& [flows, jain] : {std::pair(2, 0.97), {4, 0.95}, {8, 0.95}}) {
    Dumbbell path({.capacity_bps = 1e9, .buffer_bytes = 12.5e6});
    for (int i = 0; i < flows; ++i) path.add(law(3.0 * i), 0.02, 3.0 * i);
    path.run(50);
    path.reset();
    path.run(90);
    EXPECT_GT(path.jain(), jain) << flows;
    EXPECT_GT(path.utilisation(), 0.95) << flows;
  }
}

// Of a thousand starts of each cell (perf/laws/starts.cc) the worst there ever were: what chance lost at the
// beginning was taken for a full path.
TEST(AdaptiveRate, WhatChanceLosesAtTheStartIsNotTakenForAFullPath) {
  struct Start {
    double rtt_s;
    double loss;
    double buffer_of_bdp;
    uint64_t seed;
  };
  for (const Start& start :
       {Start{0.2, 0.01, 1, 90}, Start{0.1, 0.01, 0.5, 90}, Start{0.2, 0.1, 1, 20}, Start{0.1, 0.05, 1, 125},
        Start{0.001, 0.1, 0.5, 4}, Start{0.001, 0.1, 0.1, 34}, Start{0.001, 0.1, 0.1, 542},
        Start{0.001, 0.1, 0.5, 606}, Start{0.001, 0.1, 1, 255}}) {
    const double bdp_bytes = 125e6 * start.rtt_s;
    Dumbbell path({.capacity_bps = 1e9,
                   .buffer_bytes = std::max(5 * Dumbbell::kDatagramBytes, start.buffer_of_bdp * bdp_bytes),
                   .loss = start.loss},
                  start.seed);
    path.add(law(), start.rtt_s);
    path.run(5);
    path.reset();
    path.run(8);
    EXPECT_GT(path.utilisation(), 0.75)
        << start.rtt_s << " s, loss " << start.loss << ", seed " << start.seed;
  }
}

TEST(AdaptiveRate, SharesBetweenShortAndLongPaths) {
  Dumbbell path({.capacity_bps = 1e9, .buffer_bytes = 12.5e6});
  path.add(law(), 0.02);
  path.add(law(5), 0.1, 5);
  path.run(60);
  path.reset();
  path.run(140);
  EXPECT_GT(path.jain(), 0.85);
}

TEST(AdaptiveRate, OverdrivesNeitherAShortQueueNorAPolicer) {
  for (const double buffer_s : {0.0, 0.0002, 0.001}) {
    for (const int flows : {1, 2, 4}) {
      for (const double loss : {0.0, 0.01, 0.05}) {
        Link link{.capacity_bps = 1e9, .buffer_bytes = 125e6 * buffer_s, .loss = loss};
        if (buffer_s == 0)
          link = {.capacity_bps = kLineBps, .buffer_bytes = 1e9, .loss = loss, .policer_bps = 1e9};
        Dumbbell path(link);
        for (int i = 0; i < flows; ++i) path.add(law(3.0 * i), 0.02, 3.0 * i);
        path.run(30);
        path.reset();
        path.run(60);
        EXPECT_LT(path.overdrive(), 1.1) << buffer_s << " s, " << flows << " flows, loss " << loss;
        EXPECT_GT(path.utilisation(), 0.85) << buffer_s << " s, " << flows << " flows, loss " << loss;
      }
    }
  }
}

TEST(AdaptiveRate, YieldsToATcpAndSaysSo) {
  for (const double bdp : {1.0, 4.0}) {
    Dumbbell path({.capacity_bps = 1e9, .buffer_bytes = 125e6 * 0.02 * bdp});
    path.tick_s = 2.5e-4;
    const auto& flow = path.add(law(5), 0.02, 5);
    path.add(nullptr, 0.02);
    path.run(30);
    path.reset();
    bool said = false;
    path.run(60, [&](double) { said |= flow.controller->condition() == Condition::kYieldingToOthers; });
    EXPECT_GT(path.utilisation() * path.share(1), 0.8) << bdp;
    EXPECT_TRUE(said) << bdp;
  }
}

// Random loss begins when the law has settled; of the path, what it takes once a trial is over.
double after_loss_begins(Link link, double loss, uint64_t settled_s, uint64_t trial_s, uint64_t end_s) {
  link.buffer_bytes = link.capacity_bps / 8 * 0.02;
  Dumbbell path(link);
  path.add(law(0, 20e9), 0.02);
  path.run(static_cast<double>(settled_s));
  path.link.loss = loss;
  path.run(static_cast<double>(settled_s + trial_s));
  path.reset();
  path.run(static_cast<double>(end_s));
  return path.utilisation();
}

// What was not lost before says nothing of the loss that was learnt.
TEST(AdaptiveRate, GoesOnAtItsRateWhenRandomLossBegins) {
  for (const double capacity_bps : {1e9, 10e9}) {
    for (const double loss : {0.02, 0.1}) {
      EXPECT_GT(after_loss_begins({.capacity_bps = capacity_bps}, loss, 12, 1, 22), 0.95)
          << capacity_bps << " bit/s, loss " << loss;
    }
  }
}

// A little loss and jitter are no short buffer.
TEST(AdaptiveRate, IsNotMisledByLittleLossThatBeginsLate) {
  for (const double capacity_bps : {1e8, 10e9}) {
    for (const double jitter_s : {0.0, 3e-3}) {
      EXPECT_GT(after_loss_begins({.capacity_bps = capacity_bps, .jitter_s = jitter_s}, 0.003, 10, 2, 30),
                0.85)
          << capacity_bps << " bit/s, jitter " << jitter_s;
    }
  }
}

// Nothing of its own would tell: what it queues for itself is all that fits.
TEST(AdaptiveRate, LeavesRoomToATcpWhereTheQueueIsShort) {
  for (const double capacity_bps : {2e8, 1e9}) {
    for (const double buffer_s : {0.001, 0.0025, 0.005}) {
      if (capacity_bps / 8 * buffer_s < 5 * Dumbbell::kDatagramBytes) continue;
      for (const auto& [tcps, begin_s] : {std::pair(1, 5.0), {4, 5.0}, {4, 0.0}}) {
        Dumbbell path({.capacity_bps = capacity_bps, .buffer_bytes = capacity_bps / 8 * buffer_s});
        path.tick_s = 2.5e-4;
        path.add(law(begin_s), 0.02, begin_s);
        for (int i = 0; i < tcps; ++i) path.add(nullptr, 0.02, 5 - begin_s);
        path.run(30);
        path.reset();
        path.run(90);
        const double fair = 1.0 / (1 + tcps);
        const double ours = path.utilisation() * path.share(0);
        const double theirs = (path.utilisation() - ours) / tcps;
        EXPECT_GT(theirs, 0.2 * fair) << capacity_bps << ", " << buffer_s << " s, " << tcps;
        EXPECT_GT(ours, 0.2 * fair) << capacity_bps << ", " << buffer_s << " s, " << tcps;
      }
    }
  }
}

TEST(AdaptiveRate, BearsDriftingClocksJitterAndLostStatuses) {
  const auto reaches = [](const Link& link, double drift) {
    Dumbbell path(link);
    path.add(law(), 0.05).clock_drift = drift;
    path.run(10);
    path.reset();
    path.run(60);
    return path.utilisation();
  };
  EXPECT_GT(reaches({}, 50e-6), 0.95);
  EXPECT_GT(reaches({}, -50e-6), 0.95);
  EXPECT_GT(reaches({.jitter_s = 3e-3}, 0), 0.95);
  EXPECT_GT(reaches({.jitter_s = 10e-3}, 0), 0.9);
  EXPECT_GT(reaches({.loss = 0.01, .status_loss = 0.05}, 0), 0.95);
  EXPECT_GT(reaches({.loss = 0.05, .status_loss = 0.65}, 0), 0.95);
}

TEST(AdaptiveRate, TakesDeclaredLossForThePaths) {
  Dumbbell path({.capacity_bps = 1e8, .buffer_bytes = 2.5e6, .loss = 0.6});
  path.add(law(0, 1e9, 0.6), 0.02);
  path.run(5);
  path.reset();
  path.run(30);
  EXPECT_GT(path.utilisation(), 0.9);
}

TEST(AdaptiveRate, GoesOnSoonAfterASilence) {
  Dumbbell path({});
  auto& flow = path.add(law(), 0.05);
  path.run(5);
  path.link.loss = 1;
  path.link.status_loss = 1;
  path.run(6);
  EXPECT_EQ(flow.controller->condition(), Condition::kCrawling);
  EXPECT_LT(flow.controller->rate_bps(), 20e6);
  path.run(10);
  path.link.loss = 0;
  path.link.status_loss = 0;
  path.run(10 + 5 * 0.05);
  path.reset();
  path.run(12);
  EXPECT_GT(path.utilisation(), 0.9);
}

}  // namespace
}  // namespace sluice::rate
