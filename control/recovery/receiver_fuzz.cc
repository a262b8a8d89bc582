// A receiver between any peer and any dataplane, with syncs that end well or not: what it asks for lies in
// the objects, what it counts adds up, and a file is finished only when all of it is there with equal
// digests.
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <set>

#include "control/recovery/receiver.h"
#include "dataplane/base/check.h"
#include "dataplane/base/input_for_fuzz.h"

namespace {

using namespace sluice;
using namespace sluice::recovery;
using board::CommandKind;
using board::EventKind;

constexpr uint32_t kExtentBytes = 65536;
constexpr uint32_t kLanes = 3;

struct World {
  Indexed<ObjectId, Layout> layouts;
  uint64_t now_ns = 1'000'000'000;
  Indexed<ObjectId, std::map<ExtentId, uint64_t>> crcs;  // extents written, as told
  std::set<ObjectId> finished;
  std::vector<LaneCommand> queries;  // not yet answered, like what is to be given up
  struct GivenUp {
    uint32_t tag = 0;
    uint32_t answers = 0;
    bool writing = false;
  };
  std::map<ObjectId, GivenUp> given_up;  // since anything of it was wanted last
  std::set<ObjectId> syncing;            // begun
  std::set<ObjectId> synced;             // rows given, not yet durable
  bool restored = false;                 // rows of the journal: the model does not know their CRCs
};

ObjectId an_object(const World& world, fuzz::Input& input) {
  return ObjectId(input.take<uint8_t>() % static_cast<uint32_t>(world.layouts.size()));
}

ObjectId any_object(const World& world, fuzz::Input& input) {
  const uint32_t n = input.take<uint8_t>();
  return ObjectId(n < 250 ? n % static_cast<uint32_t>(world.layouts.size())
                          : static_cast<uint32_t>(input.edge()));
}

Range any_extents(fuzz::Input& input) {
  const uint64_t offset = input.flag() ? input.edge() : uint64_t{input.below(100)} * kExtentBytes;
  const uint64_t length = input.flag() ? input.edge() : uint64_t{input.below(100)} * kExtentBytes;
  return {.offset = offset, .length = length};
}

void check_range(const World& world, ObjectId object, Range range) {
  fuzz::require(world.layouts.contains(object), "an object of the session");
  const uint64_t size = world.layouts[object].size_bytes;
  fuzz::require(range.length > 0 && range.offset < size && range.length <= size - range.offset,
                "a range of the object");
}

uint64_t digest_of(const World& world, ObjectId object) {
  const Layout& layout = world.layouts[object];
  uint64_t digest = 0;
  for (const auto& [extent, crc] : world.crcs[object]) {
    const uint64_t end = std::min((extent.value() + 1) * kExtentBytes, layout.size_bytes);
    digest ^= crc::shift(layout.crc_kind, crc, layout.size_bytes - end);
  }
  return digest;
}

void check_sums(const World& world, const Receiver& receiver) {
  uint64_t written = 0;
  size_t done = 0;
  for (ObjectId i; i < world.layouts.end_id(); ++i) {
    const ExtentMap& map = receiver.written(i);
    done += receiver.done(i) ? 1 : 0;
    written += receiver.done(i) ? world.layouts[i].size_bytes : map.set_bytes();
    if (receiver.done(i)) continue;
    for (ExtentId extent; extent < map.end_id(); ++extent) {
      fuzz::require(!receiver.ledger(i).map().is_set(extent) || map.is_set(extent),
                    "what is durable is written");
    }
    if (const auto sums = receiver.sums(i).whole())
      fuzz::require(map.complete() && sums->crc64 == receiver.digest(i), "sums are of all that is written");
    if (world.restored) continue;
    fuzz::require(map.set_extents() == world.crcs[i].size(), "as many extents as were told");
    fuzz::require(receiver.digest(i) == digest_of(world, i), "and their digest");
  }
  fuzz::require(receiver.bytes_written() == written, "bytes written add up");
  fuzz::require(receiver.unsynced_bytes() <= written, "no more is unsynced than is written");
  fuzz::require(receiver.all_done() == (done == world.layouts.size()), "all done when each is");
}

void check(World& world, Receiver& receiver) {
  const Receiver::Actions actions = receiver.take_actions();
  for (const LaneCommand& command : actions.commands) {
    fuzz::require(command.flow.leg == LegId() && command.flow.lane < LaneId(kLanes), "a lane of the session");
    const bool query =
        command.kind == CommandKind::kQueryMissing || command.kind == CommandKind::kQueryUnwritten;
    if (query || command.kind == CommandKind::kGiveUp) world.queries.push_back(command);
    World::GivenUp& given_up = world.given_up[command.object];
    if (command.kind == CommandKind::kForgetExtents) given_up = {};
    if (command.kind == CommandKind::kGiveUp && command.tag != given_up.tag) given_up = {.tag = command.tag};
    const bool barrier = query && command.range.length == 0;  // Or the file is empty.
    if (!barrier) check_range(world, command.object, command.range);
    fuzz::require(
        query || command.kind == CommandKind::kForgetExtents || command.kind == CommandKind::kGiveUp,
        "queries, forgetting and giving up are all a receiver asks for");
    fuzz::require(command.kind != CommandKind::kGiveUp || receiver.written(command.object).complete(),
                  "nothing that is still wanted is given up");
  }
  for (const Need& need : actions.needs) {
    fuzz::require(need.ranges.size() <= NeedPlanner::kRangesMax, "a need is bounded");
    for (const Range& range : need.ranges) check_range(world, need.object, range);
  }
  for (const ObjectId object : actions.finished) {
    fuzz::require(receiver.written(object).complete(), "finished is complete");
    fuzz::require(receiver.source_digest(object) == receiver.digest(object), "with equal digests");
    fuzz::require(receiver.ledger(object).complete() ||
                      world.layouts[object].size_bytes <= Receiver::kDirectCommitBytes,
                  "and durable, or small");
    const World::GivenUp& given_up = world.given_up[object];
    fuzz::require(world.layouts[object].size_bytes == 0 || (given_up.answers == kLanes && !given_up.writing),
                  "and no worker writes of it any more");
    fuzz::require(world.finished.insert(object).second, "once");
  }
  check_sums(world, receiver);
}

void written(World& world, Receiver& receiver, fuzz::Input& input) {
  const ObjectId object = an_object(world, input);
  const uint64_t size = world.layouts[object].size_bytes;
  ExtentId extent(input.below(100));
  for (uint32_t n = input.flag() ? 1 : 100; n > 0 && extent.value() * kExtentBytes < size; --n, ++extent) {
    const uint64_t offset = extent.value() * kExtentBytes;
    const uint64_t crc = (offset + 1) * 0x9E3779B97F4A7C15 + (n == 1 ? input.below(2) : 0);
    if (!receiver.done(object) && !receiver.written(object).is_set(extent)) world.crcs[object][extent] = crc;
    receiver.on_event({.kind = EventKind::kExtentWritten,
                       .object = object.value(),
                       .tag = board::kSumCrc64,
                       .offset = offset,
                       .length = std::min<uint64_t>(kExtentBytes, size - offset),
                       .digest = crc,
                       .sums = {.blake3 = {}, .crc64 = crc, .crc32c = 0, .adler32 = 0}});
  }
}

// Anything but an extent that makes sense as written: that is above.
void any_event(World& world, Receiver& receiver, fuzz::Input& input) {
  board::Event event{.kind = static_cast<EventKind>(1 + input.below(12)),
                     .object = any_object(world, input).value(),
                     .tag = input.flag() ? Receiver::kAdoptTag : input.below(8),
                     .offset = input.flag() ? input.edge() : uint64_t{input.below(100)} * kExtentBytes,
                     .length = input.flag() ? input.edge() : kExtentBytes + 1};
  if (event.kind == EventKind::kExtentWritten) event.length = kExtentBytes + 1;
  if (event.kind == EventKind::kGivenUp) event.tag = UINT32_MAX;  // of a round that never was
  receiver.on_event(event);
}

// A worker's answer to a query: runs of what was asked, or of something else.
void answer(World& world, Receiver& receiver, fuzz::Input& input) {
  if (world.queries.empty()) return;
  const LaneCommand query = world.queries.front();
  world.queries.erase(world.queries.begin());
  board::Event event{.kind = EventKind::kMissing, .object = query.object.value(), .tag = query.tag};
  if (query.kind == CommandKind::kGiveUp) {
    event.kind = EventKind::kGivenUp;
    event.length = input.below(4) == 0 ? kExtentBytes : 0;
    World::GivenUp& given_up = world.given_up[query.object];
    if (given_up.tag == query.tag) {
      ++given_up.answers;
      given_up.writing |= event.length != 0;
    }
    return receiver.on_event(event);
  }
  for (uint32_t n = input.below(4); n > 0; --n) {
    event.offset = input.below(8) == 0 ? input.edge() : query.range.offset + uint64_t{input.below(10)} * 8192;
    event.length = input.below(8) == 0 ? input.edge() : 1 + input.take<uint16_t>();
    receiver.on_event(event);
  }
  event.kind = EventKind::kMissingEnd;
  receiver.on_event(event);
}

void sync(World& world, Receiver& receiver, ObjectId object, uint32_t how) {
  if (!world.syncing.contains(object)) {
    if (receiver.begin_sync(object) > 0) world.syncing.insert(object);
  } else if (!world.synced.contains(object)) {
    if (how % 4 == 0) {
      (void)receiver.sync_failed(object);
      std::erase_if(world.crcs[object],
                    [&](const auto& entry) { return !receiver.written(object).is_set(entry.first); });
      world.syncing.erase(object);
    } else {
      for (const Block& block : receiver.sync_succeeded(object))
        fuzz::require(block.bytes.size() >= 16, "a row");
      world.synced.insert(object);
    }
  } else {
    if (how % 4 == 0) {
      receiver.not_journalled(object);
    } else {
      for (const Range& range : receiver.journalled(object)) check_range(world, object, range);
    }
    world.syncing.erase(object);
    world.synced.erase(object);
  }
}

void operate(World& world, Receiver& receiver, fuzz::Input& input) {
  const ObjectId object = an_object(world, input);
  switch (input.below(17)) {
    case 0:
    case 1:
    case 2:
      written(world, receiver, input);
      break;
    case 3:
      any_event(world, receiver, input);
      break;
    case 4:
    case 5: {
      const Range range = any_extents(input);
      const ObjectId which = any_object(world, input);
      (void)receiver.partition_sent(which, {.leg = {}, .lane = LaneId(input.below(kLanes + 1))}, range);
      break;
    }
    case 6: {
      const ObjectId which = any_object(world, input);
      const bool honest = input.flag() && world.layouts.contains(which);
      Receiver::FileDigest file;
      file.digest = honest ? receiver.digest(which) : input.take<uint64_t>();
      file.size_bytes = honest ? world.layouts[which].size_bytes : input.edge();
      (void)receiver.file_digest(which, file);
      break;
    }
    case 7:
    case 8:
      receiver.tick(world.now_ns += input.edge() % 1'000'000'000);
      break;
    case 9:
    case 10:
      sync(world, receiver, object, input.take<uint8_t>());
      break;
    case 11:
      if (world.finished.contains(object)) receiver.set_done(object, receiver.digest(object));
      break;
    case 12:
      if (receiver.done(object) || world.syncing.contains(object)) break;
      receiver.begin_anew(object);
      world.finished.erase(object);
      world.given_up.erase(object);
      world.crcs[object].clear();
      break;
    case 13:
    case 14:
      for (uint32_t n = 1 + input.below(16); n > 0; --n) answer(world, receiver, input);
      break;
    case 15:
      world.finished.clear();
      world.given_up.clear();
      receiver.start_attempt(LegId(), kLanes, world.now_ns);
      break;
    default: {
      std::vector<ObjectId> open;
      for (ObjectId i; i < world.layouts.end_id(); ++i) {
        if (input.flag()) open.push_back(i);
      }
      world.finished.clear();
      world.given_up.clear();
      receiver.adopt(LegId(), kLanes, open, world.now_ns);
    }
  }
}

void check_held(const World& world, const Receiver& receiver) {
  for (ObjectId i; i < world.layouts.end_id(); ++i) {
    uint64_t bytes = 0;
    for (const Range& range : receiver.held(i)) {
      check_range(world, i, range);
      bytes += range.length;
    }
    fuzz::require(bytes == receiver.written(i).set_bytes(), "what is held is what is written");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  base::set_dchecks(true);
  fuzz::Input input(data, size);
  World world;
  for (uint32_t n = input.below(4) + 1; n > 0; --n) {
    world.layouts.push_back({.size_bytes = input.take<uint32_t>() % (100 * kExtentBytes),
                             .extent_bytes = kExtentBytes,
                             .crc_kind = crc::CrcKind::kCrc64Ecma});
  }
  world.crcs.resize(world.layouts.size());
  Receiver receiver(world.layouts, kLanes, {.sync_lag_bytes = input.edge(), .sync_lag_ns = input.edge()});
  for (ObjectId i; i < world.layouts.end_id(); ++i) receiver.sum(i, board::kSumCrc64);
  for (uint32_t n = input.below(3); n > 0; --n) {
    world.restored = true;
    (void)receiver.restore(ObjectId(input.below(static_cast<uint32_t>(world.layouts.size()))),
                           {.id = BlockId(input.below(3)), .bytes = input.text(input.take<uint8_t>() * 8U)});
  }
  receiver.finish_restore();
  check(world, receiver);
  while (!input.empty()) {
    operate(world, receiver, input);
    check(world, receiver);
  }
  check_held(world, receiver);
  return 0;
}
