// Whatever peers and operators do, and in whatever order, a planner loses nothing.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "control/parts/planner.h"

namespace sluice::parts {
namespace {

// Sources and an operator that do anything, in any order: whatever happens, the invariants hold (tick looks
// at them, and so does each step), and once all behave, all arrives.
TEST(PlannerAnyhow, WhateverHappensNothingIsLost) {
  for (uint32_t seed = 0; seed < 60; ++seed) {
    std::mt19937_64 random(seed);
    Planner planner({.extent_bytes = 1000});
    uint64_t now = 1;
    std::map<LegId, std::vector<Place>> queues;
    const uint32_t objects = 1 + static_cast<uint32_t>(random() % 6);
    const auto any_leg = [&] { return LegId(static_cast<uint32_t>(random() % 4)); };
    const auto any_object = [&] { return ObjectId(static_cast<uint32_t>(random() % (objects + 1))); };
    const auto any_run = [&] {
      const uint64_t first = random() % 70;
      return ExtentRun{.first = ExtentId(first), .end = ExtentId(first + 1 + random() % 5)};
    };
    const auto heed = [&] {
      const Planner::Actions actions = planner.take_actions();
      for (const Want& want : actions.wants) {
        auto& queue = queues[want.portion.leg];
        for (const Range& range : want.portion.ranges) {
          for (uint64_t offset = range.offset; offset < range.end(); offset += 1000) {
            const Place place{.object = want.portion.object, .extent = ExtentId(offset / 1000)};
            // A source does not always hear in time that it should not send.
            if (!want.withdrawn) queue.push_back(place);
            if (want.withdrawn && random() % 2 == 0) std::erase(queue, place);
          }
        }
      }
      for (const ObjectId object : actions.compare) {
        for (uint32_t leg = 0; leg < 4; ++leg) {
          if (random() % 4 != 0) planner.open_to(LegId(leg), object);
        }
      }
    };
    for (uint32_t object = 0; object < objects; ++object) {
      planner.add(ObjectId(object), random() % 60'000,
                  random() % 4 == 0 ? Planner::Kind::kWhole : Planner::Kind::kDivisible);
    }
    for (int step = 0; step < 1500; ++step) {
      const LegId leg = any_leg();
      switch (random() % 16) {
        case 0:
          planner.join(leg,
                       {.rtt_ns = random() % 200'000'000,
                        .expected_rate_bps = random() % 2 * 50'000'000,
                        .lanes = 1 + static_cast<uint32_t>(random() % 3)},
                       now);
          break;
        case 1: {
          if (random() % 4 != 0) break;
          planner.leave(leg);
          queues[leg].clear();
          break;
        }
        case 2:
          planner.open_to(leg, any_object());
          break;
        case 3:
          if (random() % 20 == 0) planner.bar(leg, any_object());
          break;
        case 4:
          planner.forgotten(any_object(), any_run());
          break;
        case 5:
          planner.arrived(leg, any_object(), any_run().first, now);
          break;
        case 6:
          if (random() % 10 == 0)
            planner.holds(any_object(), {{.offset = random() % 60'000, .length = random() % 5'000}});
          break;
        case 7:
          planner.set_rtt(leg, random() % 200'000'000);
          break;
        case 8:
          now += random() % 700'000'000;
          break;
        case 9:
          if (random() % 50 == 0) planner.remove(any_object());
          break;
        default: {
          auto& queue = queues[leg];
          if (queue.empty()) break;
          const size_t place = random() % std::min<size_t>(queue.size(), 3);
          planner.received(leg, random() % 1200, now);
          planner.arrived(leg, queue[place].object, queue[place].extent, now);
          queue.erase(queue.begin() + static_cast<int64_t>(place));
        }
      }
      now += random() % 20'000'000;
      if (random() % 2 == 0) planner.tick(now);
      planner.check_invariants();
      heed();
    }
    // Now one leg that was never barred brings all that it is asked for.
    const LegId last(7);
    for (uint32_t leg = 0; leg < 4; ++leg) planner.leave(LegId(leg));
    planner.join(last, {.rtt_ns = 1'000'000, .expected_rate_bps = 0, .lanes = 1}, now);
    for (uint32_t object = 0; object < objects; ++object) planner.open_to(last, ObjectId(object));
    queues[last].clear();
    for (int step = 0; step < 2000 && planner.missing_bytes() != 0; ++step) {
      now += 10'000'000;
      planner.tick(now);
      heed();
      for (const Place& place : std::exchange(queues[last], {})) {
        planner.received(last, 1000, now);
        planner.arrived(last, place.object, place.extent, now);
      }
    }
    ASSERT_EQ(planner.missing_bytes(), 0U) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice::parts
