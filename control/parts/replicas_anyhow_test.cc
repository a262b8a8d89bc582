// Whatever legs say, and whenever they come and go, no leg agrees whose replica differs from what is there.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "control/parts/replicas.h"

namespace sluice::parts {
namespace {

// Legs with an even number have one content, the others another, which differs in every extent. Leg 0 begins.
TEST(ReplicasAnyhow, NoLegAgreesThatDiffersFromWhatIsThere) {
  constexpr ObjectId kAny{3};
  const auto content = [](LegId leg, uint64_t extent) { return 10 * extent + leg.value() % 2; };
  for (uint32_t seed = 0; seed < 500; ++seed) {
    std::mt19937_64 random(seed);
    Replicas replicas({.seed = seed, .extent_bytes = 1000});
    std::set<LegId> here;
    std::map<LegId, std::vector<Range>> questions;
    bool brought = false;
    replicas.join(LegId(0), "0");
    here.insert(LegId(0));
    replicas.compare({.object = kAny,
                      .size_bytes = 1000 * (1 + random() % 40),
                      .name = "x",
                      .begun_by = LegId(0),
                      .held = {}});
    for (int step = 0; step < 60; ++step) {
      const LegId leg(static_cast<uint32_t>(random() % 4));
      switch (random() % 5) {
        case 0:
          replicas.join(leg, "peer");
          here.insert(leg);
          break;
        case 1:
          if (random() % 3 != 0) break;
          replicas.leave(leg);
          here.erase(leg);
          questions.erase(leg);
          break;
        case 2: {
          if (!here.contains(LegId(0))) break;
          const uint64_t extent = random() % 40;
          replicas.confirmed(kAny, {.extent = ExtentId(extent), .crc = content(LegId(0), extent)});
          brought = true;
          break;
        }
        default: {
          if (questions[leg].empty()) break;
          const uint64_t extent = questions[leg].back().offset / 1000;
          questions[leg].pop_back();
          const uint64_t digest = content(leg, extent);
          replicas.said(leg, kAny, ExtentId(extent), std::span(&digest, 1));
        }
      }
      const Replicas::Actions actions = replicas.take_actions();
      for (const Portion& question : actions.questions) {
        ASSERT_TRUE(here.contains(question.leg));
        for (const Range& range : question.ranges) questions[question.leg].push_back(range);
      }
      for (const Replicas::Agreed& agreed : actions.agreed) {
        if (brought) {
          ASSERT_EQ(agreed.leg.value() % 2, 0U) << "seed " << seed;
        }
      }
    }
  }
}

}  // namespace
}  // namespace sluice::parts
