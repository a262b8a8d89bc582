// What can happen to a transfer, at whatever point of its way it is (transfer_everywhere_test.cc).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "control/transfer/transfer_fixture.h"

namespace sluice::transfer::test {

inline constexpr ObjectId kNoObject(77);
inline constexpr recovery::Range kNoRange{.offset = UINT64_MAX - 5, .length = 100};

struct Happening {
  std::string name;
  std::function<void(World&)> happens;
  // What must follow: an end at once, one when everything is well again, or none before it is cancelled.
  enum class Then : uint8_t { kNothing, kLeaves, kGoesOn } then = Then::kNothing;
};
using Then = Happening::Then;

inline std::vector<Happening> what_operators_do() {
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

inline std::vector<Happening> what_becomes_of_machines() {
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

// What becomes of one leg while others go on.
inline std::vector<Happening> what_becomes_of_legs(uint32_t legs) {
  std::vector<Happening> all;
  for (uint32_t i = 0; i < legs; ++i) {
    const LegId leg(i);
    const std::string name = "leg " + std::to_string(i);
    const auto hears = [leg](Message message) {
      return [leg, message](World& world) {
        if (world.stream_open(leg)) world.post(Received{.leg = leg, .message = message});
      };
    };
    all.push_back({name + ": stream lost", [leg](World& world) { world.lose_stream(leg); }, Then::kGoesOn});
    all.push_back({name + ": flows closed", [leg](World& world) { world.close_flows(leg); }, Then::kGoesOn});
    all.push_back({name + ": flows closed, stream lost",
                   [leg](World& world) {
                     world.close_flows(leg);
                     world.lose_stream(leg);
                   },
                   Then::kGoesOn});
    all.push_back({name + ": out of reach for long",
                   [leg](World& world) {
                     world.reachable = false;
                     world.lose_stream(leg);
                     world.pass(5 * kSecondNs);
                     world.reachable = true;
                   },
                   Then::kGoesOn});
    all.push_back({name + ": the peer is full", hears(Pause{.node = "there", .place = 1, .places = 1})});
    all.push_back({name + ": the peer gives it up", hears(Failure{.code = 12, .message = "not this way"})});
    all.push_back({name + ": the peer says nonsense", hears(TransferOffer{})});
    if (i == 0) continue;
    all.push_back({name + ": the peer calls anew",
                   [i](World& world) {
                     if (world.scene.initiator || !world.peer.known) return;
                     world.peer_calls(false, LegId(i));
                   },
                   Then::kGoesOn});
  }
  return all;
}

inline void call_if_it_may(World& world, const Hello& hello) {
  if (!world.scene.initiator) world.peer_calls_with(hello);
}

inline std::vector<Happening> what_callers_do() {
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
inline std::vector<Message> every_message() {
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

inline std::vector<Happening> what_peers_say() {
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
inline std::vector<Happening> what_workers_say() {
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

}  // namespace sluice::transfer::test
