// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/destination_control.h"

#include <algorithm>

namespace sluice::sim {
namespace {

Indexed<ObjectId, recovery::Layout> layouts(const Plan& plan) {
  Indexed<ObjectId, recovery::Layout> all;
  for (const uint64_t size : plan.sizes) {
    all.push_back({.size_bytes = size, .extent_bytes = plan.extent_bytes, .crc_kind = plan.crc});
  }
  return all;
}

}  // namespace

DestinationControl::DestinationControl(Host& host)
    : host_(host),
      lanes_(host, board::Direction::kRx),
      receiver_(layouts(host.plan), host.plan.lanes,
                {.sync_lag_bytes = host.plan.sync_lag_bytes, .sync_lag_ns = host.plan.sync_lag_ns}),
      files_(host.plan.sizes.size()) {
  end_ = host.journal.records().end;
  restore();
}

void DestinationControl::restore() {
  const Records& records = host_.journal.records();
  for (const auto& [object, record] : records.files) restore_file(object, record);
  receiver_.finish_restore();
  for (const auto& [object, record] : records.files) {
    if (record.phase == Phase::kDone) {
      receiver_.set_done(ObjectId(object), record.digest);
      continue;
    }
    // Renamed, and nobody wrote that down.
    if (record.phase != Phase::kFinishing || files_[object].inode != 0) continue;
    if (host_.files.find(Oracle::final_name(object)) != record.inode) continue;
    files_[object] = record;
    sync_name(object);
  }
  tell_oracle();
}

void DestinationControl::restore_file(uint32_t object, const FileRecord& record) {
  if (record.phase == Phase::kDone) {
    files_[object] = record;
    return;
  }
  if (host_.files.find(Oracle::temporary_name(object)) != record.inode) return;  // lost, or renamed
  files_[object] = {.inode = record.inode};
  for (const auto& [key, bytes] : host_.journal.records().rows) {
    if (key.first != object) continue;
    if (!receiver_.restore(ObjectId(object), {.id = key.second, .bytes = bytes}))
      host_.oracle.fail("a row of the destination does not restore");
  }
}

// What this control knows to be safe, as it begins.
void DestinationControl::tell_oracle() {
  host_.oracle.begin_restored();
  const Records& records = host_.journal.records();
  for (uint32_t i = 0; i < receiver_.objects(); ++i) {
    const auto record = records.files.find(i);
    const bool named = record != records.files.end() && record->second.inode != 0 &&
                       host_.files.find(Oracle::final_name(i)) == record->second.inode;
    if (named) host_.oracle.restored(i, 0, host_.plan.sizes[i]);
    for (const recovery::Range& range : receiver_.held(ObjectId(i)))
      host_.oracle.restored(i, range.offset, range.length);
  }
  host_.oracle.end_restored();
}

void DestinationControl::fail(End end, const char* reason) {
  if (end_ != End::kNone) return;
  end_ = end;
  host_.trace.add(host_.now_ns(), kDestination, reason);
  host_.oracle.ended(end, reason);
  host_.commit({.end = end}, [] {});
  host_.stream->send(kDestination, {.kind = Kind::kFailure, .end = end});
}

// ---- the peer ------------------------------------------------------------------------------------

void DestinationControl::connected() {
  up_ = true;
  hello_.reset();
  held_due_ = false;
}

void DestinationControl::message(const Message& m) {
  switch (m.kind) {
    case Kind::kHello:
      hello_ = m;
      return;
    case Kind::kPartitionSent:
      if (!receiver_.partition_sent(ObjectId(m.object), LaneId(m.lane), m.ranges.front()))
        host_.oracle.fail("partition_sent of nothing");
      return;
    case Kind::kFileDigest:
      if (!receiver_.file_digest(ObjectId(m.object), {.size_bytes = m.size, .digest = m.digest}))
        host_.oracle.fail("file_digest of nothing");
      return;
    case Kind::kFailure:
      if (end_ == End::kNone) host_.commit({.end = m.end}, [] {});
      end_ = m.end;
      return;
    default:
      return;
  }
}

void DestinationControl::hello(const Message& m) {
  if (end_ != End::kNone && end_ != End::kDone) {
    host_.stream->send(kDestination, {.kind = Kind::kFailure, .end = end_});
    hello_.reset();
    return;
  }
  const bool live = flows_ == Flows::kLive || flows_ == Flows::kFound;
  if (live && !lanes_.any_closed() && !m.flow_ids.empty() && m.flow_ids == lanes_.flow_ids())
    return go_on_with_flows();
  // A file that is being given its name is first brought to its end: bytes of it would have no place to go.
  for (uint32_t i = 0; i < receiver_.objects(); ++i) {
    if (!receiver_.done(ObjectId(i)) && files_[i].phase != Phase::kReceiving) return;
  }
  if (flows_ == Flows::kNone || live) begin_attempt();
}

void DestinationControl::go_on_with_flows() {
  hello_.reset();
  host_.stream->send(kDestination, {.kind = Kind::kReady, .same = true, .flow_ids = lanes_.flow_ids()});
  held_due_ = true;
  if (flows_ == Flows::kLive) return;
  flows_ = Flows::kLive;
  detectors_.clear();
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    detectors_.emplace_back(lanes_.slot(lane).control.settled_below.load());
  }
  std::vector<ObjectId> open;
  for (uint32_t i = 0; i < receiver_.objects(); ++i) {
    if (receiver_.done(ObjectId(i)) || files_[i].phase != Phase::kReceiving) continue;
    open_object(i);
    open.emplace_back(i);
  }
  ++host_.trace.reached.adoptions;
  receiver_.adopt(static_cast<uint32_t>(lanes_.size()), open, host_.now_ns());
}

// New flows: the old ones end, their objects are opened anew.
void DestinationControl::begin_attempt() {
  if (lanes_.size() > 0) lanes_.close();
  flows_ = Flows::kClosing;
}

// The journal knows a file before any flow can write to it: whoever finds the flow finds the file.
void DestinationControl::make_files() {
  Transaction t;
  for (uint32_t i = 0; i < receiver_.objects(); ++i) {
    FileRecord& file = files_[i];
    if (receiver_.done(ObjectId(i)) || file.inode != 0) continue;
    const std::string name = Oracle::temporary_name(i);
    if (host_.files.find(name) != 0) host_.files.remove(name);  // nobody knows what it is
    file.inode = host_.files.create(name);
    host_.files.resize(file.inode, (host_.plan.sizes[i] + 4095) / 4096 * 4096);
    t.files[i] = file;
    t.restart.push_back(i);
  }
  flows_ = Flows::kFiles;
  if (t.files.empty()) return open_flows();
  directory_synced_ = false;
  host_.commit(std::move(t), [this] {
    if (flows_ == Flows::kFiles) open_flows();
  });
}

void DestinationControl::open_object(uint32_t object) {
  host_.oracle.bind(files_[object].inode, object);
  if (host_.dataplane->object_open(object)) return;
  const uint32_t direct = host_.plan.direct ? uint32_t{board::kObjectDirect} : 0;
  host_.dataplane->open_object(object, board::kObjectWrite | direct, host_.disk.open(files_[object].inode),
                               host_.plan.sizes[object]);
}

void DestinationControl::open_attempt() {
  bool closed = true;
  for (uint32_t i = 0; i < receiver_.objects(); ++i) closed &= host_.dataplane->close_object(i);
  if (!closed) return;
  receiver_.start_attempt(host_.plan.lanes, host_.now_ns());
  detectors_.assign(host_.plan.lanes, {});
  make_files();
}

void DestinationControl::open_flows() {
  if (!lanes_.attached()) return;  // the next tick begins anew
  for (uint32_t i = 0; i < receiver_.objects(); ++i) {
    if (!receiver_.done(ObjectId(i)) && files_[i].phase == Phase::kReceiving) open_object(i);
  }
  const uint32_t base = lanes_.next_slots();
  std::vector<uint64_t> ids;
  for (uint32_t lane = 0; lane < host_.plan.lanes; ++lane) {
    ids.push_back((host_.random.next() & ~uint64_t{0xFFFF}) | (base + lane));
  }
  lanes_.open(ids);
  ++host_.trace.reached.attempts;
  host_.trace.reached.resumed += receiver_.bytes_written() > 0 ? 1 : 0;
  flows_ = Flows::kOpening;
}

void DestinationControl::send_held() {
  held_due_ = false;
  for (uint32_t i = 0; i < receiver_.objects(); ++i) {
    if (receiver_.done(ObjectId(i))) {
      host_.stream->send(kDestination, {.kind = Kind::kFileDone, .object = i, .digest = files_[i].digest});
      continue;
    }
    std::vector<recovery::Range> held = receiver_.held(ObjectId(i));
    if (!held.empty())
      host_.stream->send(kDestination, {.kind = Kind::kHeld, .object = i, .ranges = std::move(held)});
  }
  host_.stream->send(kDestination, {.kind = Kind::kHeldEnd});
}

// ---- the board -------------------------------------------------------------------------------------

void DestinationControl::check_dataplane() {
  if (lanes_.attached()) return;
  if (flows_ != Flows::kNone) {
    lanes_.drop();
    flows_ = Flows::kNone;
    receiver_.start_attempt(host_.plan.lanes, host_.now_ns());
    if (up_) host_.stream->close(kDestination);
    up_ = false;
    hello_.reset();
  }
  if (host_.dataplane == nullptr) return;
  lanes_.attach();
  if (lanes_.size() > 0) flows_ = Flows::kFound;
}

void DestinationControl::on_event(const board::Event& event, uint32_t) {
  if (event.kind == board::EventKind::kFlowClosed) {
    // An earlier control's doing: the source calls again, and gets new flows.
    if (flows_ != Flows::kLive || !up_) return;
    host_.stream->close(kDestination);
    up_ = false;
    return;
  }
  if (event.kind == board::EventKind::kExtentFailed) {
    return event.value == ENOSPC ? fail(End::kNoSpace, "no space")
                                 : fail(End::kWriteFailed, "a write failed");
  }
  receiver_.on_event(event);
}

void DestinationControl::detect_losses() {
  for (uint32_t lane = 0; lane < detectors_.size() && lane < lanes_.size(); ++lane) {
    if (recovery::detect_losses(&detectors_[lane], &lanes_.slot(lane), host_.now_ns()) != 0)
      host_.dataplane->wake(lanes_.at(lane).worker, host_.now_ns());
  }
}

void DestinationControl::do_out() {
  const bool flows = lanes_.attached() && flows_ == Flows::kLive;
  recovery::Receiver::Actions out = receiver_.take_actions();
  for (const recovery::LaneCommand& command : out.commands) {
    if (flows) lanes_.command(command);
  }
  host_.trace.reached.needs += out.needs.size();
  for (recovery::Need& need : out.needs) {
    host_.stream->send(kDestination, {.kind = Kind::kNeed,
                                      .object = need.object.value(),
                                      .lane = need.lane.value(),
                                      .ranges = std::move(need.ranges)});
  }
  if (!out.differ.empty()) return fail(End::kIntegrity, "the source's digest is another");
  for (const ObjectId object : out.syncs) sync(object.value());
  for (const ObjectId object : out.finished) finish(object.value());
}

void DestinationControl::tick() {
  check_dataplane();
  const bool attached = lanes_.attached();
  if (attached) {
    host_.dataplane->board().control_alive_ns = host_.now_ns();
    lanes_.poll([this](const board::Event& event, uint32_t lane) { on_event(event, lane); });
    std::erase_if(closing_objects_, [&](uint32_t object) { return host_.dataplane->close_object(object); });
  }
  if (hello_ && (attached || end_ != End::kNone)) hello(*hello_);
  if (end_ != End::kNone && end_ != End::kDone) return;
  if (attached && flows_ == Flows::kClosing && lanes_.all_closed()) open_attempt();
  if (attached && flows_ == Flows::kOpening && lanes_.all_open()) {
    flows_ = Flows::kLive;
    if (hello_) {
      hello_.reset();
      host_.stream->send(kDestination, {.kind = Kind::kReady, .flow_ids = lanes_.flow_ids()});
      held_due_ = true;
    }
  }
  if (attached && flows_ == Flows::kLive) detect_losses();
  receiver_.tick(host_.now_ns());
  do_out();
  if (held_due_ && up_ && flows_ == Flows::kLive && !receiver_.adopting()) send_held();
  if (end_ == End::kNone && receiver_.all_done()) {
    end_ = End::kDone;
    host_.commit({.end = end_}, [] {});
    host_.stream->send(kDestination, {.kind = Kind::kSessionDone});
  }
}

}  // namespace sluice::sim
