// What the session of a plan is, and what befalls one in which more than two nodes take part.
//
// Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/sim/nodes.h"

namespace sluice::sim {

enum class Course : uint8_t {
  kTwoNodes,
  kSources,  // a destination has its files from several sources
  kRivals,   // two sources think that the work of one lease is theirs
  kGrant,    // a third node has ordered it: kSource holds the grant, and others show it as well
};
const char* course_name(Course course);
Course course_named(const std::string& name, bool* known);
std::vector<std::string> course_names();
Course course_of(uint64_t seed);

// What one of several sources does that it should not. Its files are other ones than those of the others,
// everywhere; or it says digests that are not those of its bytes.
enum class Lie : uint8_t { kNone, kOtherFiles, kWrongDigests };

struct SourcesPlan {
  Lie lie = Lie::kNone;
  uint32_t liar = 0;        // a node
  uint64_t changes_ns = 0;  // since the start: the files of `changes` become others then; 0: never
  uint32_t changes = 0;
  uint64_t dies_ns = 0;  // `dies` is gone from then on, for good; 0: never
  uint32_t dies = 0;
  // From then on the path of `slows` carries a tenth of what it did; 0: never.
  uint64_t slows_ns = 0;
  uint32_t slows = 0;
  // Bit/s that the destination remembers of each path; 0: nothing.
  std::array<uint64_t, kNodesMax> known_bps{};
  bool listed = false;              // the destination has a list of what its files are to come to
  uint32_t digests_unanswered = 0;  // that a source says that it takes; 0: it says nothing
  bool calm = false;                // no fault but these: what is sent twice is bounded
};

// kSource begins first.
inline constexpr uint32_t kRival = 2;
struct RivalsPlan {
  uint64_t second_ns = 0;  // since the start: the other one begins
  std::array<uint64_t, 2> epochs{1, 2};
};

// kThief is trusted, and has a copy of the grant.
inline constexpr uint32_t kThief = 2;
enum class GrantCase : uint8_t {
  kHonest,
  kLate,       // it is shown for the first time when it may not begin a session any more
  kStolen,     // kThief shows it as well, sooner or later
  kReplayed,   // the holder shows it again after the end, and has forgotten the session
  kForgotten,  // likewise, long after, and the destination has forgotten the session as well
  kEnds,       // its end comes while data moves
};
struct GrantPlan {
  GrantCase what = GrantCase::kHonest;
  uint64_t at_ns = 0;  // since the start: of what is not honest
};

}  // namespace sluice::sim
