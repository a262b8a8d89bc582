// The sending end's dealings with its lanes, its peer and its journal: what the sender decides, done.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "control/exports/read_back.h"
#include "control/rate/lane_shares.h"
#include "control/session/source.h"

namespace sluice::control {
namespace {

constexpr size_t kRepairBacklogMax = 65536;

}  // namespace

// ---- the peer ----------------------------------------------------------------------------------

void Source::on_message(const peer::PeerMessage& message) {
  switch (message.body_case()) {
    case peer::PeerMessage::kNeed:
      if (!fits(message.need().ranges())) return;
      if (session_.context()->board->backlog() > kRepairBacklogMax) return;  // it will be asked for again
      sender_->peer_needs(
          ObjectId(message.need().object()),
          message.need().has_lane() ? std::optional(LaneId(message.need().lane())) : std::nullopt,
          to_ranges(message.need().ranges()));
      return take();
    case peer::PeerMessage::kObjectState:
      return object_state(message.object_state());
    case peer::PeerMessage::kFileDone:
      (void)sender_->file_done(ObjectId(message.file_done().object()), message.file_done().digest());
      return take();
    case peer::PeerMessage::kPartitionDone:
      if (!fits(message.partition_done().ranges())) return;
      sender_->peer_has(ObjectId(message.partition_done().object()),
                        to_ranges(message.partition_done().ranges()));
      return take();
    case peer::PeerMessage::kSessionDone:
      peer_ended_ = true;
      return;
    default:
      return session_.fail({ErrorCode::kIncompatible, fmt::format("the peer sent message {} to a source",
                                                                  static_cast<int>(message.body_case()))});
  }
}

// More would hold up everything else; a destination cuts what it has to say.
bool Source::fits(const RangeField& ranges) {
  const auto count = static_cast<size_t>(ranges.size());
  if (count <= kRangesPerMessage) return true;
  session_.fail({ErrorCode::kIncompatible, fmt::format("the peer sent {} ranges in one message: at most {}",
                                                       count, kRangesPerMessage)});
  return false;
}

void Source::object_state(const peer::ObjectState& state) {
  if (!fits(state.held())) return;
  if (state.end()) {
    held_at_start_ = std::max(held_at_start_, sender_->bytes_held());
    sender_->report_again();
    sender_->peer_said_all();
  } else if (state.done()) {
    (void)sender_->file_done(ObjectId(state.object()), state.digest());
  } else {
    sender_->peer_has(ObjectId(state.object()), to_ranges(state.held()));
  }
  take();
}

void Source::take() {
  const recovery::Sender::Actions out = sender_->take_actions();
  for (const recovery::LaneCommand& command : out.commands) session_.command(command);
  for (const recovery::Sender::SentRange& sent : out.sent) tell_sent(sent);
  for (const ObjectId object : out.digests) tell_digest(object.value());
  for (const ObjectId object : out.changed) {
    session_.fail(
        {ErrorCode::kIntegrity, items_[object.value()].shown +
                                    ": changed while it was sent: nothing of it is stored, send it again"});
  }
  for (const ObjectId object : out.differ) {
    if (is_changed(object.value())) continue;
    const wire::CrcKind kind = session_.agreement().crc_kind;
    session_.fail({ErrorCode::kIntegrity,
                   fmt::format("{}: digest {} here, {} at the peer: do not trust the copy, send it again",
                               items_[object.value()].shown, digest_hex(kind, sender_->digest(object)),
                               digest_hex(kind, *sender_->peer_digest(object)))});
  }
  if (!out.done.empty()) session_.changed().notify();
}

void Source::tell_sent(const recovery::Sender::SentRange& sent) {
  peer::PeerMessage message;
  peer::PartitionSent* report = message.mutable_partition_sent();
  report->set_object(sent.object.value());
  set_range(report->mutable_range(), sent.range);
  report->set_lane(sent.lane.value());
  session_.send(message);
}

void Source::tell_digest(uint32_t index) {
  if (is_changed(index)) return;
  peer::PeerMessage message;
  message.mutable_file_digest()->set_object(index);
  message.mutable_file_digest()->set_size(items_[index].size);
  message.mutable_file_digest()->set_digest(sender_->digest(ObjectId(index)));
  session_.send(message);
}

// ---- the board ---------------------------------------------------------------------------------

void Source::on_event(const board::Event& event, uint32_t lane) {
  switch (event.kind) {
    case board::EventKind::kQueued:
    case board::EventKind::kHeld:
      if (adopt_answers_ != 0 && event.tag == adopt_tag_) sender_->adopt(event, LaneId(lane));
      return;
    case board::EventKind::kWorkEnd:
      if (adopt_answers_ != 0 && event.tag == adopt_tag_) --adopt_answers_;
      return session_.changed().notify();
    case board::EventKind::kExtentFailed:
      if (event.object < items_.size()) extent_failed(event);
      return;
    default:
      sender_->on_event(event, LaneId(lane));
      return take();
  }
}

void Source::extent_failed(const board::Event& event) {
  if (is_changed(event.object)) return;
  session_.fail({ErrorCode::kStorage,
                 fmt::format("{}: reading at byte {} failed: {}: check the disk", items_[event.object].shown,
                             event.offset, std::strerror(static_cast<int>(event.value)))});
}

asio::awaitable<Status> Source::adopt() {
  const Status status = co_await reopen();
  if (!status) co_return status;
  start_attempt();
  const auto lanes = static_cast<uint32_t>(session_.lanes().size());
  adopt_answers_ = lanes;
  adopt_tag_ = static_cast<uint32_t>(std::random_device()());  // answers to another control may still come
  for (uint32_t lane = 0; lane < lanes; ++lane)
    session_.command({.kind = board::CommandKind::kQueryWork, .lane = LaneId(lane), .tag = adopt_tag_});
  const uint64_t deadline_ns = monotonic_ns() + kAdoptTimeoutNs;
  while (adopt_answers_ != 0 && !session_.failed() && monotonic_ns() < deadline_ns) {
    co_await session_.changed().wait_for(std::chrono::milliseconds(100));
  }
  if (session_.failed()) co_return Status();
  if (adopt_answers_ != 0) {
    co_return Error{ErrorCode::kDaemonNotRunning,
                    "the dataplane does not say what it is sending: opening new flows"};
  }
  adopted_ = true;
  for (uint32_t i = 0; i < items_.size(); ++i) {
    if (!items_[i].file) continue;
    const Result<UniqueFd> fd = co_await session_.context()->board->fetch_object(session_.slot(), i);
    if (session_.failed()) co_return Status();
    opened_[i] = static_cast<bool>(fd);
  }
  co_return Status();
}

// ---- the journal, and what is not in it ------------------------------------------------------------

// What was sent, with its CRCs, now and then: what is lost must be read again, not trusted.
asio::awaitable<void> Source::keep_journal() {
  const auto interval = std::chrono::milliseconds(session_.context()->node.sync_lag_ms);
  while (!session_.failed() && !complete()) {
    const auto next = std::chrono::steady_clock::now() + interval;
    while (!session_.failed() && !complete() && std::chrono::steady_clock::now() < next)
      co_await session_.changed().wait_for(next - std::chrono::steady_clock::now());
    if (complete()) co_return;
    const Status status = co_await write_changed();
    if (!status) {
      session_.fail(status.error());
      co_return;
    }
  }
}

asio::awaitable<Status> Source::write_changed() {
  journal::Batch batch;
  for (uint32_t i = 0; i < items_.size(); ++i) {
    std::vector<recovery::Block> blocks = sender_->take_changed(ObjectId(i));
    if (!blocks.empty()) batch.blocks.push_back({session_.id(), i, std::move(blocks)});
  }
  if (batch.blocks.empty()) co_return Status();
  co_return co_await session_.write_journal(std::move(batch), journal::Durability::kProcess);
}

asio::awaitable<void> Source::reread_unknown() {
  while (!session_.failed()) {
    const auto next = sender_->take_unknown();
    if (!next) break;
    const uint32_t index = next->object.value();
    const SourceItem& item = items_[index];
    const wire::CrcKind kind = session_.agreement().crc_kind;
    const recovery::Range range = sender_->ledger(next->object).map().range_of(next->extent);
    auto work = [file = item.file, kind, range] {
      return read_crc(file->fd.get(), kind, range.offset, range.length);
    };
    const Result<uint64_t> crc = co_await in_pool(session_.context(), std::move(work));
    if (!crc) {
      if (!is_changed(index)) session_.fail({crc.error().code, item.shown + ": " + crc.error().message});
      break;
    }
    sender_->reread(*next, *crc);
    take();
  }
  rereading_ = false;
}

// ---- the rate ----------------------------------------------------------------------------------

void Source::control_rate(uint64_t now_ns) {
  FlowFigures figures;
  Indexed<LaneId, bool> busy;
  for (uint32_t lane = 0; lane < session_.lanes().size(); ++lane) {
    const board::FlowState& state = session_.flow(lane).state;
    figures.add(state);
    busy.push_back(sender_->has_work(LaneId(lane), state));
  }
  const rate::FixedRate::State before = rate_->state();
  const uint32_t cuts = rate_->cuts();
  const uint64_t rate_bps = rate_->step({.sent = figures.chunks + figures.retransmitted_chunks,
                                         .lost = figures.gaps,
                                         .last_peer_ns = figures.last_peer_ns,
                                         .rtt_ns = figures.rtt_ns},
                                        now_ns);
  if (rate_->cuts() != cuts) {
    spdlog::warn("{}: loss stays above 2 %, rate lowered to {:.2f} Gbit/s", session_.log_name(),
                 static_cast<double>(rate_bps) * 1e-9);
  }
  const bool silent = rate_->state() >= rate::FixedRate::State::kCrawl;
  if (silent && before != rate_->state()) {
    spdlog::warn("{}: no status from the peer, rate {} bit/s until it is heard", session_.log_name(),
                 rate_bps);
  }
  const Indexed<LaneId, uint64_t> shares = rate::lane_shares(rate_bps, busy);
  for (uint32_t lane = 0; lane < shares.size(); ++lane) {
    session_.flow(lane).control.rate_bps.store(shares[LaneId(lane)], std::memory_order_release);
  }
}

void Source::on_tick(uint64_t now_ns) {
  sender_->tick(now_ns);
  if (rate_ && !session_.lanes().empty()) control_rate(now_ns);
  if (!rereading_ && sender_->has_unknown()) {
    rereading_ = true;
    session_.spawn(reread_unknown());
  }
  take();
}

}  // namespace sluice::control
