// A sender between any peer and any dataplane: whatever both say, in any order, what it commands and reports
// lies in the objects, no lane is given what another has or what the peer has, and a file is done only with
// equal digests. One that obeys wants gives nothing that the peer has not asked for.
// SPDX-License-Identifier: Apache-2.0
#include "control/recovery/sender_world_for_fuzz.h"
#include "dataplane/base/check.h"

namespace {

using namespace sluice;
using namespace sluice::recovery;

// The worker of a lane sends the next extent of what it was given.
void send_extent(World& world, Sender& sender, FlowRef flow) {
  auto& queue = world.queued[flow];
  if (queue.empty()) return;
  LaneCommand& command = queue.front();
  const uint64_t offset = command.range.offset;
  const uint64_t length = std::min<uint64_t>(kExtentBytes, world.layouts[command.object].size_bytes - offset);
  sender.on_event({.kind = EventKind::kExtentSent,
                   .object = command.object.value(),
                   .offset = offset,
                   .length = length,
                   .digest = crc_of(command.object, offset)},
                  flow);
  if (command.range.length > length) {
    command.range = {.offset = offset + length, .length = command.range.length - length};
    return;
  }
  const LaneCommand last = command;
  queue.pop_front();
  sender.on_event({.kind = EventKind::kPartitionSent,
                   .object = last.object.value(),
                   .offset = last.range.offset,
                   .length = last.range.length},
                  flow);
}

void any_event(World& world, Sender& sender, fuzz::Input& input) {
  const board::Event event{.kind = static_cast<EventKind>(1 + input.below(12)),
                           .object = any_object(world, input).value(),
                           .tag = input.take<uint8_t>(),
                           .offset = input.flag() ? input.edge() : uint64_t{input.below(100)} * kExtentBytes,
                           .length = input.flag() ? input.edge() : kExtentBytes,
                           .digest = input.take<uint64_t>()};
  world.hostile_board = true;
  const LaneId lane(input.flag() ? input.below(4) : static_cast<uint32_t>(input.edge()));
  sender.on_event(event, {.leg = LegId(input.below(3)), .lane = lane});
}

void start_attempt(World& world, Sender& sender, fuzz::Input& input) {
  world.lanes = {1 + input.below(4), 0};
  world.queued.clear();
  world.given.clear();
  world.at_peer.clear();
  world.let_go.clear();
  world.told.clear();
  sender.start_attempt(LegId(), world.lanes.front(), any_options(world, input), world.now_ns);
  for (uint32_t n = input.below(4); n > 0; --n) {
    world.hostile_board = true;
    const board::Event event{
        .kind = static_cast<EventKind>(9 + input.below(3)),
        .object = any_object(world, input).value(),
        .offset = input.flag() ? input.edge() : uint64_t{input.below(100)} * kExtentBytes,
        .length = input.edge()};
    const FlowRef flow{.leg = {}, .lane = LaneId(input.below(world.lanes.front()))};
    sender.adopt(event, flow);
    if (event.kind > EventKind::kHeld || event.offset % kExtentBytes != 0) continue;
    for (const Extent& extent :
         extents_in(world, ObjectId(event.object), {{.offset = event.offset, .length = event.length}}, false))
      world.given.insert_or_assign(extent, flow);
  }
}

void hear_has(World& world, Sender& sender, fuzz::Input& input) {
  const ObjectId object = any_object(world, input);
  const std::vector<Range> ranges = any_ranges(input);
  sender.peer_has(object, ranges);
  note_has(world, object, ranges);
}

void hear_list(World& world, Sender& sender, fuzz::Input& input) {
  const ObjectId object = an_object(world, input);
  const std::vector<Range> ranges = any_ranges(input);
  sender.peer_lists(kSecondLeg, object, ranges);
  note_has(world, object, ranges);
  const auto told = world.told.find(kSecondLeg);
  if (told == world.told.end()) return;
  for (const Extent& extent : extents_in(world, object, ranges, true)) told->second.listed.insert(extent);
}

void hear_said_all(World& world, Sender& sender, fuzz::Input& input) {
  const LegId leg(input.below(2));
  const auto told = world.told.extract(leg);
  if (!told.empty()) {
    for (const Extent& extent : told.mapped().before)
      if (!told.mapped().listed.contains(extent) && world.at_peer.erase(extent) != 0)
        world.given.erase(extent);
  }
  sender.peer_said_all(leg);
}

void hear_needs(World& world, Sender& sender, fuzz::Input& input) {
  const ObjectId object = any_object(world, input);
  const FlowRef flow = any_flow(input);
  const std::vector<Range> ranges = any_ranges(input);
  sender.peer_needs(object, flow, ranges);
  for (const Extent& extent : extents_in(world, object, ranges, false)) world.at_peer.erase(extent);
}

void hear_done(World& world, Sender& sender, fuzz::Input& input) {
  const ObjectId object = any_object(world, input);
  const bool there = world.layouts.contains(object);
  const bool honest = input.flag() && there;
  const uint64_t digest = honest ? digest_of(world, object) : input.take<uint64_t>();
  fuzz::require(sender.file_done(object, digest) == there, "there is such a file");
  note_has(world, object, {{.offset = 0, .length = UINT64_MAX}});
}

// The second leg joins, or either ends.
void change_legs(World& world, Sender& sender, fuzz::Input& input) {
  const LegId leg(input.below(2));
  uint32_t& lanes = world.lanes[leg.value()];
  if (lanes == 0) {
    if (world.obeys_wants()) return;
    if (input.flag()) {
      sender.note_told(leg);
      world.told[leg] = {.before = world.at_peer, .listed = {}};
    }
    lanes = 1 + input.below(4);
    sender.add_leg(leg, lanes, any_options(world, input));
    return;
  }
  lanes = 0;
  sender.drop_leg(leg);
  world.told.erase(leg);
  std::erase_if(world.queued, [leg](const auto& each) { return each.first.leg == leg; });
  // What the peer had and asked for again a repair brings, and nobody knows on which leg.
  std::erase_if(world.given, [&](const auto& each) {
    return each.second.leg == leg || world.let_go.contains(each.first);
  });
}

// Wants, and what a source does with the digests of what it read.
void want(World& world, Sender& sender, fuzz::Input& input) {
  const ObjectId object = any_object(world, input);
  const std::vector<Range> ranges = any_ranges(input);
  switch (input.below(8)) {
    case 0:
      sender.want_no_more(object, ranges);
      break;
    case 1:
      (void)sender.want_digests(object, ranges, ranges.size() % 2 == 0);
      sender.release_last_digests();
      break;
    case 2:
      sender.forget_wants();
      world.wanted.clear();
      break;
    case 3:
      for (const ObjectId each : sender.digest_desk().waiting()) {
        for (const DigestDesk::Run& run : sender.digest_desk().take(each, input.flag()).runs)
          fuzz::require(run.first.plus(run.digests.size()) <= sender.ledger(each).map().end_id(),
                        "digests of extents that there are");
      }
      break;
    default:
      for (const Range& range : ranges) {
        const uint64_t size = world.layouts.contains(object) ? world.layouts[object].size_bytes : 0;
        for (uint64_t at = 0; at < size; at += kExtentBytes)
          if (at >= range.offset && at - range.offset < range.length) world.wanted.insert({object, at});
      }
      sender.want(object, ranges);
  }
}

void operate(World& world, Sender& sender, fuzz::Input& input) {
  switch (input.below(16)) {
    case 0:
    case 1:
    case 2: {
      FlowRef flow{.leg = LegId(input.below(2)), .lane = {}};
      if (const uint32_t lanes = world.lanes[flow.leg.value()]; lanes != 0)
        flow.lane = LaneId(input.below(lanes));
      for (uint32_t n = input.below(40); n > 0; --n) send_extent(world, sender, flow);
      break;
    }
    case 3:
      hear_has(world, sender, input);
      break;
    case 4:
      hear_said_all(world, sender, input);
      break;
    case 5:
      if (world.obeys_wants() && input.below(4) != 0) return want(world, sender, input);
      hear_needs(world, sender, input);
      break;
    case 6:
      hear_done(world, sender, input);
      break;
    case 7:
      sender.report_again(LegId(input.below(2)));
      break;
    case 8:
      any_event(world, sender, input);
      break;
    case 9:
      sender.tick(world.now_ns += input.edge() % 1'000'000'000);
      break;
    case 10:
      start_attempt(world, sender, input);
      break;
    case 11:
      if (const auto unknown = sender.take_unknown()) {
        const ObjectId object = unknown->object;
        fuzz::require(world.layouts.contains(object) && unknown->first < unknown->end,
                      "extents of an object");
        std::vector<uint64_t> crcs;
        for (ExtentId each = unknown->first; each < unknown->end; ++each) {
          fuzz::require(world.obeys_wants() || !sender.ledger(object).map().is_set(each), "not known yet");
          crcs.push_back(crc_of(object, each.value() * kExtentBytes));
        }
        sender.reread(object, unknown->first, crcs);
      }
      break;
    case 12:
      (void)sender.take_changed(an_object(world, input));
      break;
    case 13: {
      const ObjectId object = an_object(world, input);
      const BlockId block(input.below(3));
      (void)sender.restore(object, {.id = block, .bytes = input.text(input.take<uint8_t>() * 8)});
    } break;
    case 14:
      if (input.flag()) {
        change_legs(world, sender, input);
      } else {
        hear_list(world, sender, input);
      }
      break;
    default:
      sender.object_opened(an_object(world, input));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  base::set_dchecks(true);
  fuzz::Input input(data, size);
  World world;
  world.layouts = any_layouts(input);
  Sender sender(world.layouts, 1, any_options(world, input));
  check(world, sender);
  while (!input.empty()) {
    operate(world, sender, input);
    check(world, sender);
  }
  return 0;
}
