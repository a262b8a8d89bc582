// A closer look at a peer: each thing that can be wrong there is found, with a remedy.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "tools/doctor/checks.h"

namespace sluice::doctor {
namespace {

Facts well_looked_at() {
  Facts facts;
  facts.version = "1";
  facts.peer_look = PeerLook{.name = "beta",
                             .software = "sluice 1",
                             .clock_offset_ns = -2'000'000,
                             .clock_error_ns = 500'000,
                             .round_trip_ns = 1'000'000,
                             .spaces = {{.name = "data", .size_bytes = 100, .free_bytes = 50}},
                             .datagrams = 4000,
                             .rtt_us = 120,
                             .chunk_bytes = 8192};
  return facts;
}

std::vector<Finding> look(const Facts& facts) {
  std::vector<Finding> out;
  check_peer_look(facts, out);
  return out;
}

Level level_of(const Facts& facts, const std::string& check) {
  for (const Finding& finding : look(facts)) {
    if (finding.check != check) continue;
    EXPECT_EQ(finding.level == Level::kPass, finding.remedy.empty()) << check;
    return finding.level;
  }
  ADD_FAILURE() << "nothing of " << check;
  return Level::kPass;
}

TEST(PeerChecks, APeerThatIsWellPassesAndNobodyIsAskedUnlessNamed) {
  EXPECT_EQ(worst(look(well_looked_at())), Level::kPass);
  EXPECT_EQ(look(well_looked_at()).size(), 6U);
  EXPECT_TRUE(look(Facts{}).empty());
}

TEST(PeerChecks, WhoCannotBeAskedFails) {
  Facts facts = well_looked_at();
  facts.peer_look->problem = "does not trust this node";
  facts.peer_look->remedy = "sluice node trust";
  ASSERT_EQ(look(facts).size(), 1U);
  EXPECT_EQ(level_of(facts, "peer_asked"), Level::kFail);
}

TEST(PeerChecks, WhoOnlyCallsIsNotAsked) {
  Facts facts = well_looked_at();
  facts.peer_look->problem = "has no address";
  facts.peers = {{.name = facts.peer_look->name, .address = "", .problem = ""}};
  EXPECT_EQ(level_of(facts, "peer_asked"), Level::kWarn);
}

TEST(PeerChecks, AClockIsWrongOnlyBeyondWhatCanBeMeasured) {
  Facts facts = well_looked_at();
  facts.peer_look->clock_offset_ns = -300'000'000;
  EXPECT_EQ(level_of(facts, "peer_clock"), Level::kWarn);
  facts.peer_look->clock_error_ns = 250'000'000;
  EXPECT_EQ(level_of(facts, "peer_clock"), Level::kPass);
  facts.peer_look->clock_offset_ns = INT64_MIN;
  EXPECT_EQ(level_of(facts, "peer_clock"), Level::kWarn);
}

TEST(PeerChecks, VersionSpaceLossAndPathAreJudged) {
  Facts facts = well_looked_at();
  facts.peer_look->software = "sluice 2";
  EXPECT_EQ(level_of(facts, "peer_version"), Level::kWarn);
  facts.peer_look->spaces[0].free_bytes = 1;
  EXPECT_EQ(level_of(facts, "peer_space"), Level::kWarn);
  facts.peer_look->spaces.clear();
  EXPECT_EQ(level_of(facts, "peer_space"), Level::kWarn);
  facts.peer_look->lost = 40;
  EXPECT_EQ(level_of(facts, "path_loss"), Level::kWarn);
  facts.peer_look->narrow = true;
  EXPECT_EQ(level_of(facts, "path_mtu"), Level::kWarn);
  facts.peer_look->no_room = 1;
  EXPECT_EQ(level_of(facts, "peer_room"), Level::kWarn);
  facts.peer_look->path_problem = "no status from peer";
  EXPECT_EQ(level_of(facts, "path"), Level::kFail);
}

}  // namespace
}  // namespace sluice::doctor
