// What surrounds a sender that is fuzzed: workers and a peer that say anything, and what is known of both, by
// which each command and each word of the sender is judged.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "control/recovery/sender.h"
#include "dataplane/base/input_for_fuzz.h"

namespace sluice::recovery {

using board::CommandKind;
using board::EventKind;

inline constexpr uint32_t kExtentBytes = 65536;
inline constexpr size_t kPartitionsMax = 16;  // what a worker takes
inline constexpr LegId kSecondLeg(1);

using Extent = std::pair<ObjectId, uint64_t>;  // its offset

struct Told {  // of what the peer had when a leg joined, it has no more what it does not list there
  std::set<Extent> before;
  std::set<Extent> listed;
};

struct World {
  Indexed<ObjectId, Layout> layouts;
  std::vector<uint32_t> lanes = {1, 0};  // of each leg
  uint64_t now_ns = 1'000'000'000;
  std::map<FlowRef, std::deque<LaneCommand>> queued;  // at each worker, not yet sent
  std::map<Extent, FlowRef> given;                    // to workers that were there before, too
  std::set<Extent> at_peer;
  std::set<Extent> let_go;  // since they were given the peer had them, and it may have lost them
  std::map<LegId, Told> told;
  std::set<ObjectId> done;
  std::set<std::pair<ObjectId, uint64_t>> wanted;  // and not given since
  bool hostile_board = false;

  bool obeys_wants() const { return layouts.size() == 4; }  // so that inputs of before keep their meaning

  bool has(FlowRef flow) const {
    return flow.leg.value() < lanes.size() && flow.lane.value() < lanes[flow.leg.value()];
  }
};

inline Indexed<ObjectId, Layout> any_layouts(fuzz::Input& input) {
  Indexed<ObjectId, Layout> layouts;
  for (uint32_t n = input.below(4) + 1; n > 0; --n) {
    layouts.push_back({.size_bytes = input.take<uint32_t>() % (100 * kExtentBytes),
                       .extent_bytes = kExtentBytes,
                       .crc_kind = crc::CrcKind::kCrc64Ecma});
  }
  return layouts;
}

inline Sender::Options any_options(const World& world, fuzz::Input& input) {
  const uint64_t partition_bytes = uint64_t{1 + input.below(16)} * kExtentBytes;
  return {.partition_bytes = partition_bytes,
          .short_bytes = partition_bytes,
          .lane_rate_bps = input.edge(),
          .obeys_wants = world.obeys_wants(),
          .digests_unanswered = 1 + input.below(200)};
}

inline std::vector<Range> any_ranges(fuzz::Input& input) {
  std::vector<Range> ranges;
  for (uint32_t n = input.below(5); n > 0; --n) {
    const bool odd = input.below(4) == 0;
    const uint64_t offset = odd ? input.edge() : uint64_t{input.below(100)} * kExtentBytes;
    const uint64_t length = odd ? input.edge() : uint64_t{input.below(20)} * kExtentBytes;
    ranges.push_back({.offset = offset, .length = length});
  }
  return ranges;
}

inline ObjectId an_object(const World& world, fuzz::Input& input) {
  return ObjectId(input.below(static_cast<uint32_t>(world.layouts.size())));
}

inline ObjectId any_object(const World& world, fuzz::Input& input) {
  const uint32_t n = input.take<uint8_t>();
  return ObjectId(n < 250 ? n % static_cast<uint32_t>(world.layouts.size())
                          : static_cast<uint32_t>(input.edge()));
}

inline uint64_t crc_of(ObjectId object, uint64_t offset) {
  return (offset + 1) * 0x9E3779B97F4A7C15 + object.value();
}

inline uint64_t digest_of(const World& world, ObjectId object) {
  const Layout& layout = world.layouts[object];
  uint64_t digest = 0;
  for (uint64_t at = 0; at < layout.size_bytes; at += kExtentBytes) {
    const uint64_t end = std::min<uint64_t>(at + kExtentBytes, layout.size_bytes);
    digest ^= crc::shift(layout.crc_kind, crc_of(object, at), layout.size_bytes - end);
  }
  return digest;
}

// Those that lie in one of the ranges, whole or with a byte.
inline std::vector<Extent> extents_in(const World& world, ObjectId object, const std::vector<Range>& ranges,
                                      bool whole) {
  std::vector<Extent> extents;
  const uint64_t size = world.layouts.contains(object) ? world.layouts[object].size_bytes : 0;
  for (uint64_t at = 0; at < size; at += kExtentBytes) {
    const uint64_t end = std::min<uint64_t>(at + kExtentBytes, size);
    for (const Range& range : ranges) {
      const uint64_t first = std::max(at, range.offset);
      const bool in = first < end && range.length != 0 && first - range.offset < range.length;
      const bool to_end = in && end - range.offset <= range.length;
      if (in && (!whole || (first == at && to_end))) extents.emplace_back(object, at);
    }
  }
  return extents;
}

// A worker that has them is told so, and lets them go.
inline void note_has(World& world, ObjectId object, const std::vector<Range>& ranges) {
  for (const Extent& extent : extents_in(world, object, ranges, true)) {
    world.at_peer.insert(extent);
    world.let_go.insert(extent);
  }
}

inline void note_given(World& world, const LaneCommand& command) {
  for (const Extent& extent : extents_in(world, command.object, {command.range}, false)) {
    fuzz::require(world.given.insert({extent, command.flow}).second, "no extent is given twice");
    fuzz::require(!world.at_peer.contains(extent), "nor given if the peer has it");
    world.let_go.erase(extent);
  }
}

inline void check_range(const World& world, ObjectId object, Range range) {
  fuzz::require(world.layouts.contains(object), "an object of the session");
  const uint64_t size = world.layouts[object].size_bytes;
  fuzz::require(range.length > 0 && range.offset < size && range.length <= size - range.offset,
                "a range of the object");
}

inline void check(World& world, Sender& sender) {
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
    if (world.obeys_wants()) {
      for (uint64_t at = command.range.offset; at < command.range.end(); at += kExtentBytes)
        fuzz::require(world.wanted.erase({command.object, at}) != 0,
                      "no extent is given twice, or without being wanted");
    } else {
      note_given(world, command);
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

inline FlowRef any_flow(fuzz::Input& input) {
  return {.leg = LegId(input.below(3)), .lane = LaneId(input.below(8))};
}

}  // namespace sluice::recovery
