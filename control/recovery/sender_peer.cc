// What the peer says to a sender: what it holds, what it needs again, what is done.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/recovery/sender.h"

namespace sluice::recovery {
namespace {

constexpr uint64_t kRepairShareNs = 1'000'000'000;  // A lane counts as busy with a repair for so long.

}  // namespace

void Sender::peer_has(ObjectId id, const std::vector<Range>& ranges) {
  if (!objects_.contains(id) || objects_[id].done) return;
  Object& object = objects_[id];
  for (const Range& told : ranges) {
    if (told.offset >= object.layout.size_bytes) continue;
    const Range range = object.at_peer.cut(told);
    for (const ExtentRun& run : object.at_peer.missing(object.at_peer.whole_in(range))) {
      object.given.set(run);
      bytes_held_ += object.at_peer.set(run);
      if (options_.obeys_wants) continue;
      for (const ExtentRun& unknown : object.ledger.map().missing(run)) note_unknown(id, unknown);
    }
    forget_placed(object, range);
    if (options_.obeys_wants) want_no_more(id, {range});
    // A repair that a former control ordered may have sent an extent on a second lane. The peer lists the
    // extent for one of the two, and the other would hold it for ever.
    tell_flows_peer_has(id, range);
  }
  ++steps_;
}

// The CRCs of these are not known here, so they are to be read again.
void Sender::note_unknown(ObjectId id, ExtentRun extents) {
  Object& object = objects_[id];
  for (const ExtentRun& run : object.unknown.missing(extents)) {
    object.unknown.set(run);
    if (!unknown_.empty() && unknown_.back().object == id && unknown_.back().end == run.first) {
      unknown_.back().end = run.end;
    } else {
      unknown_.push_back({.object = id, .first = run.first, .end = run.end});
    }
  }
}

void Sender::tell_flows_peer_has(ObjectId id, Range range) {
  const bool lanes_may_hold = may_give_ || adopted_;
  if (!lanes_may_hold || range.length == 0) return;
  for (const auto& [flow, work] : lanes_)
    order({.kind = board::CommandKind::kPeerHas, .flow = flow, .object = id, .range = range});
}

// Where the peer has a whole range, no worker there holds a part of it: its lane does not matter any more.
void Sender::forget_placed(Object& object, Range range) {
  auto at = object.placed.upper_bound(range.offset);
  if (at != object.placed.begin()) --at;
  while (at != object.placed.end() && at->first < range.end()) {
    const bool all = object.at_peer.complete({.offset = at->first, .length = at->second.end - at->first});
    at = all ? object.placed.erase(at) : std::next(at);
  }
}

void Sender::note_told(LegId leg) {
  Told told;
  for (const Object& object : objects_) {
    told.before.push_back(object.at_peer);
    told.listed.push_back(ExtentMap(object.layout));
  }
  told_.insert_or_assign(leg, std::move(told));
}

void Sender::peer_lists(LegId leg, ObjectId id, const std::vector<Range>& ranges) {
  peer_has(id, ranges);
  const auto told = told_.find(leg);
  if (told == told_.end() || !told->second.listed.contains(id)) return;
  ExtentMap& listed = told->second.listed[id];
  for (const Range& range : ranges) {
    if (range.offset < objects_[id].layout.size_bytes) listed.set(listed.whole_in(listed.cut(range)));
  }
}

// What the peer lists on this leg it sent after it had told the rest on others. So what is missing there it
// has no more, and where lanes are said to have it, their workers may have let it go.
void Sender::compare_lists(LegId leg) {
  const auto told = told_.extract(leg);
  if (told.empty()) return;
  for (ObjectId id; id < told.mapped().before.end_id(); ++id) {
    Object& object = objects_[id];
    const ExtentMap& before = told.mapped().before[id];
    bool lost = false;
    for (ExtentId at = before.next_set(ExtentId(0)); at < before.end_id() && !object.done;) {
      const ExtentId end = before.next_clear({at, before.end_id()});
      for (const ExtentRun& run : told.mapped().listed[id].missing({at, end})) lost |= lose(object, run);
      at = before.next_set(end);
    }
    if (lost) give_from_start(id);
  }
}

// Of these extents the peer has lost what it had: that is left to give. False: it had none, or has asked for
// them again by now, which its lane knows.
bool Sender::lose(Object& object, ExtentRun extents) {
  bool lost = false;
  for (ExtentId at = object.at_peer.next_set(extents.first); at < extents.end;) {
    const ExtentRun run{at, object.at_peer.next_clear({at, extents.end})};
    bytes_held_ -= object.at_peer.clear(run);
    object.given.clear(run);
    take_from_lanes(object, object.at_peer.bytes_of(run));
    lost = true;
    at = object.at_peer.next_set(run.end);
  }
  return lost;
}

// What a lane has on either side of the range it keeps.
void Sender::take_from_lanes(Object& object, Range range) {
  std::vector<std::pair<uint64_t, Placed>> kept;
  const auto keep = [&kept](const Placed& placed, uint64_t offset, uint64_t end) {
    if (offset >= end) return;
    const uint64_t sent_end = std::clamp(placed.sent_end, offset, end);
    kept.push_back({offset, {.end = end, .sent_end = sent_end, .flow = placed.flow}});
  };
  std::erase_if(object.placed, [&](const auto& each) {
    const Placed& placed = each.second;
    if (each.first >= range.end() || range.offset >= placed.end) return false;
    keep(placed, each.first, range.offset);
    keep(placed, range.end(), placed.end);
    return true;
  });
  for (const auto& [offset, placed] : kept) add_placed(object, offset, placed);
}

void Sender::peer_said_all(LegId leg) {
  compare_lists(leg);
  may_give_ = true;
  for (auto& [flow, work] : lanes_) work.ready |= flow.leg == leg;
  give_parts();
  for (ObjectId id; id < objects_.end_id(); ++id) {
    // Workers that were found may still have some of it.
    if (objects_[id].withdrawn)
      tell_flows_peer_has(id, {.offset = 0, .length = objects_[id].layout.size_bytes});
    finish_or_report(id);
  }
}

void Sender::report_again(LegId leg) {
  for (ObjectId id; id < objects_.end_id(); ++id) {
    Object& object = objects_[id];
    if (object.done || object.withdrawn) continue;
    for (const auto& [offset, placed] : object.placed) {
      if (placed.sent_end == offset || placed.flow.leg != leg) continue;
      actions_.sent.push_back({.object = id,
                               .flow = placed.flow,
                               .range = {.offset = offset, .length = placed.sent_end - offset}});
    }
    object.digest_reported = false;
    finish_or_report(id);
  }
}

// The range on a lane that the byte at `offset` belongs to, if it is known.
Sender::Placed* Sender::placed_at(Object& object, uint64_t offset) {
  auto at = object.placed.upper_bound(offset);
  if (at == object.placed.begin()) return nullptr;
  --at;
  return offset < at->second.end ? &at->second : nullptr;
}

// Parts of extents go again on the lane that the peer names, since its worker there has the rest of them;
// after a restart of this control only the peer knows which that is. Whole extents go on the lane that
// carried them, if that is known. What was never sent is not repaired: it comes in its turn. A peer that was
// restarted does not know what was sent, and asks for all that it lacks.
void Sender::peer_needs(ObjectId id, std::optional<FlowRef> told_flow, const std::vector<Range>& ranges) {
  if (!objects_.contains(id) || objects_[id].done || objects_[id].withdrawn) return;
  Object& object = objects_[id];
  const FlowRef first = lanes_.empty() ? FlowRef() : lanes_.begin()->first;
  for (const Range& told : ranges) {
    const Range range = object.at_peer.cut(told);
    // Neighbouring pieces that go on one lane are joined into one repair.
    Range repair{.offset = range.offset, .length = 0};
    FlowRef flow = first;
    for (uint64_t at = range.offset; at < range.end();) {
      const Placed* placed = placed_at(object, at);
      const ExtentRun run = alike(object, placed, {.offset = at, .length = range.end() - at});
      const ExtentId extent = run.first;
      const Range whole = object.at_peer.bytes_of(run);
      const uint64_t piece_end = std::min(range.end(), whole.end());
      // The peer may have had it and lost it, to a sync that failed.
      bytes_held_ -= object.at_peer.clear(run);
      // Where a part is missing another part has come: the extent was sent, though nobody here may know.
      const bool part = at != whole.offset || piece_end != whole.end();
      const bool sent = placed != nullptr ? at < placed->sent_end : object.given.is_set(extent);
      // A peer that is obeyed wants again what a former control sent.
      const bool repeat = sent || (!options_.obeys_wants && (part || object.ledger.map().is_set(extent)));
      const FlowRef known_flow = placed != nullptr ? placed->flow : told_flow.value_or(first);
      const FlowRef its_flow = part ? told_flow.value_or(known_flow) : known_flow;
      if (!repeat || its_flow != flow || repair.end() != at) {
        order_repair(flow, id, repair);
        repair = {.offset = at, .length = 0};
        flow = its_flow;
      }
      if (repeat) {
        repair.length += piece_end - at;
        object.given.set(run);
        at = piece_end;
      } else {
        at = placed != nullptr
                 ? piece_end
                 : std::max(piece_end, never_sent_until(object, {.offset = at, .length = range.end() - at}));
        repair.offset = at;
      }
    }
    order_repair(flow, id, repair);
  }
}

// Extents from the beginning of `range` on that a peer who needs them is answered alike: of holes, which no
// lane has and whose sums are known, all that lie whole in it, so that a word about them costs no time;
// otherwise one.
ExtentRun Sender::alike(const Object& object, const Placed* placed, Range range) {
  const ExtentId first = object.at_peer.extent_at(range.offset);
  const ExtentRun whole = object.at_peer.whole_in(range);
  const ExtentRun one{first, first.plus(1)};
  if (placed != nullptr || whole.first != first || whole.end <= first) return one;
  ExtentId end = object.ledger.map().next_clear(whole);
  end = std::min(end,
                 object.given.is_set(first) ? object.given.next_clear(whole) : object.given.next_set(first));
  const auto next = object.placed.upper_bound(range.offset);
  if (next != object.placed.end()) end = std::min(end, object.at_peer.extent_at(next->first));
  return end > first ? ExtentRun{first, end} : one;
}

// The end of the run, from the start of `range` on, that was neither given to a lane nor ever sent.
uint64_t Sender::never_sent_until(const Object& object, Range range) {
  const auto run_end = [&](const ExtentMap& map) {
    const std::vector<Range> run = map.missing(range, 1);
    return run.empty() || run.front().offset != range.offset ? range.offset : run.front().end();
  };
  return std::min(run_end(object.given), run_end(object.ledger.map()));
}

void Sender::order_repair(FlowRef flow, ObjectId id, Range range) {
  // A lane that is not there repairs nothing; the peer will ask again.
  if (range.length == 0 || !lanes_.contains(flow)) return;
  order({.kind = board::CommandKind::kRepair, .flow = flow, .object = id, .range = range});
  lanes_[flow].repair_until_ns = now_ns_ + kRepairShareNs;
}

bool Sender::file_done(ObjectId id, uint64_t digest) {
  if (!objects_.contains(id)) return false;
  Object& object = objects_[id];
  if (object.done) return true;
  object.peer_digest = digest;
  peer_has(id, {{.offset = 0, .length = object.layout.size_bytes}});
  finish_or_report(id);
  return true;
}

// Lanes drop what they have of it as if the peer had it.
void Sender::withdraw(ObjectId id) {
  Object& object = objects_[id];
  if (object.done || std::exchange(object.withdrawn, true)) return;
  object.placed.clear();
  end_wants(id);
  tell_flows_peer_has(id, {.offset = 0, .length = object.layout.size_bytes});
  give_parts();
  ++steps_;
}

void Sender::failed(ObjectId id) {
  withdraw(id);
  Object& object = objects_[id];
  if (object.done) return;
  bytes_held_ -= object.at_peer.set_bytes();
  object.failed = object.done = true;
  ++done_;
  ++steps_;
  actions_.done.push_back(id);
}

}  // namespace sluice::recovery
