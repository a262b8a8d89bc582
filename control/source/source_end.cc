// SPDX-License-Identifier: Apache-2.0
#include "control/source/source_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "control/rate/stricter.h"
#include "control/source/offer.h"
#include "control/words/kept.h"

namespace sluice::transfer {
namespace {

constexpr uint32_t kCreditExtentsMax = 1U << 20;  // as of a status (docs/WIRE.md 1.9)

Indexed<ObjectId, recovery::Layout> layouts_of(const std::vector<catalog::File>& files,
                                               const Agreement& agreement) {
  Indexed<ObjectId, recovery::Layout> layouts;
  for (const catalog::File& file : files)
    layouts.push_back({file.size_bytes, agreement.extent_bytes, agreement.crc_kind});
  return layouts;
}

recovery::Sender::Options options_of(const Settings& settings, const Agreement& agreement) {
  return {.partition_bytes = agreement.partition_bytes,
          .short_bytes = settings.short_bytes,
          .lane_rate_bps = agreement.rate_bps / std::max(1U, agreement.lanes),
          .obeys_wants = agreement.abilities.has(Ability::kParts),
          .digests_unanswered = agreement.digests_unanswered};
}

}  // namespace

SourceEnd::SourceEnd(const ThisNode& settings, const Agreement& agreement,
                     const std::vector<catalog::File>& files)
    : settings_(settings),
      files_(settings, files),
      extent_bytes_(agreement.extent_bytes),
      crc_kind_(agreement.crc_kind),
      sender_(layouts_of(files, agreement), agreement.lanes, options_of(settings, agreement)) {
  digests_.agreed = agreement.abilities.has(Ability::kDigests);
}

// Should they be holes no more when the digests are said, the file has changed, and that is found as ever.
void SourceEnd::note_holes(ObjectId from) {
  size_t left = catalog::kHolesOfAllMax;
  for (uint32_t i = 0; i < catalog().object_count(); ++i) {
    std::vector<recovery::Range>& holes = files_.catalog().files_of(ObjectId(i)).front().holes;
    holes = catalog::whole_extents(holes, catalog().object(ObjectId(i)).size_bytes, extent_bytes_);
    holes.resize(std::min(holes.size(), left));
    left -= holes.size();
    if (i >= from.value()) sender_.expect_zeros(ObjectId(i), holes);
  }
}

Result<SourceEnd> SourceEnd::restore(const ThisNode& settings, const Agreement& agreement,
                                     const Saved& saved) {
  SourceEnd end(settings, agreement, saved.files);
  for (uint32_t i = 0; i < end.catalog().object_count(); ++i) {
    const ObjectId object(i);
    if (!saved.blocks.contains(object)) continue;
    for (const recovery::Block& block : saved.blocks[object]) {
      if (const Status status = end.sender_.restore(object, block); !status)
        return Error{ErrorCode::kStorage, end.catalog().shown(object) + ": " + status.error().message};
    }
  }
  for (uint32_t i = 0; i < end.catalog().object_count(); ++i) {
    if (end.catalog().files_of(ObjectId(i)).front().failed()) end.sender_.failed(ObjectId(i));
  }
  end.list_.holes = !agreement.discard;
  if (end.list_.holes) end.note_holes();  // what the journal says of them comes first
  if (end.catalog().growing()) end.list_.phase.change(ListPhase::kIdle);
  if (end.catalog().list() == catalog::ListState::kEnded) end.list_.phase.change(ListPhase::kOffering);
  return end;
}

Result<SourceEnd> SourceEnd::make(const ThisNode& settings, const Agreement& agreement,
                                  const std::vector<catalog::File>& files) {
  if (Status status = check_room(0, files, agreement.extent_bytes); !status) return status.error();
  SourceEnd end(settings, agreement, files);
  end.list_.holes = !agreement.discard;
  if (end.list_.holes) end.note_holes();
  if (end.catalog().growing()) end.list_.phase.change(ListPhase::kIdle);
  return end;
}

// ---- an attempt --------------------------------------------------------------------------------

std::vector<TransferOffer> SourceEnd::offer(const Request* request, size_t from) const {
  return offer_of(catalog(), request, digests_.agreed, from);
}

Status SourceEnd::take_ready(const TransferReady& ready, size_t lanes) {
  if (ready.flow_ids.size() != lanes || ready.credit_extents.size() != lanes)
    return Error{ErrorCode::kIncompatible, "the peer is ready with another number of flows than agreed"};
  if (Status status = check_kept(ready.keep, catalog().keep()); !status) return status;
  if (std::count(ready.flow_ids.begin(), ready.flow_ids.end(), 0U) != 0) {
    return Error{ErrorCode::kIncompatible, "the peer gave a flow no id"};
  }
  if (std::any_of(ready.credit_extents.begin(), ready.credit_extents.end(),
                  [](uint32_t credit) { return credit > kCreditExtentsMax; })) {
    return Error{ErrorCode::kIncompatible, "the peer grants a flow more credit than there can be"};
  }
  for (uint32_t i = 0; i < ready.final_paths.size() && i < catalog().file_count(); ++i) {
    files_.catalog().file(catalog::FileId(i)).peer_path = ready.final_paths[i];
  }
  if (list_.phase == ListPhase::kOffering)
    list_.phase.change(catalog().growing() ? ListPhase::kIdle : ListPhase::kEnded);
  return {};
}

void SourceEnd::begin(const Way& way, uint64_t now_ns) {
  const LegId leg = way.stream.leg();
  const auto lanes = static_cast<uint32_t>(way.lanes);
  const recovery::Sender::Options options = options_of(settings_, way.agreement);
  legs_.at(leg).allow(share_of(limit_bps_, legs_.begun() + 1));
  legs_.at(leg).begin(way, *settings_.paths, now_ns);
  joined_ = std::exchange(running_, true);
  if (joined_) return sender_.add_leg(leg, lanes, options);
  forget_looks();
  journalling_ = false;
  journal_due_ns_ = now_ns + settings_.sync_lag_ns;
  sender_.start_attempt(leg, lanes, options, now_ns);
  held_at_start_ = sender_.bytes_held();
  states_known_ = false;
}

void SourceEnd::note_told(LegId leg) {
  sender_.note_told(leg);
  std::set<ObjectId> done;
  for (ObjectId object; catalog().contains(object); ++object)
    if (sender_.done(object)) done.insert(object);
  legs_.at(leg).note_done(std::move(done));
}

void SourceEnd::leave(LegId leg, Effects& out) {
  if (!legs_.begun(leg)) return;  // its handshake was not over
  if (list_.phase == ListPhase::kOffered && list_.offered_on == leg) list_.phase.change(ListPhase::kOffering);
  legs_.at(leg).end();
  forget_digests_of(leg);
  sender_.drop_leg(leg);
  uint64_t flows_done = 0;
  legs_.each_begun([&](const SourceLeg& each) { flows_done += each.flows_done(); });
  held_at_start_ = sender_.bytes_held() - std::min(sender_.bytes_held(), flows_done);
  (void)follow_sender(out);  // nothing new is known of the files
}

bool SourceEnd::adopting() const {
  bool adopting = false;
  legs_.each_begun([&](const SourceLeg& leg) { adopting |= leg.adopting(); });
  return adopting;
}

bool SourceEnd::has_lanes() const {
  bool some = false;
  legs_.each_begun([&](const SourceLeg& leg) { some |= leg.lanes() != 0; });
  return some;
}

// ---- the rate, which all legs share --------------------------------------------------------------

uint64_t SourceEnd::share_of(uint64_t limit_bps, size_t legs) const {
  if (legs <= 1) return limit_bps;
  uint64_t agreed_bps = 0;
  legs_.each_begun([&](const SourceLeg& leg) { agreed_bps = std::max(agreed_bps, leg.agreed_bps()); });
  return rate::stricter_bps(limit_bps, agreed_bps) / legs;
}

void SourceEnd::limit_rate(uint64_t limit_bps, Effects& /*out*/) {
  limit_bps_ = limit_bps;
  const uint64_t share_bps = share_of(limit_bps, legs_.begun());
  legs_.each([&](SourceLeg& leg) { leg.allow(share_bps); });
}

void SourceEnd::reserve(uint64_t reserved_bps) {
  const uint64_t share_bps = reserved_bps / std::max<size_t>(1, legs_.begun());
  legs_.each([&](SourceLeg& leg) { leg.reserve(share_bps); });
}

void SourceEnd::start_attempt(const Way& way, uint64_t now_ns, Effects& out) {
  begin(way, now_ns);
  open_next(out);
}

void SourceEnd::adopt_work(const Way& way, std::span<const board::FlowSlot* const> /*lanes*/, uint32_t tag,
                           uint64_t now_ns, Effects& out) {
  begin(way, now_ns);
  legs_.at(way.stream.leg()).ask_work(tag, out);
}

void SourceEnd::on_new_stream(LegId leg) {
  forget_digests_of(leg);
  (void)legs_.at(leg).take_listed();
  if (list_.phase == ListPhase::kOffered && list_.offered_on == leg) list_.phase.change(ListPhase::kOffering);
  legs_.at(leg).on_new_stream();
  sender_.forget_wants();
}

void SourceEnd::attempt_over() {
  pending_.check_none();
  files_.attempt_over();
  digests_.parts.clear();
  digests_.progress.clear();
  legs_.each_begun([](SourceLeg& leg) { leg.end(); });
  running_ = false;
  if (list_.phase == ListPhase::kOffered) list_.phase.change(ListPhase::kOffering);
}

// ---- what follows -------------------------------------------------------------------------------

Status SourceEnd::follow_sender(Effects& out) {
  if (legs_.begun() == 0) return {};  // between attempts it wants nothing that is still right later
  const recovery::Sender::Actions wants = sender_.take_actions();
  for (const recovery::LaneCommand& command : wants.commands) out.add(CommandLane{command.flow.leg, command});
  for (const recovery::Sender::SentRange& sent : wants.sent) {
    const auto word = PartitionSent{.object = sent.object, .range = sent.range, .lane = sent.flow.lane};
    legs_.at(sent.flow.leg).say(word, out);
  }
  for (const ObjectId object : wants.digests) check_source(object, std::nullopt, out);
  for (const ObjectId object : wants.differ) check_source(object, differs(object), out);
  for (const ObjectId object : wants.done) {
    for (catalog::File& file : files_.catalog().files_of(object)) {
      if (file.failed()) continue;
      if (!file.packed()) file.missing.forget_failures();  // it was withdrawn too late to fail
      file.state = catalog::FileState::kDone;
      file.digest = *sender_.peer_digest(object);
    }
    files_.done(object, sender_, out);
  }
  open_next(out);  // what is done makes room
  for (const ObjectId object : wants.changed) {
    if (Status status = found_changed(object, out); !status) return status;
  }
  return {};
}

void SourceEnd::open_next(Effects& out) {
  if (has_lanes()) files_.open_next(extent_bytes_, &sender_, out);
}

// ---- the files ---------------------------------------------------------------------------------

Status SourceEnd::on(const ObjectOpened& event, Effects& out) {
  const Status status = files_.on(event, &sender_, out);
  if (!status) return status;
  return follow_sender(out);
}

Status SourceEnd::on(const ObjectClosed& event, Effects& out) {
  files_.on(event, &sender_, out);
  return follow_sender(out);
}

// ---- the board ---------------------------------------------------------------------------------

Status SourceEnd::on(const FlowEvent& event, Effects& out) {
  switch (event.event.kind) {
    case board::EventKind::kQueued:
    case board::EventKind::kHeld:
    case board::EventKind::kWorkEnd:
      if (legs_.at(event.leg).hear_work(event.event)) sender_.adopt(event.event, {event.leg, event.lane});
      return {};
    case board::EventKind::kExtentFailed: {
      const ObjectId object(event.event.object);
      if (!catalog().contains(object)) return {};
      check_source(
          object,
          Error{ErrorCode::kStorage,
                fmt::format("{}: reading at byte {} failed: {}: check the disk", catalog().shown(object),
                            event.event.offset, std::strerror(static_cast<int>(event.event.value)))},
          out);
      return {};
    }
    case board::EventKind::kEchoFault:
      if (echo_faults_.size() < kEchoFaultsMax) echo_faults_.push_back(event.event);
      return {};
    default:
      sender_.on_event(event.event, {event.leg, event.lane});
      return follow_sender(out);
  }
}

Status SourceEnd::on(const Tick& event, uint64_t now_ns, Effects& out) {
  sender_.tick(now_ns);
  SourceLeg& leg = legs_.at(event.leg);
  if (!leg.begun()) return {};
  if (Status status = leg.step(event, sender_, *settings_.paths, now_ns, out); !status) return status;
  reread(out);
  look(now_ns, out);
  if (now_ns >= journal_due_ns_ && !journalling_) {
    journal_due_ns_ = now_ns + settings_.sync_lag_ns;
    journal_extents(out);
  }
  return follow_sender(out);
}

// What was sent, with its CRCs, now and then: what is lost must be read again, not trusted.
void SourceEnd::journal_extents(Effects& out) {
  if (journalling_) return;
  Batch batch;
  for (uint32_t i = 0; i < catalog().object_count(); ++i) {
    std::vector<recovery::Block> blocks = sender_.take_changed(ObjectId(i));
    if (!blocks.empty()) batch.blocks.push_back({.object = ObjectId(i), .blocks = std::move(blocks)});
  }
  if (batch.blocks.empty()) return;
  journalling_ = true;
  pending_.ask(
      WriteJournal{.entry = Entry::kExtents, .batch = std::move(batch), .durability = Durability::kProcess},
      out);
}

Status SourceEnd::on(const JournalWritten& event, Effects& /*out*/) {
  pending_.answered();
  if (event.entry == Entry::kGrown) return found_noted(event.status);
  journalling_ = false;
  return event.status;
}

}  // namespace sluice::transfer
