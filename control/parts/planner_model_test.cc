// The bars of several sources, in virtual time with the real planner.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "control/parts/model_for_test.h"

namespace sluice::parts {
namespace {

constexpr uint64_t kMegabyte = 1'000'000;

// Table 1 of "Phatpackets": three servers, a client of 200 Mbit/s.
ModelPlan table_one(uint64_t size_bytes) {
  return {.legs = {{.rate = 30 * kMbit}, {.rate = 37 * kMbit}, {.rate = 43 * kMbit}},
          .objects = {size_bytes},
          .client_rate = 200 * kMbit};
}

void row(const char* name, const ModelResult& result, double ideal_s) {
  std::printf("%-44s %8.3f s, ideal %8.3f s, x%.3f; stolen %5.1f MB, copied %4.1f MB, %lu wants\n", name,
              result.seconds, ideal_s, result.seconds / ideal_s, static_cast<double>(result.stolen) / 1e6,
              static_cast<double>(result.copied) / 1e6, result.wants);
}

TEST(PlannerModel, ThreeSourcesBringTheSumOfTheirRates) {
  for (const uint64_t extent : {uint64_t{1} << 18, uint64_t{1} << 20, uint64_t{1} << 22}) {
    for (const bool expected : {true, false}) {
      ModelPlan plan = table_one(256 * kMegabyte);
      plan.extent_bytes = extent;
      for (ModelLeg& leg : plan.legs) leg.expected = expected;
      const ModelResult result = Model(plan).run();
      const double ideal_s = 256e6 / (110 * kMbit);
      const std::string name = "table 1, extents of " + std::to_string(extent >> 10) + " KiB" +
                               (expected ? "" : ", rates unknown");
      row(name.c_str(), result, ideal_s);
      EXPECT_GE(ideal_s / result.seconds, 0.95) << name;
    }
  }
}

TEST(PlannerModel, OneThatDiesOrSlowsDownCostsLittle) {
  for (size_t victim = 0; victim < 3; ++victim) {
    for (const double at_s : {2.0, 9.0, 15.0}) {
      ModelPlan plan = table_one(256 * kMegabyte);
      const double rate = plan.legs[victim].rate;
      const double rest = 110 * kMbit - rate;
      plan.legs[victim].dies_at_s = at_s;
      const double ideal_s = at_s + (256e6 - at_s * 110 * kMbit) / rest;
      const std::string name =
          "leg " + std::to_string(victim) + " dies at " + std::to_string(static_cast<int>(at_s)) + " s";
      ModelResult result = Model(plan).run();
      row(name.c_str(), result, ideal_s);
      EXPECT_LE(result.seconds, 1.05 * ideal_s) << name;

      plan.legs[victim].dies_at_s = 1e9;
      plan.legs[victim].changes_at_s = at_s;
      plan.legs[victim].changed_rate = rate / 10;
      const double slow_s = at_s + (256e6 - at_s * 110 * kMbit) / (rest + rate / 10);
      const std::string slow = "leg " + std::to_string(victim) + " slows tenfold at " +
                               std::to_string(static_cast<int>(at_s)) + " s";
      result = Model(plan).run();
      row(slow.c_str(), result, slow_s);
      EXPECT_LE(result.seconds, 1.05 * slow_s) << slow;
    }
  }
}

void compare_with_best(const ModelPlan& plan, std::string name, uint64_t megabytes, bool expected) {
  const double alone_s = best_alone(plan);
  name += (expected ? "" : ", rates unknown") + std::string(", best alone");
  const ModelResult result = Model(plan).run();
  row(name.c_str(), result, alone_s);
  // A file that is soon over is over before it is known which leg is fast.
  const double bar = expected ? 1.02 : megabytes >= 64 ? 1.10 : 2.5;
  EXPECT_LE(result.seconds, bar * alone_s) << name;
}

TEST(PlannerModel, IsNeverSlowerThanTheBestAlone) {
  for (const bool expected : {true, false}) {
    for (const uint64_t megabytes : {1, 4, 16, 64}) {
      for (const uint32_t lanes : {1U, 4U}) {
        ModelPlan plan = table_one(megabytes * kMegabyte);
        for (ModelLeg& leg : plan.legs) {
          leg.expected = expected;
          leg.lanes = lanes;
        }
        compare_with_best(plan, std::to_string(megabytes) + " MB, " + std::to_string(lanes) + " lanes",
                          megabytes, expected);
      }
    }
  }
}

// Round trips of 1 to 200 ms, and rates that differ a hundredfold.
TEST(PlannerModel, PathsMayDiffer) {
  const std::vector<std::pair<const char*, std::vector<ModelLeg>>> mixes = {
      {"1, 80, 200 ms",
       {{.rate = 40 * kMbit, .rtt_s = 0.001}, {.rate = 40 * kMbit}, {.rate = 40 * kMbit, .rtt_s = 0.2}}},
      {"fast far, slow near", {{.rate = 10 * kMbit, .rtt_s = 0.001}, {.rate = 100 * kMbit, .rtt_s = 0.2}}},
      {"1 and 100 Mbit/s", {{.rate = 1 * kMbit}, {.rate = 100 * kMbit}}},
      {"1, 10, 1000 Mbit/s",
       {{.rate = 1 * kMbit}, {.rate = 10 * kMbit}, {.rate = 1000 * kMbit, .rtt_s = 0.02}}}};
  for (const auto& [what, legs] : mixes) {
    double sum = 0;
    for (const ModelLeg& leg : legs) sum += leg.rate;
    for (const uint64_t megabytes : {1, 4, 16, 64, 512}) {
      for (const bool expected : {true, false}) {
        ModelPlan plan{.legs = legs, .objects = {megabytes * kMegabyte}};
        for (ModelLeg& leg : plan.legs) {
          leg.expected = expected;
          leg.lanes = 2;
        }
        compare_with_best(plan, std::string(what) + ", " + std::to_string(megabytes) + " MB", megabytes,
                          expected);
      }
    }
  }
}

// A path is not what it was: it carries a tenth of what is remembered, or ten times that.
TEST(PlannerModel, MemoryMayBeWrong) {
  for (const double remembered : {0.1, 10.0}) {
    for (size_t leg = 0; leg < 3; ++leg) {
      ModelPlan plan = table_one(256 * kMegabyte);
      plan.legs[leg].remembered = remembered;
      const double ideal_s = 256e6 / (110 * kMbit);
      const ModelResult result = Model(plan).run();
      const std::string name =
          "leg " + std::to_string(leg) + " remembered " + (remembered < 1 ? "as a tenth" : "tenfold");
      row(name.c_str(), result, ideal_s);
      EXPECT_GE(ideal_s / result.seconds, 0.95) << name;
    }
  }
}

// What a leg has not begun when it slows down is taken from it. Without that it would be sent twice.
TEST(PlannerModel, WhatASlowLegHasNotBegunIsNotSentTwice) {
  ModelPlan plan{.objects = {2560 * kMegabyte}, .tick_ms = 100};
  plan.legs = {{.rate = 300 * kMbit, .rtt_s = 0.2},
               {.rate = 370 * kMbit, .rtt_s = 0.2},
               {.rate = 430 * kMbit, .rtt_s = 0.2, .changes_at_s = 17, .changed_rate = 43 * kMbit}};
  const ModelResult result = Model(plan).run();
  row("430 Mbit/s slow tenfold at 17 s of 18.6", result, 17 + (2560e6 - 17 * 1100 * kMbit) / (713 * kMbit));
  EXPECT_GE(result.stolen, 4U << 20);
  EXPECT_LE(result.copied, 3U << 20);  // an extent a leg
}

TEST(PlannerModel, LongFatPathsRampUp) {
  for (const bool expected : {true, false}) {
    ModelPlan plan{.objects = {40'000 * kMegabyte}, .tick_ms = 2};
    const ModelLeg leg{.rate = 10'000 * kMbit, .rtt_s = 0.1, .expected = expected, .lanes = 4};
    plan.legs = {leg, leg, leg};
    const ModelResult result = Model(plan).run();
    ModelPlan third = plan;
    third.legs = {leg};
    third.objects = {plan.objects[0] / 3};
    const double ideal_s = seconds_of(third);  // its ramp is the sources'
    row(expected ? "three of 10 Gbit/s at 100 ms" : "three of 10 Gbit/s at 100 ms, rates unknown", result,
        ideal_s);
    EXPECT_LE(result.seconds, 1.05 * ideal_s);
    row("  the last against the rate", result, 40e9 / (30'000 * kMbit));
  }
}

// A source that needs long to look at its file says digests late. That is no silence.
TEST(PlannerModel, DigestsMayComeLate) {
  for (const double confirm_s : {0.5, 1.0}) {
    ModelPlan plan = table_one(256 * kMegabyte);
    plan.confirm_s = confirm_s;
    const double ideal_s = 256e6 / (110 * kMbit) + confirm_s;
    const ModelResult result = Model(plan).run();
    const std::string name = "digests " + std::to_string(static_cast<int>(confirm_s * 1000)) + " ms late";
    row(name.c_str(), result, ideal_s);
    EXPECT_GE(ideal_s / result.seconds, 0.95) << name;
    EXPECT_LE(result.copied, 2U << 20) << name;
  }
}

TEST(PlannerModel, TicksMayComeSeldom) {
  for (const uint64_t tick_ms : {1, 20, 100, 500}) {
    ModelPlan plan = table_one(256 * kMegabyte);
    plan.tick_ms = tick_ms;
    const double ideal_s = 256e6 / (110 * kMbit);
    const ModelResult result = Model(plan).run();
    const std::string name = "ticks of " + std::to_string(tick_ms) + " ms";
    row(name.c_str(), result, ideal_s);
    EXPECT_GE(ideal_s / result.seconds, 0.93) << name;
  }
}

TEST(PlannerModel, ManyObjects) {
  ModelPlan plan = table_one(0);
  plan.objects.assign(64, 4U << 20);
  plan.kind = Planner::Kind::kWhole;
  double ideal_s = static_cast<double>(64ULL * (4U << 20)) / (110 * kMbit);
  ModelResult result = Model(plan).run();
  row("64 packs of 4 MiB", result, ideal_s);
  plan.kind = Planner::Kind::kDivisible;
  result = Model(plan).run();
  row("64 files of 4 MiB", result, ideal_s);
  plan.legs[1].dies_at_s = 9;
  plan.kind = Planner::Kind::kWhole;
  ideal_s = 9 + (64.0 * (4U << 20) - 9 * 110 * kMbit) / (73 * kMbit);
  result = Model(plan).run();
  row("64 packs, one dies at 9 s", result, ideal_s);
}

}  // namespace
}  // namespace sluice::parts
