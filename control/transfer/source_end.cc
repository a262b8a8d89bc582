// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/source_end.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>

#include "control/catalog/asked_names.h"
#include "control/rate/lane_shares.h"
#include "control/transfer/kept.h"

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
          .lane_rate_bps = agreement.rate_bps / std::max(1U, agreement.lanes)};
}

}  // namespace

SourceEnd::SourceEnd(const Settings& settings, const Agreement& agreement,
                     const std::vector<catalog::File>& files)
    : settings_(settings),
      files_(settings, files),
      extent_bytes_(agreement.extent_bytes),
      crc_kind_(agreement.crc_kind),
      sender_(layouts_of(files, agreement), agreement.lanes, options_of(settings, agreement)) {}

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

Result<SourceEnd> SourceEnd::restore(const Settings& settings, const Agreement& agreement,
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

Result<SourceEnd> SourceEnd::make(const Settings& settings, const Agreement& agreement,
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
  std::vector<TransferOffer> parts(1);
  auto number = static_cast<uint32_t>(from);
  size_t holes = 0, kept_bytes = 0;  // in this part
  for (const catalog::File& file :
       std::span(catalog().files().begin(), catalog().files().end()).subspan(from)) {
    holes += file.holes.size();
    kept_bytes += file.attributes.kept_bytes();
    if (parts.back().files.size() == kFilesPerOffer || holes > catalog::kHolesMax ||
        kept_bytes > kKeptBytesPerOffer) {
      parts.back().more = true;
      parts.emplace_back();
      holes = file.holes.size();
      kept_bytes = file.attributes.kept_bytes();
    }
    parts.back().files.push_back({.number = number++,
                                  .name = file.name,
                                  .size_bytes = file.size_bytes,
                                  .mode = file.mode,
                                  .mtime_ns = file.mtime_ns,
                                  .kind = file.kind,
                                  .members = file.pack.members,
                                  .holes = file.holes,
                                  .attributes = file.attributes});
  }
  for (TransferOffer& part : parts) {
    part.growing = catalog().growing();
    part.keep = catalog().keep().bits();
    part.into_directory = catalog().file_count() > 1 || catalog().has_packs() || catalog().grew();
    if (request == nullptr) continue;
    part.destination = request->destination;
    // "DIR/" means what is in it, and that goes into a directory, be it one file.
    part.into_directory |=
        part.destination.ends_with('/') || catalog::AskedNames(request->source_paths).any();
    part.overwrite = request->options.overwrite;
    part.verify = request->options.verify;
    part.mkdir = request->options.mkdir;
  }
  return parts;
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

void SourceEnd::begin(const std::string& peer_name, ControlStream& stream, const Agreement& agreement,
                      size_t lanes, uint64_t now_ns) {
  stream_ = &stream;
  journalling_ = false;
  peer_ended_ = false;
  caps_.agreed_bps = agreement.rate_bps;
  on_new_stream();
  rate::Terms terms = agreement.rate_terms();
  terms.cap_bps = rate_cap_bps();
  // What a peer behind a NAT takes for its address many others may have as well.
  const bool learnt = agreement.reach == board::Reach::kPeerOpens;
  const std::string address(agreement.peer_ip.begin(), agreement.peer_ip.end());
  rate_ = settings_.paths->join(learnt ? peer_name : address, terms, now_ns);
  path_.begin(peer_name, agreement, lanes, settings_.paths->sizes(), now_ns);
  lane_rates_.assign(lanes, UINT64_MAX);
  journal_due_ns_ = now_ns + settings_.sync_lag_ns;
  sender_.start_attempt(static_cast<uint32_t>(lanes), options_of(settings_, agreement), now_ns);
  held_at_start_ = sender_.bytes_held();
  flows_done_ = 0;
  states_known_ = false;
}

void SourceEnd::start_attempt(const std::string& peer_name, ControlStream& stream, const Agreement& agreement,
                              size_t lanes, uint64_t now_ns, Effects& out) {
  begin(peer_name, stream, agreement, lanes, now_ns);
  open_next(out);
}

void SourceEnd::adopt_work(const std::string& peer_name, ControlStream& stream, const Agreement& agreement,
                           size_t lanes, uint32_t tag, uint64_t now_ns, Effects& out) {
  begin(peer_name, stream, agreement, lanes, now_ns);
  work_tag_ = tag;
  work_answers_ = static_cast<uint32_t>(lanes);
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    out.add(
        CommandLane{.leg = stream_->leg(),
                    .command = {.kind = board::CommandKind::kQueryWork, .lane = LaneId(lane), .tag = tag}});
  }
}

void SourceEnd::attempt_over() {
  pending_.check_none();
  work_answers_ = 0;
  rate_.reset();
  files_.attempt_over();
  stream_ = nullptr;
  if (list_.phase == ListPhase::kOffered) list_.phase.change(ListPhase::kOffering);
}

// ---- what follows -------------------------------------------------------------------------------

Status SourceEnd::follow_sender(Effects& out) {
  if (stream_ == nullptr) return {};  // between attempts it wants nothing that is still right later
  const recovery::Sender::Actions wants = sender_.take_actions();
  for (const recovery::LaneCommand& command : wants.commands) out.add(CommandLane{stream_->leg(), command});
  for (const recovery::Sender::SentRange& sent : wants.sent) {
    say(PartitionSent{.object = sent.object, .range = sent.range, .lane = sent.lane}, out);
  }
  for (const ObjectId object : wants.digests) check_source(object, std::nullopt, out);
  for (const ObjectId object : wants.differ) check_source(object, differs(object), out);
  for (const ObjectId object : wants.done) {
    for (catalog::File& file : files_.catalog().files_of(object)) {
      if (file.failed()) continue;
      if (!file.packed()) file.missing.forget_failures();  // it was withdrawn too late to fail
      file.state = catalog::FileState::kDone;
      file.digest = sender_.digest(object);
    }
    files_.done(object, out);
  }
  open_next(out);  // what is done makes room
  for (const ObjectId object : wants.changed) {
    if (Status status = found_changed(object, out); !status) return status;
  }
  return {};
}

// An attempt without flows only hears how the transfer has ended: nothing is read for it.
void SourceEnd::open_next(Effects& out) {
  if (!lane_rates_.empty()) files_.open_next(extent_bytes_, &sender_, out);
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
      if (work_answers_ != 0 && event.event.tag == work_tag_) sender_.adopt(event.event, event.lane);
      return {};
    case board::EventKind::kWorkEnd:
      if (work_answers_ != 0 && event.event.tag == work_tag_) --work_answers_;
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
    default:
      sender_.on_event(event.event, event.lane);
      return follow_sender(out);
  }
}

Status SourceEnd::on(const Tick& event, uint64_t now_ns, Effects& out) {
  command_backlog_ = event.command_backlog;
  sender_.tick(now_ns);
  if (!event.lanes.empty()) control_rate(event, now_ns, out);
  if (Status status = path_.step(event, settings_.paths->sizes(), now_ns, out); !status) return status;
  reread(out);
  if (now_ns >= journal_due_ns_) {
    journal_due_ns_ = now_ns + settings_.sync_lag_ns;
    journal_extents(out);
  }
  return follow_sender(out);
}

uint64_t SourceEnd::rate_cap_bps() const {
  uint64_t cap_bps = caps_.agreed_bps;
  if (caps_.own_bps != 0) cap_bps = std::min(cap_bps, caps_.own_bps);
  if (caps_.peer_bps != 0) cap_bps = std::min(cap_bps, caps_.peer_bps);
  return cap_bps;
}

verdict::LimitOf SourceEnd::cap_of() const {
  const uint64_t cap_bps = rate_cap_bps();
  if (cap_bps == caps_.agreed_bps) return verdict::LimitOf::kAgreed;
  return cap_bps == caps_.own_bps ? verdict::LimitOf::kOperator : verdict::LimitOf::kPeer;
}

void SourceEnd::limit_rate(uint64_t limit_bps) {
  if (std::exchange(caps_.own_bps, limit_bps) == limit_bps) return;
  if (rate_ != nullptr) rate_->set_cap(rate_cap_bps());
}

void SourceEnd::on_new_stream() {
  if (list_.phase == ListPhase::kOffered) list_.phase.change(ListPhase::kOffering);
  caps_.peer_bps = 0;
  if (rate_ != nullptr) rate_->set_cap(rate_cap_bps());
}

void SourceEnd::control_rate(const Tick& event, uint64_t now_ns, Effects& out) {
  control::FlowFigures figures;
  Indexed<LaneId, bool> busy;
  for (uint32_t i = 0; i < event.lanes.size(); ++i) {
    const board::FlowState& state = event.lanes[i]->state;
    figures.add(state);
    busy.push_back(sender_.has_work(LaneId(i), state));
  }
  flows_done_ = figures.bytes_done;
  const rate::Condition before = rate_->condition();
  rate::PathReport report = figures.report();
  report.datagram_bytes = path_.datagram_bytes();
  const bool works = std::find(busy.begin(), busy.end(), true) != busy.end();
  const uint64_t rate_bps = rate_->step(report, works, now_ns);
  if (rate_->condition() != before && rate_->condition() > rate::Condition::kRunning) {
    out.log(LogLevel::kWarn, fmt::format("{}: {:.2f} Gbit/s", rate::condition_name(rate_->condition()),
                                         static_cast<double>(rate_bps) * 1e-9));
  }
  if (const std::optional<LaneId> sending = path_.sending(now_ns)) {
    busy.assign(busy.size(), false);
    busy[*sending] = true;
  }
  const Indexed<LaneId, uint64_t> shares = rate::lane_shares(rate_bps, busy);
  for (uint32_t i = 0; i < shares.size(); ++i) {
    const LaneId lane(i);
    if (std::exchange(lane_rates_[lane], shares[lane]) == shares[lane]) continue;
    out.add(SetRate{.leg = stream_->leg(), .lane = lane, .rate_bps = shares[lane]});
  }
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

// ---- what it knows -----------------------------------------------------------------------------

uint64_t SourceEnd::bytes_done(const control::FlowFigures& figures) const {
  const uint64_t total = catalog().bytes_total();
  if (complete()) return sender_.bytes_held();
  return std::min(total, std::max(sender_.bytes_held(), held_at_start_ + figures.bytes_done));
}

uint64_t SourceEnd::bytes_done(ObjectId object) const {
  const bool stored = sender_.done(object) && !catalog().files_of(object).front().failed();
  return stored ? catalog().object(object).size_bytes : sender_.bytes_held(object);
}

std::optional<uint64_t> SourceEnd::digest(ObjectId object) const {
  return sender_.digest_known(object) ? std::optional(sender_.digest(object)) : std::nullopt;
}

std::optional<uint64_t> SourceEnd::peer_digest(ObjectId object) const {
  return sender_.done(object) ? sender_.peer_digest(object) : std::nullopt;
}

std::string SourceEnd::waiting_for(const control::FlowFigures& before, const control::FlowFigures& now,
                                   uint64_t interval_ns, uint64_t now_ns) const {
  if (!recheck_.idle())
    return fmt::format("source disk (reading {} again, which may have changed)",
                       catalog().shown(recheck_.object()));
  if (rereading_) return "source disk (reading again what the journal does not know)";
  const std::string wait = control::sender_wait(before, now, interval_ns, now_ns);
  if (!wait.empty()) return wait;
  if (waits_for_list()) return catalog().growing() ? "the list of files" : "peer's files";
  if (!all_sent()) return "";
  return now.retransmitted_chunks == before.retransmitted_chunks ? "peer's disk (sync)" : "what was lost";
}

bool SourceEnd::all_sent() const {
  for (uint32_t i = 0; i < catalog().object_count(); ++i) {
    if (!sender_.digest_known(ObjectId(i))) return false;
  }
  return true;
}

}  // namespace sluice::transfer
