// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/source_control.h"

#include <algorithm>

#include "control/rate/lane_shares.h"
#include "dataplane/crc/crc.h"

namespace sluice::sim {
namespace {

constexpr uint64_t kCallAgainNs = 50'000'000;

Indexed<ObjectId, recovery::Layout> layouts(const Plan& plan) {
  Indexed<ObjectId, recovery::Layout> all;
  for (const uint64_t size : plan.sizes) {
    all.push_back({.size_bytes = size, .extent_bytes = plan.extent_bytes, .crc_kind = plan.crc});
  }
  return all;
}

}  // namespace

uint64_t source_inode(const Host& host, uint32_t object) {
  return host.files.find(Oracle::final_name(object));
}

SourceControl::SourceControl(Host& host)
    : host_(host),
      lanes_(host, board::Direction::kTx),
      sender_(layouts(host.plan), host.plan.lanes, options()) {
  const Records& records = host.journal.records();
  end_ = records.end;
  for (const auto& [key, bytes] : records.rows) {
    if (!sender_.restore(ObjectId(key.first), {.id = key.second, .bytes = bytes}))
      host.oracle.fail("a row of the source does not restore");
  }
  query_tag_ = static_cast<uint32_t>(host.random.next());
  committed_ns_ = host.now_ns();
  host.disk.crc_known = [this](uint64_t inode, uint64_t offset) {
    for (uint32_t i = 0; i < sender_.objects(); ++i) {
      const recovery::ExtentMap& known = sender_.ledger(ObjectId(i)).map();
      if (source_inode(host_, i) == inode) return known.is_set(known.extent_at(offset));
    }
    return false;
  };
}

SourceControl::~SourceControl() { host_.disk.crc_known = nullptr; }

recovery::Sender::Options SourceControl::options() const {
  return {.partition_bytes = host_.plan.partition_bytes,
          .lane_rate_bps = host_.plan.rate_bps / host_.plan.lanes};
}

bool SourceControl::source_is_unchanged() const {
  for (uint32_t i = 0; i < host_.plan.sizes.size(); ++i) {
    if (host_.files.inode(source_inode(host_, i))->version != kSourceVersion) return false;
  }
  return true;
}

void SourceControl::fail(End end, const char* reason) {
  if (end_ != End::kNone) return;
  end_ = end;
  host_.trace.add(host_.now_ns(), kSource, reason);
  host_.oracle.ended(end, reason);
  host_.commit({.end = end}, [] {});
  host_.stream->send(kSource, {.kind = Kind::kFailure, .end = end});
}

void SourceControl::finish() {
  if (end_ != End::kNone) return;
  host_.stream->send(kSource, {.kind = Kind::kSessionDone});
  end_ = End::kDone;
  host_.commit({.end = end_}, [] {});
  if (host_.dataplane != nullptr && lanes_.attached()) lanes_.close();
}

// ---- the peer ------------------------------------------------------------------------------------

void SourceControl::connected() {
  call_ = Call::kUp;
  held_end_ = went_ = same_ = false;
  const bool alive = (flows_ == Flows::kFound || flows_ == Flows::kLive) && !lanes_.any_closed();
  host_.stream->send(kSource,
                     {.kind = Kind::kHello, .flow_ids = alive ? lanes_.flow_ids() : std::vector<uint64_t>()});
}

void SourceControl::lost() {
  call_ = Call::kDown;
  ready_.reset();
  next_call_ns_ = host_.now_ns() + host_.random.below(kCallAgainNs);
}

void SourceControl::message(const Message& m) {
  switch (m.kind) {
    case Kind::kReady:
      return ready(m);
    case Kind::kHeld:
    case Kind::kPartitionDone:
      return sender_.peer_has(ObjectId(m.object), m.ranges);
    case Kind::kHeldEnd:
      held_end_ = true;
      return go_on();
    case Kind::kNeed:
      return sender_.peer_needs(ObjectId(m.object), LaneId(m.lane), m.ranges);
    case Kind::kFileDone:
      if (!sender_.file_done(ObjectId(m.object), m.digest))
        host_.oracle.fail("file_done of a file that is not there");
      return;
    case Kind::kSessionDone:
      return;
    case Kind::kFailure:
      if (end_ == End::kNone) host_.commit({.end = m.end}, [] {});
      end_ = m.end;
      return;
    default:
      return;
  }
}

void SourceControl::ready(const Message& m) {
  same_ = m.same;
  if (m.same) {
    if (!rate_) rate_.emplace(host_.plan.rate_bps, host_.now_ns());
    flows_ = Flows::kLive;
    return;
  }
  if (lanes_.attached()) do_out();  // the last commands for the old flows
  if (end_ != End::kNone) return;
  sender_.start_attempt(host_.plan.lanes, options(), host_.now_ns());
  ready_ = m;
  if (lanes_.size() > 0 && flows_ != Flows::kClosing) lanes_.close();
  flows_ = Flows::kClosing;
}

void SourceControl::open_flows() {
  if (!source_is_unchanged()) return fail(End::kIntegrity, "the source changed");
  flows_ = Flows::kOpening;
  lanes_.open(ready_->flow_ids);
  rate_.emplace(host_.plan.rate_bps, host_.now_ns());
  ready_.reset();
}

// All that the peer has is known, and flows are there.
void SourceControl::go_on() {
  if (went_ || !held_end_ || flows_ != Flows::kLive || lanes_.size() == 0 || !lanes_.attached()) return;
  went_ = true;
  for (uint32_t i = 0; i < sender_.objects(); ++i) {
    if (sender_.done(ObjectId(i))) continue;
    if (!host_.dataplane->object_open(i)) {
      const uint32_t flags = host_.plan.direct ? uint32_t{board::kObjectDirect} : 0;
      host_.dataplane->open_object(i, flags, host_.disk.open(source_inode(host_, i)), host_.plan.sizes[i]);
    }
    sender_.object_opened(ObjectId(i));
  }
  sender_.peer_said_all();
  if (same_) sender_.report_again();
}

// ---- the board -------------------------------------------------------------------------------------

void SourceControl::check_dataplane() {
  if (lanes_.attached()) return;
  if (flows_ != Flows::kNone) {  // it died: what it was doing is for new flows
    lanes_.drop();
    flows_ = Flows::kNone;
    if (call_ != Call::kDown) {
      host_.stream->close(kSource);
      lost();
    }
  }
  if (host_.dataplane == nullptr) return;
  lanes_.attach();
  if (lanes_.size() > 0) found_flows();
}

void SourceControl::found_flows() {
  flows_ = Flows::kAsking;
  ++host_.trace.reached.adoptions;
  sender_.start_attempt(static_cast<uint32_t>(lanes_.size()), options(), host_.now_ns());
  queries_ = static_cast<uint32_t>(lanes_.size());
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    lanes_.command(board::CommandKind::kQueryWork, lane, 0, {}, query_tag_);
  }
}

void SourceControl::on_event(const board::Event& event, uint32_t lane) {
  switch (event.kind) {
    case board::EventKind::kExtentFailed:
      return fail(End::kReadFailed, "a read failed");
    case board::EventKind::kQueued:
    case board::EventKind::kHeld:
      if (flows_ == Flows::kAsking && event.tag == query_tag_) sender_.adopt(event, LaneId(lane));
      return;
    case board::EventKind::kWorkEnd:
      if (flows_ == Flows::kAsking && event.tag == query_tag_ && --queries_ == 0) flows_ = Flows::kFound;
      return;
    case board::EventKind::kFlowClosed:  // an earlier control's doing, unless it is ours: calls again for new
                                         // flows
      if (flows_ != Flows::kLive || call_ != Call::kUp) return;
      host_.stream->close(kSource);
      return lost();
    default:
      return sender_.on_event(event, LaneId(lane));
  }
}

void SourceControl::set_rates() {
  rate::PathReport report;
  Indexed<LaneId, bool> busy;
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    const board::FlowState& state = lanes_.slot(lane).state;
    report.sent += state.chunks + state.retransmitted_chunks;
    report.lost += state.gaps_reported;
    report.last_peer_ns = std::max(report.last_peer_ns, state.last_peer_ns.load());
    report.rtt_ns = std::max(report.rtt_ns, state.rtt_ns.load());
    if (state.opened_extents > state.credit_extents && state.credit_extents > 0) {
      host_.oracle.fail("a flow has opened more extents than its credit");
    }
    busy.push_back(sender_.has_work(LaneId(lane), state));
  }
  uint64_t rate_bps = rate_->step(report, host_.now_ns());
  if (host_.plan.broken == Break::kDoubleRate) rate_bps *= 2;
  const Indexed<LaneId, uint64_t> shares = rate::lane_shares(rate_bps, busy);
  for (uint32_t lane = 0; lane < shares.size(); ++lane) {
    const uint64_t now_bps = shares[LaneId(lane)];
    const uint64_t before_bps = lanes_.slot(lane).control.rate_bps.exchange(now_bps);
    // What it owes, and what it may catch up, is of its old share.
    if (shares.size() > 1 &&
        (now_bps > before_bps ? now_bps - before_bps : before_bps - now_bps) > before_bps / 20)
      host_.oracle.share_changed();
  }
}

void SourceControl::do_out() {
  recovery::Sender::Actions out = sender_.take_actions();
  for (const recovery::LaneCommand& command : out.commands) lanes_.command(command);
  for (const auto& sent : out.sent) {
    host_.stream->send(kSource, {.kind = Kind::kPartitionSent,
                                 .object = sent.object.value(),
                                 .lane = sent.lane.value(),
                                 .ranges = {sent.range}});
  }
  for (const ObjectId object : out.digests) {
    if (!source_is_unchanged()) return fail(End::kIntegrity, "the source changed");
    host_.stream->send(kSource, {.kind = Kind::kFileDigest,
                                 .object = object.value(),
                                 .digest = sender_.digest(object),
                                 .size = host_.plan.sizes[object.value()]});
  }
  if (!out.differ.empty()) return fail(End::kIntegrity, "the peer's digest is another");
  if (!out.changed.empty()) return fail(End::kIntegrity, "an extent was read twice and differed");
  if (sender_.all_done()) finish();
}

void SourceControl::reread() {
  if (rereading_ || host_.plan.broken == Break::kNoReread) return;
  const auto next = sender_.take_unknown();
  if (!next) return;
  rereading_ = true;
  host_.operate(
      host_.disk.latency_ns(), Host::IfKilled::kFate, [] {},
      [this, next = *next] {
        rereading_ = false;
        const uint32_t object = next.object.value();
        const std::vector<uint8_t>& bytes = host_.files.inode(source_inode(host_, object))->now;
        const recovery::Range range = sender_.ledger(next.object).map().range_of(next.extent);
        sender_.reread(next, crc::compute(host_.plan.crc, 0, bytes.data() + range.offset, range.length));
        host_.trace.add(host_.now_ns(), kSource, "reread", object, next.extent.value());
        ++host_.trace.reached.rereads;
      });
}

void SourceControl::journal_crcs() {
  if (committing_ || host_.now_ns() - committed_ns_ < host_.plan.crc_lag_ns) return;
  committed_ns_ = host_.now_ns();
  Transaction t{.power = false};
  for (uint32_t i = 0; i < sender_.objects(); ++i) {
    for (recovery::Block& block : sender_.take_changed(ObjectId(i))) t.rows.emplace_back(i, std::move(block));
  }
  if (t.rows.empty()) return;
  committing_ = true;
  host_.commit(std::move(t), [this] { committing_ = false; });
}

void SourceControl::tick() {
  check_dataplane();
  const bool attached = lanes_.attached();
  if (attached) {
    host_.dataplane->board().control_alive_ns = host_.now_ns();
    lanes_.poll([this](const board::Event& event, uint32_t lane) { on_event(event, lane); });
  }
  if (end_ != End::kNone) return;
  if (attached && flows_ == Flows::kClosing && lanes_.all_closed() && ready_) open_flows();
  if (attached && flows_ == Flows::kOpening && lanes_.all_open()) {
    flows_ = Flows::kLive;
    go_on();
  }
  if (call_ == Call::kDown && attached && flows_ != Flows::kAsking && host_.now_ns() >= next_call_ns_) {
    call_ = Call::kCalling;
    host_.stream->connect();
  }
  sender_.tick(host_.now_ns());
  if (attached && rate_ && lanes_.size() > 0 && flows_ != Flows::kClosing) set_rates();
  reread();
  if (attached) do_out();
  journal_crcs();
}

}  // namespace sluice::sim
