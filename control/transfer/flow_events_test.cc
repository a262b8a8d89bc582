// What a worker has written or sent has happened: no event of a flow is dropped for the state of its session,
// from the first OpenFlow until the flows are given back.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>

#include "control/transfer/scenes_for_test.h"

namespace sluice::transfer::test {
namespace {

constexpr ObjectId kWhole(0);  // which the late events are of
constexpr ObjectId kOther(1);

struct Course {
  std::string name;
  std::function<void(World&)> run;
  bool leaves = false;
};

FlowEvent event_of(const World& world, ObjectId object, ExtentId extent) {
  const recovery::ExtentMap map(world.content.layout(object));
  const recovery::Range range = map.range_of(extent);
  const bool source = world.scene.role == Role::kSource;
  return {.leg = LegId(0),
          .event = {.kind = source ? board::EventKind::kExtentSent : board::EventKind::kExtentWritten,
                    .object = object.value(),
                    .offset = range.offset,
                    .length = range.length,
                    .digest = Content::crc(object, extent)}};
}

// Its workers have sent, or written, all of an object.
void tell_of_all(World& world, ObjectId object) {
  const recovery::ExtentMap map(world.content.layout(object));
  for (ExtentId extent; extent < map.end_id(); ++extent) world.post(event_of(world, object, extent));
}

std::optional<uint64_t> digest_of(World& world, ObjectId object) {
  const Job& job = world.transfer().job();
  if (!job.has_end()) return std::nullopt;
  const DataEnd::Digests known = job.end()->digests(object);
  return job.source() != nullptr ? known.source : known.destination;
}

void begin(World& world) {
  world.data = false;
  world.start();
}

// As begin, and something is there that the end of the attempt has to make durable.
void begin_with_something(World& world) {
  begin(world);
  if (world.leg_phase() == LegPhase::kMoving) tell_of_all(world, kOther);
}

std::vector<Course> courses() {
  return {{"moves", begin},
          {"pauses",
           [](World& world) {
             begin_with_something(world);
             world.post(PauseAsked{});
           }},
          {"stands still",
           [](World& world) {
             begin_with_something(world);
             world.pass(world.scene.settings.stall_timeout_ns + kSecondNs);
           }},
          {"loses its stream",
           [](World& world) {
             begin_with_something(world);
             world.lose_stream();
           }},
          {"is renewed",
           [](World& world) {
             begin_with_something(world);
             world.lose_stream();
             world.pass(kSecondNs);
             if (!world.scene.initiator && !world.stream_open()) world.peer_calls(world.peer.known);
           }},
          {"leaves",
           [](World& world) {
             begin_with_something(world);
             world.post(Detach{});
           },
           true},
          {"is adopted", [](World& world) {
             begin(world);
             if (world.leg_phase() != LegPhase::kMoving) return;
             world.restart(true);
             world.start();
           }}};
}

void go_on(World& world) {
  world.data = true;
  if (world.transfer().may_continue()) world.post(ContinueAsked{});
  for (int i = 0; i < 10 && !world.over; ++i) {
    if (!world.scene.initiator && !world.stream_open()) world.peer_calls();
    world.pass(kSecondNs);
  }
}

// At the n-th answer of the course, and all behind it, that are still to come. The phase of the leg then.
std::optional<LegPhase> told_at(const Scene& scene, const Course& course, size_t n, bool reversed) {
  World world(scene);
  world.hold_from(n);
  course.run(world);
  if (world.count<OpenFlow>() == 0 || !world.flows_open() || world.over) return std::nullopt;
  const LegPhase phase = world.leg_phase();
  tell_of_all(world, kWhole);
  EXPECT_EQ(digest_of(world, kWhole), world.content.digest(kWhole)) << "at once";
  world.release(reversed);
  // A peer that never heard of the flows has sent nothing on them, and both begin anew.
  const bool forgotten = world.count(Entry::kForgotten) != 0;
  if (!forgotten) {
    EXPECT_EQ(digest_of(world, kWhole), world.content.digest(kWhole)) << "once all is answered";
  }
  if (course.leaves) return phase;
  go_on(world);
  EXPECT_EQ(world.state(), ViewState::kSucceeded);
  EXPECT_EQ(world.count<ReadExtents>(), 0U) << "nothing is read again of which the CRC was told";
  return phase;
}

TEST(FlowEvents, AreTakenInEachPhaseFromTheFirstFlowToTheLast) {
  for (Scene scene : every_scene()) {
    scene.sizes = {3 * kExtent, 100};
    scene.settings.stall_timeout_ns = 3 * kSecondNs;
    std::set<LegPhase> phases;
    for (const Course& course : courses()) {
      World whole(scene);
      course.run(whole);
      for (size_t n = 0; n < whole.answers; ++n) {
        for (const bool reversed : {false, true}) {
          SCOPED_TRACE(name_of(scene) + " that " + course.name + ", before answer " + std::to_string(n) +
                       (reversed ? ", reversed" : ""));
          if (const auto phase = told_at(scene, course, n, reversed)) phases.insert(*phase);
          if (HasFailure()) return;
        }
      }
    }
    std::set<LegPhase> expected = {LegPhase::kHandshake, LegPhase::kMoving, LegPhase::kClosing};
    if (scene.role == Role::kDestination) expected.insert(LegPhase::kSettling);
    for (const LegPhase phase : expected)
      EXPECT_TRUE(phases.contains(phase)) << name_of(scene) << ": phase " << static_cast<int>(phase);
  }
}

}  // namespace
}  // namespace sluice::transfer::test
