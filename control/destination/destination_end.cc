// A receiving end: how it is made, its attempts, and what the source and the board tell it.
// SPDX-License-Identifier: Apache-2.0
#include "control/destination/destination_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "control/words/digest_wait.h"
#include "control/words/range_messages.h"

namespace sluice::transfer {

namespace {

// A destination of several sources counts an extent later than it is written, and then has no sums of it.
std::optional<wire::CrcKind> joins_sums(const Agreement& agreement) {
  return agreement.abilities.has(Ability::kParts) ? std::nullopt : std::optional(agreement.crc_kind);
}

}  // namespace

DestinationEnd::DestinationEnd(const Settings& settings, const Agreement& agreement,
                               const std::vector<catalog::File>& files)
    : settings_(settings),
      agreement_(agreement),
      files_(settings, agreement.discard, agreement.extent_bytes, files, joins_sums(agreement)) {}

Result<DestinationEnd> DestinationEnd::restore(const Settings& settings, const Agreement& agreement,
                                               const Saved& saved) {
  DestinationEnd end(settings, agreement, saved.files);
  end.make_receiver();
  for (uint32_t i = 0; i < end.catalog().object_count(); ++i) {
    const ObjectId object(i);
    if (!saved.blocks.contains(object)) continue;
    for (const recovery::Block& block : saved.blocks[object]) {
      const Status status = end.receiver_->restore(object, block);
      if (!status)
        return Error{ErrorCode::kStorage, end.catalog().shown(object) + ": " + status.error().message};
    }
  }
  // Blocks that are all holes have no rows. Like those that have, they are read before they count.
  for (uint32_t i = 0; i < end.catalog().object_count() && !agreement.discard; ++i) {
    const catalog::File& file = end.catalog().files_of(ObjectId(i)).front();
    if (file.state != catalog::FileState::kDone && !file.failed())
      end.receiver_->restore_zeros(ObjectId(i), file.holes);
  }
  end.receiver_->finish_restore();
  for (uint32_t i = 0; i < end.catalog().object_count(); ++i) {
    const ObjectId object(i);
    const catalog::File& file = end.catalog().files_of(object).front();
    if (file.failed()) {
      end.receiver_->failed(object);
      end.files_.mark_failed(object);
    }
    if (file.packed() && file.state == catalog::FileState::kFinishing) end.given_.insert(object);
    if (file.state != catalog::FileState::kDone) continue;
    end.receiver_->set_done(object, file.digest);
    end.commits_[object].found_named();
    end.files_.mark_done(object);
  }
  return end;
}

void DestinationEnd::make_receiver() {
  Indexed<ObjectId, recovery::Layout> layouts;
  for (uint32_t i = 0; i < catalog().object_count(); ++i) {
    layouts.push_back({.size_bytes = catalog().object(ObjectId(i)).size_bytes,
                       .extent_bytes = agreement_.extent_bytes,
                       .crc_kind = agreement_.crc_kind});
  }
  commits_.assign(layouts.size(), {});
  receiver_.emplace(layouts, 0,
                    recovery::Receiver::Options{.sync_lag_bytes = settings_.sync_lag_bytes,
                                                .sync_lag_ns = settings_.sync_lag_ns});
  for (uint32_t i = 0; i < catalog().object_count(); ++i)
    receiver_->sum(ObjectId(i), files_.sums_of(ObjectId(i)));
}

// ---- an attempt --------------------------------------------------------------------------------

void DestinationEnd::prepare(Effects& out) {
  files_.prepare(out);
  if (files_.agreed()) (void)receive_new();
}

TransferReady DestinationEnd::ready(std::vector<uint64_t> flow_ids,
                                    std::vector<uint32_t> credit_extents) const {
  TransferReady ready{.flow_ids = std::move(flow_ids), .credit_extents = std::move(credit_extents)};
  for (const catalog::File& file : catalog().files()) ready.final_paths.push_back(file.shown);
  ready.objects = static_cast<uint32_t>(catalog().object_count());
  ready.growing = catalog().growing();
  ready.keep = catalog().keep().bits();
  return ready;
}

void DestinationEnd::start_attempt(const Way& way, uint64_t now_ns, Effects& out) {
  const LegId leg = way.stream.leg();
  legs_.at(leg).limit_source(limit_bps_ / (legs_.begun() + 1), out);  // heard with the states
  legs_.at(leg).begin(way);
  if (std::exchange(running_, true)) {
    receiver_->add_leg(leg, static_cast<uint32_t>(way.lanes));
  } else {
    receiver_->start_attempt(leg, static_cast<uint32_t>(way.lanes), now_ns);
  }
  join_source(way, now_ns, out);
}

void DestinationEnd::leave(LegId leg, Effects& /*out*/) {
  if (!legs_.begun(leg)) return;  // its handshake was not over
  if (leg == offers_on_) drop_offers();
  legs_.at(leg).end();
}

void DestinationEnd::left(LegId leg, Effects& out) {
  if (!receiver_) return;
  receiver_->drop_leg(leg);
  if (several_) several_->leave(leg);
  (void)follow_receiver(out);  // nothing of a source has been heard that could differ
}

void DestinationEnd::limit_rate(uint64_t limit_bps, Effects& out) {
  limit_bps_ = limit_bps;
  const uint64_t share_bps = limit_bps / std::max<size_t>(1, legs_.begun());
  legs_.each([&](DestinationLeg& leg) { leg.limit_source(share_bps, out); });
}

void DestinationEnd::adopt_work(const Way& way, std::span<const board::FlowSlot* const> lanes,
                                uint32_t /*tag*/, uint64_t now_ns, Effects& out) {
  running_ = true;
  const LegId leg = way.stream.leg();
  legs_.at(leg).adopt(way, lanes);
  std::vector<ObjectId> open;
  for (uint32_t i = 0; i < catalog().object_count(); ++i) {
    if (files_.is_open(ObjectId(i))) open.emplace_back(i);
  }
  receiver_->adopt(leg, static_cast<uint32_t>(lanes.size()), open, now_ns);
  (void)follow_receiver(out);  // nothing of the source has been heard that could differ
  files_.close_ended(out);
}

void DestinationEnd::send_states(LegId leg, Effects& out) const {
  if (!legs_.begun(leg)) return;
  legs_.find(leg)->say_limit(out);
  for (uint32_t i = 0; i < catalog().object_count(); ++i) {
    const ObjectId object(i);
    if (catalog().files_of(object).front().failed()) {
      say_on(leg, failed_word(object), out);
      continue;
    }
    if (receiver_->done(object) && !lost_objects_.contains(object)) {
      say_digests(object, leg, out);
      say_on(leg, ObjectState{.object = object, .done = true, .digest = receiver_->digest(object)}, out);
      say_missing(object, leg, out);
      continue;
    }
    in_parts(receiver_->held(object), [&](std::vector<recovery::Range> ranges) {
      say_on(leg, ObjectState{.object = object, .held = std::move(ranges)}, out);
    });
  }
  say_on(leg, ObjectState{.end = true}, out);
}

void DestinationEnd::settle(Effects& out) {
  if (receiver_) receiver_->flows_ended();
  for (uint32_t i = 0; receiver_ && i < catalog().object_count(); ++i) begin_sync(ObjectId(i), out);
  if (receiver_) (void)follow_receiver(out);
}

void DestinationEnd::attempt_over() {
  pending_.check_none();
  for (const Commit& commit : commits_) CHECK(commit.idle(), "no commit outlives its attempt");
  due_ = {};
  failing_.clear();
  legs_.each_begun([](DestinationLeg& leg) { leg.end(); });
  if (several_) several_->leave_all();
  running_ = false;
  offers_.clear();
  files_.attempt_over();
}

// ---- the source --------------------------------------------------------------------------------

Status DestinationEnd::on_message(LegId leg, const Message& message, Effects& out) {
  if (const auto* offer = std::get_if<TransferOffer>(&message)) return hear_offer(leg, *offer);
  if (const auto* sent = std::get_if<PartitionSent>(&message)) {
    const FlowRef flow{.leg = leg, .lane = sent->lane};
    if (legs_.at(leg).has_lane(sent->lane) && receiver_->partition_sent(sent->object, flow, sent->range))
      return {};
    return Error{ErrorCode::kIncompatible, "the peer reports a partition of no file or lane"};
  }
  if (const auto* digest = std::get_if<FileDigest>(&message); digest != nullptr && !several_) {
    if (receiver_->file_digest(digest->object, {.size_bytes = digest->size_bytes, .digest = digest->digest}))
      return follow_receiver(out);
    return Error{ErrorCode::kIncompatible, "the peer sends the digest of no file, or of another size"};
  }
  if (const auto* digests = std::get_if<ExtentDigests>(&message); digests != nullptr && several_) {
    if (several_->said(leg, *digests)) return follow_receiver(out);
    return Error{ErrorCode::kIncompatible, "the peer sends digests of extents that there are not"};
  }
  if (const auto* failed = std::get_if<ObjectFailed>(&message)) {
    const Status status = on(*failed);
    return status ? follow_receiver(out) : status;
  }
  if (std::holds_alternative<SessionDone>(message)) {
    legs_.at(leg).hear_end();
    if (complete()) return {};
    if (interrupted_) {
      return Error{ErrorCode::kIntegrity,
                   "the source was told that all files had arrived, and here they are not complete any more: "
                   "they were removed, or their volume went back in time; send them again"};
    }
    return Error{ErrorCode::kIncompatible, "the source ended the session before its files were done"};
  }
  return Error{ErrorCode::kIncompatible,
               fmt::format("the peer sent {} to a destination", message_name(message))};
}

// ---- the board ---------------------------------------------------------------------------------

Status DestinationEnd::on(const FlowEvent& event, Effects& out) {
  if (!receiver_ || !catalog().contains(ObjectId(event.event.object))) return {};
  if (event.event.kind == board::EventKind::kExtentFailed) return extent_failed(event.event, out);
  if (several_ && event.event.kind == board::EventKind::kExtentWritten) {
    several_->written(event.leg, event.event);  // it counts once its source has said its digest
  } else {
    receiver_->on_event(event.event);
  }
  return follow_receiver(out);
}

Status DestinationEnd::on(const ObjectClosed& event, Effects& out) {
  files_.on(event, out);
  return {};
}

Status DestinationEnd::extent_failed(const board::Event& event, Effects& out) {
  const int error = static_cast<int>(event.value);
  const ObjectId object(event.object);
  if (receiver_->done(object)) return {};  // of a file that was given up
  journal_suspect(object, Entry::kNoted, out);
  const Error what =
      error == EDQUOT
          ? Error{ErrorCode::kNoSpace, catalog().shown(object) +
                                           ": a quota of its file system is used up: raise it, or remove "
                                           "something that counts against it"}
      : error == ENOSPC
          ? Error{ErrorCode::kNoSpace, catalog().shown(object) + ": the file system became full: free space"}
          : Error{ErrorCode::kStorage,
                  fmt::format("{}: writing at byte {} failed: {}: check the disk", catalog().shown(object),
                              event.offset, std::strerror(error))};
  if (Status status = fail(object, what, out); !status) return status;
  return follow_receiver(out);
}

Status DestinationEnd::on(const Tick& event, uint64_t now_ns, Effects& out) {
  uint64_t bytes = 0;  // payload that its lanes have accepted, since they were opened
  for (const board::FlowSlot* const lane : event.lanes)
    bytes += lane->state.bytes.load(std::memory_order_relaxed);
  if (legs_.begun(event.leg)) {
    legs_.at(event.leg).settle_losses(event, now_ns, out);
    receiver_->arrived(legs_.at(event.leg).take_arrived(bytes), now_ns);
  }
  if (several_) tick_source(event.leg, bytes, now_ns);
  if (!due_.finished.empty() && waits_for_sizes()) {
    if (due_.since_ns == 0) due_.since_ns = now_ns;
    due_.waits_no_longer = now_ns - due_.since_ns >= kSizesWaitNs;
  }
  receiver_->tick(now_ns);
  read_unread(out);
  return follow_receiver(out);
}

Status DestinationEnd::follow_receiver(Effects& out) {
  if (legs_.begun() == 0) return {};  // between attempts it wants nothing that is still right later
  // An error that ends the session counts at once. One that ends a leg waits until the workers know what they
  // forget for that leg: as long as they take it for there, nobody else brings it.
  const Status sources = follow_sources(out);
  if (!sources && sources.error().code == ErrorCode::kIntegrity) return sources;
  if (Status status = give_up_failing(out); !status) return status;
  recovery::Receiver::Actions wants = receiver_->take_actions();
  for (const recovery::LaneCommand& command : wants.commands) {
    if (command.kind == board::CommandKind::kGiveUp && !receiver_->done(command.object) &&
        !files_.open_no_more(command.object)) {
      receiver_->give_up_later(command.object);
      continue;
    }
    out.add(CommandLane{command.flow.leg, command});
  }
  for (const recovery::Need& need : wants.needs) say_need(need, out);
  for (const ObjectId object : wants.syncs) begin_sync(object, out);
  due_.finished.insert(wants.finished.begin(), wants.finished.end());
  for (const ObjectId object : wants.differ) {
    if (Status status = found_damaged(object, out); !status) return status;
  }
  if (Status status = finish_due(out); !status) return status;
  return sources;
}

void DestinationEnd::say_need(const recovery::Need& need, Effects& out) const {
  std::vector<parts::Portion> portions{{.leg = need.flow.leg, .object = need.object, .ranges = need.ranges}};
  if (several_) portions = several_->to_need(need.flow.leg, need.object, need.ranges);
  for (const parts::Portion& portion : portions) {
    const auto lane = portion.leg == need.flow.leg ? std::optional(need.flow.lane) : std::nullopt;
    in_parts(portion.ranges, [&](std::vector<recovery::Range> ranges) {
      say_on(portion.leg, Need{.object = need.object, .ranges = std::move(ranges), .lane = lane}, out);
    });
  }
}

bool DestinationEnd::waits_for_sizes() const {
  return several_ && several_->waits_to_hear() && !due_.waits_no_longer && !files_.discards();
}

// To finish one may call this function again. A source that only says how the session has ended there may
// come before files are found again.
Status DestinationEnd::finish_due(Effects& out) {
  while (files_.prepared() && !waits_for_sizes()) {
    const auto next =
        std::ranges::find_if(due_.finished, [this](ObjectId object) { return !waits_for_others(object); });
    if (next == due_.finished.end()) break;
    const ObjectId object = *next;
    due_.finished.erase(next);
    if (Status status = finish(object, out); !status) return status;
  }
  return {};
}

// All of it is there, and is what its source has, unless some of it was forgotten while it waited.
Status DestinationEnd::finish(ObjectId object, Effects& out) {
  if (failing_.contains(object) || !receiver_->finishing(object)) return {};
  // Where nothing is to be read for digests, they are known now.
  if (const Status fits = to_digest(object) == 0 ? take_digests(object, {}) : Status(); !fits) {
    if (settle_sources(object, out)) return {};
    return fail(object, fits.error(), out, catalog::Failure::kNotAsListed);
  }
  return commit(object, CommitEvent::kFinishDue, {}, out);
}

Error DestinationEnd::differs(ObjectId object) const {
  const wire::CrcKind kind = agreement_.crc_kind;
  if (several_ && several_->witnessed(object))
    return {ErrorCode::kIntegrity, several_->not_witnessed(object)};
  return {ErrorCode::kIntegrity,
          fmt::format("{}: digest {} was sent, {} was received: nothing was stored, send it again",
                      catalog().shown(object), board::digest_hex(kind, *receiver_->source_digest(object)),
                      board::digest_hex(kind, receiver_->digest(object)))};
}

// ---- what it knows -----------------------------------------------------------------------------

uint64_t DestinationEnd::bytes_done(ObjectId object) const {
  if (catalog().files_of(object).front().failed()) return 0;
  return receiver_->done(object) ? catalog().object(object).size_bytes
                                 : receiver_->written(object).set_bytes();
}

DataEnd::Digests DestinationEnd::digests(ObjectId object) const {
  Digests known{.source = receiver_->source_digest(object), .destination = {}};
  if (catalog().files_of(object).front().failed()) return known;
  if (receiver_->done(object) || receiver_->written(object).complete())
    known.destination = receiver_->digest(object);
  return known;
}

std::string DestinationEnd::waiting_for(const board::FlowFigures& before, const board::FlowFigures& now,
                                        uint64_t /*interval_ns*/, uint64_t now_ns) const {
  constexpr uint64_t kSilenceNs = 500'000'000;
  if (!digesting_.bytes.empty() && now.bytes == before.bytes) {
    const auto& [object, bytes] = *digesting_.bytes.begin();
    return digest_wait("digest " + digests::names_of(to_digest(object)), bytes,
                       catalog().object(object).size_bytes, digesting_.bytes.size());
  }
  if (pending_.count() != 0 && now.bytes == before.bytes) return "fsync";
  if (receiver_ && receiver_->unread_bytes() != 0 && now.bytes == before.bytes)
    return interrupted_ ? "disk (reading again what had arrived)" : "digests of holes";
  if (receiver_ && receiver_->awaits_writes() && now.bytes == before.bytes)
    return "disk (a second copy that is being written)";
  if (waits_for_list()) return catalog().growing() ? "the peer's list of files" : "creating files";
  if (several_) {
    if (std::string wait = several_->waiting_for(); !wait.empty()) return wait;
    if (!due_.finished.empty() && waits_for_sizes()) return "another source (which files it has)";
  }
  if (bytes_done() == catalog().bytes_total()) return "";
  if (std::string wait = board::neighbour_wait(now, now_ns); !wait.empty()) return wait;
  if (now.last_peer_ns + kSilenceNs < now_ns) return "network (no data from peer)";
  if (now.no_room != before.no_room) return "disk";
  return "";
}

}  // namespace sluice::transfer
