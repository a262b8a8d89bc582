// A sender between any peer and any dataplane: whatever both say, in any order, what it commands and reports
// lies in the objects, no byte is given twice in one attempt, and a file is done only with equal digests. One
// that obeys wants gives nothing that the peer has not asked for.
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "control/recovery/sender.h"
#include "dataplane/base/check.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

using namespace sluice;
using namespace sluice::recovery;
using board::CommandKind;
using board::EventKind;

constexpr uint32_t kExtentBytes = 65536;
constexpr size_t kPartitionsMax = 16;  // what a worker takes
constexpr LegId kSecondLeg(1);

struct World {
  Indexed<ObjectId, Layout> layouts;
  std::vector<uint32_t> lanes = {1, 0};  // of each leg
  uint64_t now_ns = 1'000'000'000;
  std::map<FlowRef, std::deque<LaneCommand>> queued;  // at each worker, not yet sent
  std::set<std::pair<ObjectId, uint64_t>> given;      // offsets of extents, since a leg ended
  std::set<ObjectId> done;
  std::set<std::pair<ObjectId, uint64_t>> wanted;  // and not given since
  bool hostile_board = false;

  bool obeys_wants() const { return layouts.size() == 4; }  // so that inputs of before keep their meaning

  bool has(FlowRef flow) const {
    return flow.leg.value() < lanes.size() && flow.lane.value() < lanes[flow.leg.value()];
  }
};

Indexed<ObjectId, Layout> any_layouts(fuzz::Input& input) {
  Indexed<ObjectId, Layout> layouts;
  for (uint32_t n = input.below(4) + 1; n > 0; --n) {
    layouts.push_back({.size_bytes = input.take<uint32_t>() % (100 * kExtentBytes),
                       .extent_bytes = kExtentBytes,
                       .crc_kind = crc::CrcKind::kCrc64Ecma});
  }
  return layouts;
}

Sender::Options any_options(const World& world, fuzz::Input& input) {
  const uint64_t partition_bytes = uint64_t{1 + input.below(16)} * kExtentBytes;
  return {.partition_bytes = partition_bytes,
          .short_bytes = partition_bytes,
          .lane_rate_bps = input.edge(),
          .obeys_wants = world.obeys_wants()};
}

std::vector<Range> any_ranges(fuzz::Input& input) {
  std::vector<Range> ranges;
  for (uint32_t n = input.below(5); n > 0; --n) {
    const bool odd = input.below(4) == 0;
    const uint64_t offset = odd ? input.edge() : uint64_t{input.below(100)} * kExtentBytes;
    const uint64_t length = odd ? input.edge() : uint64_t{input.below(20)} * kExtentBytes;
    ranges.push_back({.offset = offset, .length = length});
  }
  return ranges;
}

ObjectId an_object(const World& world, fuzz::Input& input) {
  return ObjectId(input.below(static_cast<uint32_t>(world.layouts.size())));
}

ObjectId any_object(const World& world, fuzz::Input& input) {
  const uint32_t n = input.take<uint8_t>();
  return ObjectId(n < 250 ? n % static_cast<uint32_t>(world.layouts.size())
                          : static_cast<uint32_t>(input.edge()));
}

uint64_t crc_of(ObjectId object, uint64_t offset) {
  return (offset + 1) * 0x9E3779B97F4A7C15 + object.value();
}

uint64_t digest_of(const World& world, ObjectId object) {
  const Layout& layout = world.layouts[object];
  uint64_t digest = 0;
  for (uint64_t at = 0; at < layout.size_bytes; at += kExtentBytes) {
    const uint64_t end = std::min<uint64_t>(at + kExtentBytes, layout.size_bytes);
    digest ^= crc::shift(layout.crc_kind, crc_of(object, at), layout.size_bytes - end);
  }
  return digest;
}

void check_range(const World& world, ObjectId object, Range range) {
  fuzz::require(world.layouts.contains(object), "an object of the session");
  const uint64_t size = world.layouts[object].size_bytes;
  fuzz::require(range.length > 0 && range.offset < size && range.length <= size - range.offset,
                "a range of the object");
}

void check(World& world, Sender& sender) {
  const Sender::Actions actions = sender.take_actions();
  for (const LaneCommand& command : actions.commands) {
    check_range(world, command.object, command.range);
    fuzz::require(world.has(command.flow), "a flow of this attempt");
    if (command.kind != CommandKind::kPartition) {
      fuzz::require(command.kind == CommandKind::kRepair || command.kind == CommandKind::kPeerHas,
                    "partitions and repairs are all a sender asks for");
      continue;
    }
    fuzz::require(command.range.offset % kExtentBytes == 0, "partitions begin with an extent");
    world.queued[command.flow].push_back(command);
    fuzz::require(world.hostile_board || world.queued[command.flow].size() <= kPartitionsMax,
                  "a worker takes no more");
    for (uint64_t at = command.range.offset; at < command.range.end(); at += kExtentBytes) {
      fuzz::require(world.obeys_wants() ? world.wanted.erase({command.object, at}) != 0
                                        : world.given.insert({command.object, at}).second,
                    "no extent is given twice, or without being wanted");
    }
  }
  for (const Sender::SentRange& sent : actions.sent) {
    check_range(world, sent.object, sent.range);
    fuzz::require(world.has(sent.flow), "sent on a flow of this attempt");
  }
  for (const ObjectId object : actions.digests)
    fuzz::require(!world.obeys_wants() && sender.digest_known(object), "a digest that is known");
  for (const ObjectId object : actions.done) {
    fuzz::require(world.done.insert(object).second && sender.done(object), "done once");
    fuzz::require(world.obeys_wants() || sender.peer_digest(object) == sender.digest(object),
                  "with equal digests");
  }
  uint64_t total = 0;
  for (ObjectId i; i < world.layouts.end_id(); ++i) {
    total += world.layouts[i].size_bytes;
    fuzz::require(sender.bytes_held(i) <= world.layouts[i].size_bytes, "no more held than there is");
  }
  fuzz::require(sender.bytes_held() <= total, "nor in all");
  fuzz::require(sender.all_done() == (world.done.size() == world.layouts.size()), "all done when each is");
}

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
  sender.start_attempt(LegId(), world.lanes.front(), any_options(world, input), world.now_ns);
  for (uint32_t n = input.below(4); n > 0; --n) {
    world.hostile_board = true;
    sender.adopt({.kind = static_cast<EventKind>(9 + input.below(3)),
                  .object = any_object(world, input).value(),
                  .offset = input.flag() ? input.edge() : uint64_t{input.below(100)} * kExtentBytes,
                  .length = input.edge()},
                 {.leg = {}, .lane = LaneId(input.below(world.lanes.front()))});
  }
}

// The second leg joins, or either ends.
void change_legs(World& world, Sender& sender, fuzz::Input& input) {
  const LegId leg(input.below(2));
  uint32_t& lanes = world.lanes[leg.value()];
  if (lanes == 0) {
    if (world.obeys_wants()) return;
    if (input.flag()) sender.note_told(leg);
    lanes = 1 + input.below(4);
    sender.add_leg(leg, lanes, any_options(world, input));
    return;
  }
  lanes = 0;
  sender.drop_leg(leg);
  std::erase_if(world.queued, [leg](const auto& each) { return each.first.leg == leg; });
  world.given.clear();
}

FlowRef any_flow(fuzz::Input& input) {
  return {.leg = LegId(input.below(3)), .lane = LaneId(input.below(8))};
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
      (void)sender.want_digests(object, ranges);
      break;
    case 2:
      sender.forget_wants();
      world.wanted.clear();
      break;
    case 3:
      for (const ObjectId each : sender.digest_desk().waiting()) {
        for (const DigestDesk::Run& run : sender.digest_desk().take(each).runs)
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
      sender.peer_has(any_object(world, input), any_ranges(input));
      break;
    case 4:
      sender.peer_said_all(LegId(input.below(2)));
      break;
    case 5:
      if (world.obeys_wants() && input.below(4) != 0) return want(world, sender, input);
      sender.peer_needs(any_object(world, input), any_flow(input), any_ranges(input));
      break;
    case 6: {
      const ObjectId object = any_object(world, input);
      const bool there = world.layouts.contains(object);
      const bool honest = input.flag() && there;
      fuzz::require(
          sender.file_done(object, honest ? digest_of(world, object) : input.take<uint64_t>()) == there,
          "there is such a file");
      break;
    }
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
        sender.peer_lists(kSecondLeg, an_object(world, input), any_ranges(input));
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
