// A transfer as an operator sees it, while it runs and from what the journal has of it; its figures.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "control/leg/codes.h"
#include "control/leg/compression.h"
#include "control/transfer/transfer.h"

namespace sluice::transfer {
namespace {

ViewState view_of_end(RecordState state) {
  return state == RecordState::kSucceeded   ? ViewState::kSucceeded
         : state == RecordState::kCancelled ? ViewState::kCancelled
                                            : ViewState::kFailed;
}

AskerView asker_of(bool initiator, const Request& request) {
  return {.of_this_node = initiator, .user = request.user, .local_files = request.local_files};
}

// What removed an unfinished file has no bytes, and says nothing of any.
bool has_digest(const catalog::File& file) { return file.part.what != selection::FilePart::What::kDrop; }

// A session that finished a file moved nothing of it, and still tells of all of it.
void show_finished(const catalog::File& file, wire::CrcKind kind, FileView* view) {
  if (!file.whole_digest) return;
  view->size_bytes = view->bytes_done = file.part.whole_bytes;
  view->digest_source = view->digest_destination = board::digest_hex(kind, *file.whole_digest);
}

void add_digests(const Job& job, ObjectId object, wire::CrcKind kind, FileView* view) {
  const auto [source, destination] = job.end()->digests(object);
  if (source) view->digest_source = board::digest_hex(kind, *source);
  if (destination) view->digest_destination = board::digest_hex(kind, *destination);
}

void add_values(const catalog::File& file, FileView* view) {
  if (!file.packed() && !file.digests.found.empty()) view->digests = file.digests.found.front().values;
}

void count_names(const catalog::File& file, bool done, NamesView* names) {
  names->total += file.names();
  if (done) names->done += file.names() - std::min(file.names(), file.missing.failed + file.missing.left_out);
  names->failed += file.missing.failed;
  names->left_out += file.missing.left_out;
  for (const catalog::FailedName& name : file.missing.names) {
    if (names->failures.size() == kFailuresShown) return;
    names->failures.push_back(name);
  }
}

void add_causes(const Summary& summary, View* view) {
  verdict::Tally tally;
  for (const verdict::Tally::Row& row : summary.causes) tally.add(row);
  view->bottleneck = {.now = tally.whole(), .causes = tally.shares()};
}

std::string leg_state(Siblings::Stage stage) {
  constexpr const char* kNames[] = {"away",      "waiting", "beginning", "beginning",
                                    "beginning", "moving",  "ending",    "ending"};
  return kNames[static_cast<size_t>(stage)];
}

// What is not as it was wished for of a session that has succeeded.
void note_shortfall(View* view) {
  if (view->names.failed != 0) {
    view->error =
        Error{ErrorCode::kPartial,
              fmt::format("{} of {} names did not arrive, all others did: 'sluice session show' says "
                          "why of each; mend that, and send the same again",
                          view->names.failed, view->names.total)};
  } else if (view->deadline && view->deadline->late_ns != 0) {
    view->error = late_error(*view->deadline);
  }
}

// Whatever else holds a session: sockets are slower than the device that they stand in for.
void note_fallback(const Leg& leg, verdict::Verdict* verdict) {
  if (verdict->cause == verdict::Cause::kNone || !leg.dataplane()) return;
  const board::PortInfo& port = leg.dataplane()->port;
  if (port.fallback_for[0] == 0) return;
  if (verdict->evidence.size() == verdict::kEvidenceMax) verdict->evidence.pop_back();
  verdict->evidence.insert(verdict->evidence.begin(),
                           fmt::format("this node carries data by its fallback, udp: device {} is gone ({})",
                                       port.fallback_for, port.fallback_reason));
}

ExtrasView extras_of(AbilitySet abilities) {
  return {.fec = std::string(fec_name(abilities)), .compress = std::string(compress_name(abilities))};
}

}  // namespace

Summary Transfer::summary(const board::FlowFigures& all, uint64_t now_ns) const {
  const Leg& leg = shown_leg();
  Summary summary;
  summary.bytes_done = job_.bytes_done();
  if (phase_ < TransferPhase::kEnding || !job_.complete())
    summary.bytes_done = std::max(summary.bytes_done, shown_.bytes_done);
  summary.bytes_sent = before_.bytes_sent + all.bytes;
  summary.chunks = before_.chunks + all.chunks;
  summary.retransmits = before_.retransmits + all.retransmitted_chunks;
  summary.duplicates = before_.duplicates + all.duplicate_chunks;
  summary.crc_errors = before_.crc_errors + all.crc_errors;
  summary.lost = before_.lost + all.network_lost;
  summary.no_room = before_.no_room + all.no_room;
  summary.parity = before_.parity + all.extra.parity.symbols;
  summary.decoded_chunks = before_.decoded_chunks + all.extra.parity.decoded_chunks;
  summary.compressed_bytes = before_.compressed_bytes + all.extra.compression.bytes;
  summary.compressed_wire_bytes = before_.compressed_wire_bytes + all.extra.compression.wire_bytes;
  summary.rtt_ns = all.rtt_ns;
  const uint64_t until_ns = times_.ended_ns != 0 ? times_.ended_ns : now_ns;
  summary.elapsed_ns = times_.before_ns + until_ns - times_.started_ns;
  if (times_.data_started_ns != 0) {
    const uint64_t data_until_ns = times_.data_ended_ns != 0 ? times_.data_ended_ns : now_ns;
    summary.data_elapsed_ns = times_.data_before_ns + data_until_ns - times_.data_started_ns;
  }
  summary.attempts = attempts_.count;
  if (job_.source() != nullptr) {
    const uint64_t saved =
        board::CompressionFigures{summary.compressed_bytes, summary.compressed_wire_bytes}.saved_bytes();
    const uint64_t sent = summary.bytes_sent + saved + summary.retransmits * leg.agreement().chunk_bytes;
    summary.bytes_resent = sent - std::min(sent, job_.bytes_total());
  }
  summary.device = device_;
  summary.digest_ns = before_.digest_ns + (job_.has_end() ? job_.end()->digest_ns() : 0);
  verdict::Tally tally = leg.watch().bottleneck().tally();
  for (const verdict::Tally::Row& row : before_.causes) tally.add(row);
  summary.causes = tally.rows();
  verdict::History history;
  history.restore(before_.history);
  for (const verdict::Point& point : leg.watch().bottleneck().history().points()) history.add(point);
  summary.history = history.points();
  return summary;
}

ViewState Transfer::view_state() const {
  const Leg& leg = shown_leg();
  if (outcome_) return view_of_end(*outcome_);
  switch (phase_) {
    case TransferPhase::kPaused:
      return ViewState::kPaused;
    case TransferPhase::kQueued:
      return turn_.place <= Place::kAside ? ViewState::kWaiting : ViewState::kQueued;
    case TransferPhase::kResting:
    case TransferPhase::kRecovering:
    case TransferPhase::kForgetting:
      return ViewState::kWaiting;
    case TransferPhase::kEnding:
    case TransferPhase::kReleasing:
      return ViewState::kFinishing;
    case TransferPhase::kActive:
      break;
    default:
      return ViewState::kNegotiating;
  }
  switch (leg.phase()) {
    case LegPhase::kDataplane:
    case LegPhase::kPeer:
    case LegPhase::kForgetting:
      return ViewState::kWaiting;
    case LegPhase::kMoving:
      return ViewState::kTransferring;
    case LegPhase::kHandshake:
      if (leg.queued()) return ViewState::kQueued;
      return leg.handshake_phase() == HandshakePhase::kCalling ? ViewState::kConnecting
                                                               : ViewState::kNegotiating;
    case LegPhase::kAdopting:
      return ViewState::kNegotiating;
    default:
      return ViewState::kFinishing;
  }
}

std::string Transfer::waiting_for() const {
  const Leg& leg = shown_leg();
  switch (phase_) {
    case TransferPhase::kPaused:
      return "an operator: 'sluice session continue " + job_.id.substr(0, 8) + "'";
    case TransferPhase::kQueued:
      if (job_.initiator || turn_.place == Place::kAsked || turn_.place == Place::kWaiting) return "its turn";
      return leg.attached() ? "node " + leg.peer_name() : "sluice-dataplane of this node";
    case TransferPhase::kResting:
      if (!leg.attached()) return "sluice-dataplane of this node";
      return rest_->name;
    case TransferPhase::kActive:
      return leg.waiting_for();
    case TransferPhase::kNoting:
    case TransferPhase::kEnding:
      return "journal";
    case TransferPhase::kRecovering:
      return "a look at its unfinished files";
    case TransferPhase::kForgetting:
    case TransferPhase::kReleasing:
      return "unfinished files to be removed";
    default:
      return "";  // it has ended, or this control leaves it
  }
}

std::vector<FileView> Transfer::file_views() const {
  std::vector<FileView> views;
  const catalog::Catalog* const catalog = job_.catalog();
  if (catalog == nullptr && job_.request) {  // nothing is agreed upon yet: what was asked for
    for (const std::string& path : job_.request->source_paths) {
      FileView view{.object = static_cast<uint32_t>(views.size())};
      view.source = path;
      view.destination = job_.request->destination;
      views.push_back(std::move(view));
    }
  }
  for (uint32_t i = 0; catalog != nullptr && i < catalog->object_count(); ++i) {
    const ObjectId object(i);
    const bool source = job_.source() != nullptr;
    for (const catalog::File& file : catalog->files_of(object)) {
      FileView view{
          .object = i, .size_bytes = file.size_bytes, .names = file.names(), .packed = file.packed()};
      view.source = source ? file.shown : file.name;
      view.destination = source ? file.peer_path : file.shown;
      view.bytes_done = job_.end()->bytes_done(object);
      view.done = job_.end()->done(object) && !file.failed();
      if (has_digest(file)) add_digests(job_, object, job_.terms->crc_kind, &view);
      show_finished(file, job_.terms->crc_kind, &view);
      if (view.done) add_values(file, &view);
      views.push_back(std::move(view));
    }
  }
  return views;
}

std::vector<LegView> Transfer::leg_views() const {
  std::vector<LegView> views;
  for (const auto& leg : legs_) {
    const auto end = ends_.how.find(leg->id());
    const bool ended =
        legs_.size() > 1 && end != ends_.how.end() && end->second.error && !ends_.stopped.contains(leg->id());
    views.push_back({.peer = leg->peer_name(),
                     .state = leg_state(job_.legs.stage(leg->id())),
                     .waiting_for = leg->waiting_for(),
                     .lanes = static_cast<uint32_t>(leg->lanes().size()),
                     .rate_bps = leg->moving() ? leg->watch().leg_rate_bps() : std::nullopt,
                     .figures = leg->lanes().all_figures(),
                     .error = ended ? end->second.error->message : leg->left_out()});
    if (job_.request && job_.request->options.echoes != 0)
      views.back().echoes = EchoView{.asked = job_.request->options.echoes,
                                     .bytes = job_.request->options.echo_bytes,
                                     .udp_checksum = leg->agreement().udp_checksum,
                                     .faults = {}};
  }
  return views;
}

View Transfer::view(uint64_t now_ns) const {
  View view = overview(now_ns);
  view.files = file_views();
  for (LegView& leg : view.legs) {
    if (leg.echoes && leg.figures.extra.echoes.over && job_.source() != nullptr)
      leg.echoes->faults = job_.source()->echo_faults();
  }
  return view;
}

View Transfer::overview(uint64_t now_ns) const {
  const Leg& leg = shown_leg();
  View view;
  view.id = job_.id;
  view.state = view_state();
  view.asker.of_this_node = job_.initiator;
  view.role = job_.role;
  view.peer = peers();
  view.legs = leg_views();
  if (job_.request) view.asker = asker_of(job_.initiator, *job_.request);
  if (job_.lease) view.asker.lease = shown_lease(*job_.lease);
  if (job_.granted) view.asker.ordered_by = job_.granted->issuer;
  view.asker.mapped = job_.mapped;
  view.bytes_total = job_.bytes_total();
  view.names.listing = job_.has_end() && job_.catalog()->growing();
  view.summary = summary(all_figures(), now_ns);
  add_causes(view.summary, &view);
  if (leg.phase() == LegPhase::kMoving) view.bottleneck.now = leg.watch().bottleneck().now();
  note_fallback(leg, &view.bottleneck.now);
  if (leg.moving()) view.rate_bps = leg.watch().rate_bps();
  view.lanes = leg.agreement().lanes;
  view.chunk_bytes = leg.agreement().chunk_bytes;
  if (view.lanes != 0) view.chunk_reason = rate::size_reason_name(leg.agreement().chunk_reason);
  if (job_.role == Role::kSource && leg.agreement().chunk_auto) {
    const rate::SizeCurve* const curve =
        settings_.paths->sizes().measured(leg.peer_name(), leg.agreement().ip4(), now_ns);
    if (curve != nullptr) view.sizes = *curve;
  }
  if (view.lanes != 0) view.crc = wire::crc_kind_name(leg.agreement().crc_kind);
  if (view.lanes != 0) view.protection = wire::protection_name(leg.agreement().protection);
  if (view.lanes != 0) view.extras = extras_of(leg.agreement().abilities);
  view.rate.limit_bps = cap_bps();
  if (view.lanes != 0) view.rate.mode = rate::mode_name(leg.agreement().mode);
  if (const RateSum sum = rate_sum(); sum.known && leg.moving()) {
    view.rate.limit_bps = sum.cap_bps;
    if (const rate::Share* const rate = job_.source()->rate(leg.id()))
      view.rate.condition = rate->condition();
  }
  view.started_unix_ns = times_.started_unix_ns;
  view.waiting_for = waiting_for();
  view.queue.priority = job_.priority;
  view.error = error_ && phase_ >= TransferPhase::kEnding ? error_ : held_;
  view.deadline = deadline_view(now_ns);
  for (uint32_t i = 0; job_.has_end() && i < job_.catalog()->object_count(); ++i) {
    const ObjectId object(i);
    const bool done = job_.end()->done(object);
    for (const catalog::File& file : job_.catalog()->files_of(object)) count_names(file, done, &view.names);
  }
  if (outcome_ == RecordState::kSucceeded) note_shortfall(&view);
  return view;
}

View view_of(const Saved& saved) {
  const Record& record = saved.record;
  View view;
  view.id = record.id;
  view.state = view_of_end(record.state);
  view.asker.of_this_node = record.initiator;
  view.role = record.role;
  const Agreement* const agreement = agreement_of(record);
  view.peer = peers_of(record.legs);
  for (const LegRecord& leg : record.legs)
    view.legs.push_back({.peer = leg.peer, .state = "away", .error = leg.left_out});
  if (record.request) view.asker = asker_of(record.initiator, *record.request);
  if (record.lease) view.asker.lease = shown_lease(*record.lease);
  if (record.granted) view.asker.ordered_by = record.granted->issuer;
  view.asker.mapped = record.mapped;
  const bool source = record.role == Role::kSource;
  uint32_t object = 0;
  for (const catalog::File& file : saved.files) {
    const bool done = file.state == catalog::FileState::kDone;
    FileView one{.object = object++,
                 .size_bytes = file.size_bytes,
                 .done = done,
                 .names = file.names(),
                 .packed = file.packed()};
    count_names(file, done, &view.names);
    one.source = source ? file.shown : file.name;
    one.destination = source ? file.peer_path : file.shown;
    one.bytes_done = done ? file.size_bytes : 0;
    if (done && agreement != nullptr && has_digest(file)) {
      one.digest_source = one.digest_destination = board::digest_hex(agreement->crc_kind, file.digest);
      show_finished(file, agreement->crc_kind, &one);
    }
    if (done) add_values(file, &one);
    view.bytes_total += file.size_bytes;
    view.names.listing = file.list == catalog::ListState::kGrowing;
    view.files.push_back(std::move(one));
  }
  view.summary = record.summary;
  add_causes(view.summary, &view);
  if (agreement != nullptr) {
    view.lanes = agreement->lanes;
    view.chunk_bytes = agreement->chunk_bytes;
    view.chunk_reason = rate::size_reason_name(agreement->chunk_reason);
    view.crc = wire::crc_kind_name(agreement->crc_kind);
    view.protection = wire::protection_name(agreement->protection);
    view.extras = extras_of(agreement->abilities);
    view.rate.limit_bps = agreement->rate_bps;
    view.rate.mode = rate::mode_name(agreement->mode);
  }
  view.started_unix_ns = record.started_unix_ns;
  view.queue.priority = record.priority;
  view.error = record.error;
  const bool succeeded = record.state == RecordState::kSucceeded;
  if (succeeded) note_shortfall(&view);
  if (!record.request) return view;
  view.deadline =
      deadline_of_end(record.request->options.deadline_unix_ns,
                      record.started_unix_ns + static_cast<int64_t>(record.summary.elapsed_ns), succeeded);
  if (succeeded) note_shortfall(&view);
  return view;
}

}  // namespace sluice::transfer
