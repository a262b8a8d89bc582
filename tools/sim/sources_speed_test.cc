// How long a file from several sources takes, in virtual time, against the best of them alone.
//
// Whole nodes take part: calls, offers, journals, the law of the rate, the last words. The rates are those of
// Table 1 of "Phatpackets" (docs/SOURCES.md; section 2.2).
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <string>

#include "control/parts/planner.h"
#include "tools/sim/world.h"

namespace sluice::sim {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kMegabyte = 1'000'000;
constexpr std::array<uint32_t, 3> kSources = {0, 2, 3};  // nodes
using PerSource = std::array<uint64_t, 3>;

struct Mix {
  const char* name;
  PerSource rtts_ms;
  PerSource rates_mbps{30, 37, 43};
};

// `known`: the destination remembers what each path carries.
Plan plan_of(const Mix& mix, uint64_t megabytes, bool known) {
  Plan plan;
  plan.seed = 3;
  plan.course = Course::kSources;
  plan.sources = 3;
  plan.initiator = kDestination;
  plan.sizes = {megabytes * kMegabyte};
  plan.extent_bytes = 1U << 20;
  plan.chunk_bytes = 8192;
  plan.partition_bytes = 4U << 20;
  plan.tx_extents = 16;
  plan.rx_extents = 48;
  plan.credit = 12;
  plan.rate_bps = 1'000'000'000;
  plan.rate_mode = rate::Mode::kAdaptive;
  plan.status_interval_ns = kMs;
  plan.stream_latency_ns = 0;
  plan.safety_ns = 1'000'000 * kMs;
  plan.several.calm = true;
  for (size_t i = 0; i < kSources.size(); ++i) {
    emulator::Settings& path = plan.path[kSources[i]];
    path.delay.fixed_us = static_cast<double>(mix.rtts_ms[i]) * 500;
    path.rate = {.bits_per_s = mix.rates_mbps[i] * 1'000'000, .queue_bytes = 500'000, .overhead_bytes = 24};
    plan.stream_far_ns[kSources[i]] = mix.rtts_ms[i] * kMs / 2;
    if (known) plan.several.known_bps[kSources[i]] = mix.rates_mbps[i] * 900'000;
  }
  return plan;
}

Plan alone(Plan plan, size_t source) {
  plan.course = Course::kTwoNodes;
  plan.sources = 1;
  plan.path[kSource] = plan.path[kSources[source]];
  plan.stream_far_ns[kSource] = plan.stream_far_ns[kSources[source]];
  plan.several = {};
  return plan;
}

double seconds(const Plan& plan) {
  const Outcome out = World(plan).run();
  EXPECT_EQ(out.failure, "") << out.tail;
  EXPECT_EQ(out.end, End::kDone);
  return static_cast<double>(out.told_ns) * 1e-9;
}

constexpr Mix kTableOne{.name = "80, 80, 80 ms", .rtts_ms = {80, 80, 80}};

std::array<double, 3> each_alone(const Plan& plan) {
  std::array<double, 3> alone_s{};
  for (size_t source = 0; source < kSources.size(); ++source) alone_s[source] = seconds(alone(plan, source));
  return alone_s;
}

// Extents of 1 MiB: the first file has one, which one source brings.
TEST(SourcesSpeed, NeverSlowerThanTheBestAlone) {
  constexpr std::array<Mix, 4> kMixes = {{kTableOne,
                                          {.name = "1, 80, 200 ms", .rtts_ms = {1, 80, 200}},
                                          {.name = "200, 80, 1 ms", .rtts_ms = {200, 80, 1}},
                                          {.name = "20, 20, 20 ms", .rtts_ms = {20, 20, 20}}}};
  for (const Mix& mix : kMixes) {
    for (const uint64_t megabytes : {1, 2, 4, 16}) {
      const Plan plan = plan_of(mix, megabytes, true);
      const std::array<double, 3> alone_s = each_alone(plan);
      const double best_s = *std::ranges::min_element(alone_s);
      const double all_s = seconds(plan);
      const double unknown_s = seconds(plan_of(mix, megabytes, false));
      std::printf("%s, %2lu MB: best alone %.3f s; all %.3f s, x%.3f; no rate known before: %.3f s, x%.3f\n",
                  mix.name, megabytes, best_s, all_s, best_s / all_s, unknown_s, best_s / unknown_s);
      EXPECT_LE(all_s, 1.02 * best_s) << mix.name << ", " << megabytes << " MB";
    }
  }
}

TEST(SourcesSpeed, TheSumOfTheirRates) {
  const Plan plan = plan_of(kTableOne, 64, true);
  double files_per_s = 0;
  for (const double alone_s : each_alone(plan)) files_per_s += 1 / alone_s;
  const double all_s = seconds(plan);
  std::printf("64 MB: %.3f s, %.3f of the sum\n", all_s, 1 / all_s / files_per_s);
  EXPECT_GE(1 / all_s / files_per_s, 0.925) << "a start and an end of half a second are in it";
}

// Against what the others would need for the rest from that moment on, as fast as all together are without
// the event. Of a short file the silence after which a leg counts as gone is more than a twentieth.
TEST(SourcesSpeed, OneThatSlowsDownTenfoldOrIsGone) {
  constexpr double kSilenceS = static_cast<double>(parts::Planner::kSilenceNs) * 1e-9;
  for (const uint64_t megabytes : {32, 128}) {
    const Plan calm = plan_of(kTableOne, megabytes, true);
    const double all_s = seconds(calm);
    for (const double part : {0.3, 0.5, 0.7}) {
      if (megabytes == 128 && part != 0.5) continue;  // as long as all others together
      for (const bool gone : {false, true}) {
        Plan plan = calm;
        (gone ? plan.several.dies : plan.several.slows) = kSources[2];
        (gone ? plan.several.dies_ns : plan.several.slows_ns) = static_cast<uint64_t>(part * all_s * 1e9);
        const double ideal_s = part * all_s + (1 - part) * all_s * 110 / (gone ? 67 : 71.3);
        const double took_s = seconds(plan);
        std::printf("%3lu MB, at %.1f of it one %s: %.3f s, ideal %.3f s, x%.3f\n", megabytes, part,
                    gone ? "is gone" : "slows down", took_s, ideal_s, took_s / ideal_s);
        EXPECT_LE(took_s, std::max(1.05 * ideal_s, ideal_s + kSilenceS))
            << megabytes << " MB, " << part << (gone ? ", gone" : ", slow");
      }
    }
  }
}

// Beside the data one source says what the others send (decision 34). An older one takes 64 extents of
// questions at a time, of which 16 are for this: in a round trip, and the 50 ms for which it gathers.
TEST(SourcesSpeed, AWitnessKeepsUpWithFastLongPaths) {
  constexpr uint64_t kMbps = 1000;
  const Mix fast{.name = "80 ms", .rtts_ms = {80, 80, 80}, .rates_mbps = {kMbps, kMbps, kMbps}};
  Plan plan = plan_of(fast, 100, true);
  plan.rate_bps = 8'000'000'000;
  plan.extent_bytes = 1U << 18;
  plan.credit = (64U << 20) / plan.extent_bytes;
  plan.tx_extents = 2 * plan.credit;
  plan.rx_extents = 4 * plan.credit;
  for (const uint32_t source : kSources) plan.path[source].rate.queue_bytes = 10'000'000;
  const double older_s = seconds(plan);
  plan.several.digests_unanswered = 4096;
  const double today_s = seconds(plan);
  std::printf("100 MB, %lu Mbit/s each: older sources %.3f s, today's %.3f s\n", kMbps, older_s, today_s);
  EXPECT_LE(today_s, 0.6 * older_s);
}

}  // namespace
}  // namespace sluice::sim
