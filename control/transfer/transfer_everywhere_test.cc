// What can happen to a transfer happens at each point of its way: after each of its effects, before that is
// answered. Whatever comes then, it neither ends the process nor stands still for ever.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstring>

#include "control/transfer/transfer_fixture.h"

namespace sluice::transfer::test {
namespace {

constexpr ObjectId kNoObject(77);
constexpr recovery::Range kNoRange{.offset = UINT64_MAX - 5, .length = 100};

// A failed CHECK ends the test program: the case that did it is named first.
std::string its_case;  // NOLINT: a signal handler knows nothing else
void name_case(int /*signal*/) {
  (void)!write(STDERR_FILENO, its_case.data(), its_case.size());
  (void)!write(STDERR_FILENO, "\n", 1);
}

struct Happening {
  std::string name;
  std::function<void(World&)> happens;
  // What must follow: an end at once, one when everything is well again, or none before it is cancelled.
  enum class Then : uint8_t { kNothing, kLeaves, kGoesOn } then = Then::kNothing;
};
using Then = Happening::Then;

Scene hurried(Scene scene, std::vector<uint64_t> sizes) {
  scene.sizes = std::move(sizes);
  scene.settings.resume_timeout_ns = 20 * kSecondNs;
  scene.settings.keep_ns = 20 * kSecondNs;
  scene.settings.stall_timeout_ns = 3 * kSecondNs;
  return scene;
}

std::vector<Happening> what_operators_do() {
  const auto posts = [](auto event) { return [event](World& world) { world.post(event); }; };
  return {{"cancel", posts(Cancel{})},
          {"pause", posts(PauseAsked{})},
          {"continue", posts(ContinueAsked{}), Then::kGoesOn},
          {"pause and continue",
           [](World& world) {
             world.post(PauseAsked{});
             world.post(ContinueAsked{});
           },
           Then::kGoesOn},
          {"pause, continue and pause",
           [](World& world) {
             world.post(PauseAsked{});
             world.post(ContinueAsked{});
             world.post(PauseAsked{});
           }},
          {"pause and cancel",
           [](World& world) {
             world.post(PauseAsked{});
             world.post(Cancel{});
           }},
          {"detach", posts(Detach{}), Then::kLeaves},
          {"cancel and detach",
           [](World& world) {
             world.post(Cancel{});
             world.post(Detach{});
           },
           Then::kLeaves},
          {"pause and detach",
           [](World& world) {
             world.post(PauseAsked{});
             world.post(Detach{});
           },
           Then::kLeaves}};
}

std::vector<Happening> what_becomes_of_machines() {
  return {{"nothing for long", [](World& world) { world.pass(4 * kSecondNs); }, Then::kGoesOn},
          {"stream lost", [](World& world) { world.lose_stream(); }, Then::kGoesOn},
          {"stream lost for long",
           [](World& world) {
             world.reachable = false;
             world.lose_stream();
             world.pass(5 * kSecondNs);
             world.reachable = true;
           },
           Then::kGoesOn},
          {"board lost", [](World& world) { world.lose_board(); }},
          {"board lost and attached",
           [](World& world) {
             world.lose_board();
             world.attach();
           },
           Then::kGoesOn},
          {"another board", [](World& world) { world.attach(); }},
          {"sources touched", [](World& world) { ++world.source_ctime_ns; }, Then::kGoesOn},
          {"tick", [](World& world) { world.tick(); }, Then::kGoesOn},
          {"timer", [](World& world) { world.post(TimerDue{}); }, Then::kGoesOn}};
}

void call_if_it_may(World& world, const Hello& hello) {
  if (!world.scene.initiator) world.peer_calls_with(hello);
}

std::vector<Happening> what_callers_do() {
  Hello ended = make_hello(kId);
  ended.ended = true;
  const auto told = [ended](std::vector<Message> words) {
    words.insert(words.begin(), ended);
    return [words](World& world) {
      if (world.scene.initiator) return;
      world.peer.last_words = words;
      world.peer_calls_with(std::get<Hello>(words.front()));
    };
  };
  return {{"calls anew", [](World& world) { call_if_it_may(world, world.peer.call()); }},
          {"calls and is gone",
           [](World& world) {
             if (world.scene.initiator || world.stream_open()) return;
             world.peer_calls();
             if (world.take_back_call()) world.post(CallLost{});
           }},
          {"calls twice",
           [](World& world) {
             call_if_it_may(world, world.peer.call());
             call_if_it_may(world, world.peer.call());
           }},
          {"renews", [](World& world) { call_if_it_may(world, world.peer.call(true)); }},
          {"forgot all",
           [](World& world) {
             world.peer.known = false;
             call_if_it_may(world, world.peer.call());
           }},
          {"ended there", told({})},
          {"failed there", told({Failure{.code = 12, .message = "cancelled there"}})},
          {"succeeded there", told({ObjectState{.end = true}, SessionDone{}})}};
}

// Each message that a peer can send, right or wrong, at the wrong time.
std::vector<Message> every_message() {
  TransferOffer many;
  many.more = true;
  for (uint32_t i = 0; i < 5000; ++i) many.files.push_back({.number = i, .name = "x"});
  Hello other = make_hello(std::string(32, 'b'));
  Hello old = make_hello(kId);
  old.version_max = 0;
  const std::vector<recovery::Range> overlapping{{0, 2 * kExtent}, {kExtent, 2 * kExtent}, {5, 7}};
  const std::vector<recovery::Range> too_many(kRangesPerMessage + 1, recovery::Range{0, kExtent});
  return {
      Hello{},
      make_hello(kId),
      other,
      old,
      Specification{},
      SpecificationSet{},
      SpecificationSet{.lanes = UINT32_MAX, .udp_ports = {70000}},
      TransferRequest{},
      TransferRequest{.source_paths = {"/etc/shadow", ""}},
      TransferOffer{},
      TransferOffer{.files = {{.number = 0, .name = "../x"}}, .destination = "in/"},
      TransferOffer{.files = {{.number = 0, .name = "x", .size_bytes = UINT64_MAX}}, .destination = "in/"},
      TransferOffer{.more = true},
      TransferOffer{.destination = "in/", .into_directory = true},
      TransferOffer{.destination = "in/", .into_directory = true, .growing = true},
      TransferOffer{.files = {{.number = 1, .name = "other", .size_bytes = 5}},
                    .destination = "in/",
                    .into_directory = true,
                    .growing = true},
      many,
      TransferReady{},
      TransferReady{.objects = UINT32_MAX, .growing = true},
      TransferReady{.final_paths = std::vector<std::string>(9), .objects = 1},
      TransferReady{.flow_ids = {0}, .credit_extents = {0}},
      TransferReady{.flow_ids = {1}, .credit_extents = {1}, .final_paths = std::vector<std::string>(9)},
      ObjectState{.object = kNoObject, .held = {kNoRange}},
      ObjectState{.object = kNoObject, .done = true},
      ObjectState{.object = ObjectId(0), .held = {kNoRange}},
      ObjectState{.object = ObjectId(0), .held = overlapping},
      ObjectState{.object = ObjectId(0), .held = too_many},
      ObjectState{.object = ObjectId(0), .done = true, .digest = 1},
      ObjectState{.end = true},
      PartitionSent{.object = kNoObject, .range = kNoRange, .lane = LaneId(99)},
      PartitionSent{.object = ObjectId(0), .range = kNoRange},
      PartitionSent{.object = ObjectId(0), .range = {.offset = 1, .length = 1}, .lane = LaneId(99)},
      PartitionSent{.object = ObjectId(0), .range = {.offset = 0, .length = 0}},
      PartitionDone{.object = kNoObject, .ranges = {kNoRange}},
      PartitionDone{.object = ObjectId(0), .ranges = overlapping},
      PartitionDone{.object = ObjectId(0), .ranges = {kNoRange}},
      PartitionDone{.object = ObjectId(0), .ranges = too_many},
      Need{.object = kNoObject, .ranges = {kNoRange}, .lane = LaneId(99)},
      Need{.object = ObjectId(0), .ranges = overlapping, .lane = LaneId(99)},
      Need{.object = ObjectId(0), .ranges = {kNoRange}},
      Need{.object = ObjectId(0), .ranges = too_many},
      FileDigest{.object = kNoObject},
      FileDigest{.object = ObjectId(0), .size_bytes = 1},
      FileDigest{.object = ObjectId(0), .size_bytes = 5U << 20, .digest = 1},
      FileDone{.object = kNoObject},
      FileDone{.object = ObjectId(0), .digest = 1},
      SessionDone{},
      SessionDone{.files = UINT64_MAX, .bytes = UINT64_MAX},
      Heartbeat{},
      Failure{},
      Failure{.code = 99, .message = std::string(100'000, '\n')},
      Failure{.code = 16, .message = "its disk"},
      Pause{},
      Pause{.node = std::string(1000, '\n')},
  };
}

std::vector<Happening> what_peers_say() {
  std::vector<Happening> all;
  for (const Message& message : every_message()) {
    all.push_back({"says " + std::string(message_name(message)) + " #" + std::to_string(all.size()),
                   [message](World& world) {
                     if (world.stream_open()) world.hear(message);
                   }});
  }
  return all;
}

// Each event of a worker, of no lane, no object, no extent; and of what there is.
std::vector<Happening> what_workers_say() {
  std::vector<Happening> all;
  for (uint32_t kind = 0; kind <= 12; ++kind) {
    const auto of = [kind](uint32_t object, uint64_t offset, uint64_t length) {
      return board::Event{.kind = static_cast<board::EventKind>(kind),
                          .object = object,
                          .tag = 7,
                          .offset = offset,
                          .length = length,
                          .digest = 5,
                          .value = 28};
    };
    all.push_back({"event " + std::to_string(kind), [of](World& world) {
                     for (const uint32_t lane : {0U, 99U}) {
                       if (lane == 0 && !world.flows_open()) continue;
                       for (const board::Event& event : {of(77, 0, kExtent), of(0, 0, kExtent),
                                                         of(0, 5, UINT64_MAX), of(1, kExtent, 100)})
                         world.post(FlowEvent{.leg = LegId(0), .lane = LaneId(lane), .event = event});
                     }
                   }});
  }
  return all;
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
    if (!world.scene.initiator && !world.stream_open()) world.peer_calls();
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
  beginning.prepare(world);
  if (late == Late::kOne) {
    world.hold_answer(world.answers + n);
  } else {
    world.hold_from(world.answers + n);
  }
  world.start();
  if (!world.over) happening.happens(world);
  world.release(late == Late::kAllReversed);
  expect_an_end(world, happening.then, beginning.began);
}

void happens_everywhere(const std::vector<Happening>& happenings, const std::vector<Beginning>& beginnings,
                        std::vector<uint64_t> sizes = {3 * kExtent, 100, 0}, bool packs = false,
                        size_t grows = 0, bool bare_end = false) {
  auto* const before = std::signal(SIGABRT, name_case);
  for (const Scene& each : every_scene()) {
    Scene scene = hurried(each, sizes);
    scene.suspect = !scene.initiator;  // as a source it reads all of it again
    scene.packs = packs;
    scene.grows = grows;
    scene.bare_end = bare_end;
    for (const Beginning& beginning : beginnings) {
      World whole(scene);
      beginning.prepare(whole);
      const size_t before_it = whole.answers;
      whole.start();
      for (const Happening& happening : happenings) {
        for (size_t n = 0; n < whole.answers - before_it; ++n) {
          for (const Late late : {Late::kOne, Late::kAll, Late::kAllReversed}) {
            happens_at(scene, beginning, happening, n, late);
            if (testing::Test::HasFailure()) return;
          }
        }
      }
    }
  }
  (void)std::signal(SIGABRT, before);
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
