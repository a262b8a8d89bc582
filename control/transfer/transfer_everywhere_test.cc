// What can happen to a transfer happens at each point of its way: after each of its effects, before that is
// answered. Whatever comes then, it neither ends the process nor stands still for ever.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>

#include "control/transfer/happenings_for_test.h"

namespace sluice::transfer::test {
namespace {

// A failed CHECK ends the test program: the case that did it is named first.
std::string its_case;  // NOLINT: a signal handler knows nothing else
void name_case(int /*signal*/) {
  (void)!write(STDERR_FILENO, its_case.data(), its_case.size());
  (void)!write(STDERR_FILENO, "\n", 1);
}

Scene hurried(Scene scene, std::vector<uint64_t> sizes) {
  scene.sizes = std::move(sizes);
  scene.settings.resume_timeout_ns = 20 * kSecondNs;
  scene.settings.keep_ns = 20 * kSecondNs;
  scene.settings.stall_timeout_ns = 3 * kSecondNs;
  return scene;
}

enum class Late : uint8_t { kOne, kAll, kAllReversed };

// What a transfer has behind it when it begins.
struct Beginning {
  std::string name;
  std::function<void(World&)> prepare;
  bool began = true;  // files were agreed upon: nothing of this is its end
};

void move_no_data(World& world) {
  world.data = false;
  world.start();
  world.pass(100 * kMillisecondNs);
  world.data = true;
}

std::vector<Beginning> beginnings() {
  return {{"new", [](World&) {}, false},
          {"restarted, flows gone",
           [](World& world) {
             move_no_data(world);
             world.restart(false);
           }},
          {"restarted, files away",
           [](World& world) {
             move_no_data(world);
             world.restart(false, Recovered::kAway);
             world.reopened_found = false;
           }},
          {"restarted, flows there", [](World& world) {
             move_no_data(world);
             world.restart(true);
           }}};
}

// The peer's control does what it can: it calls when it has no stream.
void make_well(World& world) {
  world.reachable = true;
  for (int i = 0; i < 10 && !world.over; ++i) {
    if (!world.scene.initiator) world.peer_calls_again();
    world.pass(kSecondNs);
  }
}

std::string error_of(World& world) {
  const std::optional<Error>& error = world.transfer().error();
  return error ? error->message : "none";
}

void expect_an_end(World& world, Then then, bool began) {
  world.pass(kSecondNs);
  if (then == Then::kLeaves) {
    world.pass(10 * kSecondNs);
    EXPECT_TRUE(world.over) << "a control that stops waits for it";
  } else if (then == Then::kGoesOn) {
    make_well(world);
    EXPECT_TRUE(world.over) << "it does not go on";
    EXPECT_NE(world.error(), ErrorCode::kCancelled) << "nobody cancelled it";
    EXPECT_TRUE(!began || world.state() == ViewState::kSucceeded) << error_of(world);
  }
  if (!world.over) world.post(Cancel{});
  world.pass(30 * kSecondNs);
  EXPECT_TRUE(world.over);
  EXPECT_FALSE(testing::Test::HasFailure())
      << "phases " << static_cast<int>(world.phase()) << ", " << static_cast<int>(world.leg_phase()) << ", "
      << static_cast<int>(world.handshake_phase()) << "; its log: " << testing::PrintToString(world.logs);
}

// Lets one thing happen while the n-th answer, or each from there on, is still to come.
void happens_at(const Scene& scene, const Beginning& beginning, const Happening& happening, size_t n,
                Late late) {
  its_case = name_of(scene) + ", " + beginning.name + ": " + happening.name + " before answer " +
             std::to_string(n) + ", late " + std::to_string(static_cast<int>(late));
  SCOPED_TRACE(its_case);
  World world(scene);
  world.looks = false;  // every other case has the same way to here
  beginning.prepare(world);
  if (late == Late::kOne) {
    world.hold_answer(world.answers + n);
  } else {
    world.hold_from(world.answers + n);
  }
  world.start();
  world.looks = true;
  if (!world.over) happening.happens(world);
  world.release(late == Late::kAllReversed);
  expect_an_end(world, happening.then, beginning.began);
}

void happens_throughout(const Scene& scene, const std::vector<Happening>& happenings,
                        const std::vector<Beginning>& beginnings) {
  // Each thing happens at each point, in one of the ways to be late: all of them take three times as long.
  const bool every_way = std::getenv("SLUICE_EVERY_WAY") != nullptr;
  std::vector<Late> ways{Late::kOne, Late::kAll, Late::kAllReversed};
  // In order: as of one leg and list.
  if (scene.grows != 0 || scene.legs > 1) ways = {Late::kOne, Late::kAllReversed};
  auto* const before = std::signal(SIGABRT, name_case);
  for (const Beginning& beginning : beginnings) {
    World whole(scene);
    beginning.prepare(whole);
    const size_t before_it = whole.answers;
    whole.start();
    for (const Happening& happening : happenings) {
      const auto nth = static_cast<size_t>(&happening - happenings.data());
      for (size_t n = 0; n < whole.answers - before_it; ++n) {
        for (size_t way = 0; way < ways.size(); ++way) {
          if (!every_way && way != (n + nth) % ways.size()) continue;
          happens_at(scene, beginning, happening, n, ways[way]);
          if (testing::Test::HasFailure()) return;
        }
      }
    }
  }
  (void)std::signal(SIGABRT, before);
}

void happens_everywhere(const std::vector<Happening>& happenings, const std::vector<Beginning>& beginnings,
                        std::vector<uint64_t> sizes = {3 * kExtent, 100, 0}, bool packs = false,
                        size_t grows = 0, bool bare_end = false, uint32_t legs = 1) {
  for (const Scene& each : every_scene()) {
    Scene scene = hurried(each, sizes);
    scene.suspect = !scene.initiator;  // as a source it reads all of it again
    scene.packs = packs;
    scene.grows = grows;
    scene.bare_end = bare_end;
    scene.legs = legs;
    happens_throughout(scene, happenings, beginnings);
    if (testing::Test::HasFailure()) return;
  }
}

void happens_everywhere(const std::vector<Happening>& happenings) {
  happens_everywhere(happenings, beginnings(), {5U << 20, kExtent + 100});
}

TEST(AtEachPoint, AnOperatorMayActAndControlMayStop) { happens_everywhere(what_operators_do()); }
TEST(AtEachPoint, StreamsAndDataplanesMayBeLost) { happens_everywhere(what_becomes_of_machines()); }
TEST(AtEachPoint, OfATreeTheSameMayBe) {
  std::vector<Happening> happenings = what_operators_do();
  for (Happening& each : what_becomes_of_machines()) happenings.push_back(std::move(each));
  happens_everywhere(happenings, beginnings(), {3 * kExtent, 100, 200}, true);
}
TEST(AtEachPoint, OfAnOfferThatTheCallBroughtTheSameMayBe) {
  std::vector<Happening> happenings = what_operators_do();
  for (Happening& each : what_becomes_of_machines()) happenings.push_back(std::move(each));
  for (Happening& each : what_peers_say()) happenings.push_back(std::move(each));
  happens_throughout(hurried({.role = Role::kSource, .opened = true}, {3 * kExtent, 100}), happenings,
                     {beginnings().front()});
}
TEST(AtEachPoint, WhileAListGrowsTheSameMayBe) {
  std::vector<Happening> happenings = what_operators_do();
  for (Happening& each : what_becomes_of_machines()) happenings.push_back(std::move(each));
  for (Happening& each : what_callers_do()) happenings.push_back(std::move(each));
  std::vector<Beginning> all = beginnings();
  // It was killed while it read, created, noted, or waited for an answer.
  const auto killed = [&all](const std::string& name, auto stop) {
    all.push_back({"killed while " + name, [stop](World& world) {
                     stop(world);
                     move_no_data(world);
                     world.restart(false, Recovered::kAway);
                   }});
  };
  killed("reading", [](World& world) { world.hold<ReadList>(1); });
  killed("creating", [](World& world) { world.hold<CreateFiles>(1); });
  killed("noting", [](World& world) { world.hold(Entry::kGrown); });
  happens_everywhere(happenings, all, {3 * kExtent, 0, 200}, false, 1);
  happens_everywhere(happenings, {all.front(), all.back()}, {3 * kExtent, 100, 200}, true, 1, true);
}
TEST(AtEachPoint, WhileAListGrowsThePeerMaySayAnything) {
  happens_everywhere(what_peers_say(), {beginnings().front()}, {3 * kExtent, 100}, false, 1);
}
TEST(AtEachPoint, OfTwoLegsEachMayEndAndComeBack) {
  happens_everywhere(what_becomes_of_legs(2), beginnings(), {3 * kExtent, 100}, false, 0, false, 2);
}
TEST(AtEachPoint, OfThreeLegsEachMayEndAndComeBack) {
  happens_everywhere(what_becomes_of_legs(3), {beginnings().front()}, {3 * kExtent}, false, 0, false, 3);
}
TEST(AtEachPoint, WithTwoLegsTheSameMayBe) {
  std::vector<Happening> happenings = what_operators_do();
  for (Happening& each : what_becomes_of_machines()) happenings.push_back(std::move(each));
  for (Happening& each : what_callers_do()) happenings.push_back(std::move(each));
  happens_everywhere(happenings, beginnings(), {3 * kExtent, 100}, false, 0, false, 2);
}
TEST(AtEachPoint, ThePeerMayCall) { happens_everywhere(what_callers_do()); }
TEST(AtEachPoint, ThePeerMaySayAnything) { happens_everywhere(what_peers_say(), {beginnings().front()}); }
TEST(AtEachPoint, ThePeerMaySayAnythingToANewControl) {
  happens_everywhere(what_peers_say(), {beginnings().back()});
}
TEST(AtEachPoint, WorkersMaySayAnything) {
  happens_everywhere(what_workers_say(), {beginnings().front(), beginnings().back()});
}

}  // namespace
}  // namespace sluice::transfer::test
