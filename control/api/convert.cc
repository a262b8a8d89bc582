// SPDX-License-Identifier: Apache-2.0
#include "control/api/convert.h"

#include <algorithm>
#include <cstring>

#include "control/proto/option_fields.h"
#include "control/proto/session_state.h"
#include "control/proto/valid_text.h"
#include "dataplane/base/text.h"

namespace sluice::service {
namespace {

constexpr double kPerNs = 1e-9;

api::Session::State api_state(transfer::ViewState state) {
  switch (state) {
    case transfer::ViewState::kQueued:
      return api::Session::QUEUED;
    case transfer::ViewState::kConnecting:
      return api::Session::CONNECTING;
    case transfer::ViewState::kNegotiating:
      return api::Session::NEGOTIATING;
    case transfer::ViewState::kTransferring:
      return api::Session::TRANSFERRING;
    case transfer::ViewState::kFinishing:
      return api::Session::FINISHING;
    case transfer::ViewState::kWaiting:
      return api::Session::WAITING;
    case transfer::ViewState::kPaused:
      return api::Session::PAUSED;
    case transfer::ViewState::kSucceeded:
      return api::Session::SUCCEEDED;
    case transfer::ViewState::kFailed:
      return api::Session::FAILED;
    case transfer::ViewState::kCancelled:
      return api::Session::CANCELLED;
  }
  return api::Session::STATE_UNSPECIFIED;
}

const char* deadline_state_name(transfer::DeadlineState state) {
  switch (state) {
    case transfer::DeadlineState::kMeasuring:
      return "measuring";
    case transfer::DeadlineState::kAdmitted:
      return "admitted";
    case transfer::DeadlineState::kDoubtful:
      return "doubtful";
    case transfer::DeadlineState::kLate:
      return "late";
    case transfer::DeadlineState::kKept:
      return "kept";
    case transfer::DeadlineState::kMissed:
      return "missed";
  }
  return "";
}

void add_deadline(const transfer::DeadlineView& deadline, api::Session* session) {
  session->set_deadline_unix_ns(deadline.deadline_unix_ns);
  session->set_deadline_state(deadline_state_name(deadline.state));
  if (deadline.chance) session->set_deadline_chance_percent(100 * *deadline.chance);
  session->set_expected_end_unix_ns(deadline.expected_end_unix_ns.value_or(0));
  session->set_late_s(static_cast<double>(deadline.late_ns) * kPerNs);
}

std::string direction_of(const transfer::View& view) {
  const bool sends = view.role == transfer::Role::kSource;
  if (!view.asker.source_node.empty()) return "order";
  if (view.asker.of_this_node) return sends ? "send" : "get";
  return sends ? "serve-send" : "serve-receive";
}

void add_file(const transfer::FileView& file, api::Session* session) {
  api::FileProgress* const progress = session->add_files();
  progress->set_object(file.object);
  progress->set_source(base::printable(file.source));
  progress->set_destination(base::printable(file.destination));
  progress->set_size(file.size_bytes);
  progress->set_bytes_done(file.bytes_done);
  progress->set_done(file.done);
  progress->set_digest_source(file.digest_source);
  progress->set_digest_destination(file.digest_destination);
  progress->set_names(file.names);
  progress->set_packed(file.packed);
  put_values(file.digests, progress->mutable_digests());
}

void add_names(const transfer::NamesView& names, api::NamesProgress* to) {
  to->set_total(names.total);
  to->set_done(names.done);
  to->set_failed(names.failed);
  to->set_left_out(names.left_out);
  for (const catalog::FailedName& name : names.failures) {
    api::MissingName* const one = to->add_missing();
    one->set_path(base::printable(name.path));
    one->set_reason(std::string(catalog::failure_text(name.failure)));
    one->set_arrived(name.failure == catalog::kOtherTime);
  }
}

void add_summary(const transfer::Summary& summary, api::Session* session) {
  session->set_bytes_done(summary.bytes_done);
  session->set_bytes_sent(summary.bytes_sent);
  session->set_chunks(summary.chunks);
  session->set_retransmits(summary.retransmits);
  session->set_duplicates(summary.duplicates);
  session->set_crc_errors(summary.crc_errors);
  session->set_lost(summary.lost);
  session->set_no_room(summary.no_room);
  session->set_rtt_us(static_cast<double>(summary.rtt_ns) * 1e-3);
  session->set_elapsed_s(static_cast<double>(summary.elapsed_ns) * kPerNs);
  const double data_s = static_cast<double>(summary.data_elapsed_ns) * kPerNs;
  session->set_data_elapsed_s(data_s);
  // Holes are done, and nobody has carried them.
  const uint64_t saved =
      summary.compressed_bytes - std::min(summary.compressed_bytes, summary.compressed_wire_bytes);
  const uint64_t carried = std::min(summary.bytes_done, summary.bytes_sent + saved);
  if (data_s > 0) session->set_goodput_bps(static_cast<double>(carried) * 8 / data_s);
  session->set_attempts(static_cast<uint32_t>(summary.attempts));
  session->set_bytes_resent(summary.bytes_resent);
  session->set_wire(summary.device);
  session->set_parity(summary.parity);
  session->set_decoded_chunks(summary.decoded_chunks);
  session->set_compressed_bytes(summary.compressed_bytes);
  session->set_compressed_wire_bytes(summary.compressed_wire_bytes);
  session->set_digest_s(static_cast<double>(summary.digest_ns) * kPerNs);
}

void put(const verdict::Verdict& verdict, api::Bottleneck* to) {
  to->set_cause(std::string(verdict::cause_name(verdict.cause)));
  to->set_share(verdict.share);
  for (const std::string& line : verdict.evidence) to->add_evidence(line);
}

void add_history(const std::vector<verdict::Point>& history, api::Session* session) {
  for (const verdict::Point& point : history) {
    api::RatePoint* const one = session->add_history();
    const double seconds = static_cast<double>(point.length_ns) * kPerNs;
    one->set_seconds(seconds);
    if (seconds > 0) one->set_rate_bps(8 * static_cast<double>(point.bytes) / seconds);
    one->set_cause(std::string(verdict::cause_name(point.cause)));
  }
}

void add_leg(const transfer::LegView& leg, api::Session* session) {
  api::LegProgress* const one = session->add_legs();
  one->set_leg(static_cast<uint32_t>(session->legs_size() - 1));
  one->set_peer(leg.peer);
  one->set_state(leg.state);
  one->set_waiting_for(leg.waiting_for);
  one->set_lanes(leg.lanes);
  one->set_bytes(leg.figures.bytes);
  if (leg.rate_bps) one->set_rate_bps(*leg.rate_bps);
  one->set_retransmits(leg.figures.retransmitted_chunks);
  one->set_lost(leg.figures.network_lost);
  one->set_rtt_us(static_cast<double>(leg.figures.rtt_ns) * 1e-3);
  one->set_error(leg.error);
}

void add_size(const rate::SizePoint& point, api::Session* session) {
  api::ChunkSize* const size = session->add_sizes();
  size->set_chunk_bytes(point.sample.chunk_bytes);
  size->set_sent(point.sample.sent);
  size->set_arrived(point.sample.arrived);
  size->set_arrives(point.arrives);
  size->set_goodput(point.goodput);
  size->set_payload_bytes(point.payload_bytes);
}

std::string word_of(uint64_t word, uint64_t bytes) {
  std::string text(sizeof word, '\0');
  std::memcpy(text.data(), &word, sizeof word);
  text.resize(std::min<uint64_t>(bytes, sizeof word));
  return text;
}

void add_echoes(const transfer::EchoView& echoes, const board::EchoFigures& figures, api::Echoes* to) {
  to->set_asked(echoes.asked);
  to->set_bytes(echoes.bytes);
  to->set_sent(figures.sent);
  to->set_came(figures.came);
  to->set_wrong(figures.wrong);
  to->set_wrong_bytes(figures.wrong_bytes);
  to->set_copies(figures.copies);
  to->set_over(figures.over);
  to->set_udp_checksum(echoes.udp_checksum);
  for (const board::Event& fault : echoes.faults) {
    api::EchoFault* const one = to->add_faults();
    one->set_number(fault.object);
    one->set_offset(static_cast<uint32_t>(fault.offset));
    one->set_sent(word_of(fault.digest, fault.length));
    one->set_came(word_of(fault.value, fault.length));
  }
}

// Nothing: no list says it. kUsage.
Result<std::shared_ptr<const digests::Expected>> expected_in(const api::TransferOptions& options) {
  if (options.expected().empty()) return std::shared_ptr<const digests::Expected>();
  digests::Expected expected;
  for (const api::NameDigests& name : options.expected()) {
    digests::Values values;
    for (const api::Digest& digest : name.digests()) {
      const std::optional<digests::Kind> kind = digests::kind_named(digest.kind());
      digests::Value value{.kind = kind.value_or(digests::Kind::kSha256), .hex = digest.hex()};
      if (!kind || !digests::good(value))
        return Error{ErrorCode::kUsage,
                     fmt::format("expected digest of {}: {} \"{}\" is none; known are {}",
                                 base::printable(name.path()), base::printable(digest.kind(), 40),
                                 base::printable(digest.hex(), 140), digests::kind_names())};
      values.push_back(std::move(value));
    }
    expected.insert_or_assign(name.path(), std::move(values));
  }
  if (expected.size() > digests::kExpectedMax || digests::bytes_of(expected) > digests::kExpectedBytesMax)
    return Error{ErrorCode::kUsage,
                 fmt::format("a list of {} names: {} of {} MiB are possible at most; send parts of it by "
                             "themselves, or compare what has arrived by 'sluice verify --against'",
                             expected.size(), digests::kExpectedMax, digests::kExpectedBytesMax >> 20)};
  return std::make_shared<const digests::Expected>(std::move(expected));
}

template <typename Request>
Result<node::Wishes> wishes_of_any(const Request& request) {
  const api::TransferOptions& options = request.options();
  const Result<options::Wish> wish = api::wish_of(options);
  if (!wish) return wish.error();
  node::Wishes wishes{.peer = request.peer(),
                      .sources = {request.sources().begin(), request.sources().end()},
                      .destination = request.destination(),
                      .options = *wish,
                      .selection = selection::selection_of(options)};
  if (options.has_local_files())
    wishes.local_files = transfer::LocalFiles{
        .uid = 0,
        .token = options.local_files().token(),
        .names = {options.local_files().names().begin(), options.local_files().names().end()}};
  Result<std::shared_ptr<const digests::Expected>> expected = expected_in(options);
  if (!expected) return expected.error();
  wishes.expected = std::move(*expected);
  if (wishes.expected)
    wishes.options.digests = wishes.options.digests.value_or(0) | digests::mask_of(*wishes.expected);
  if (!options.lease().empty()) {
    Result<transfer::Lease> lease = transfer::parse_lease(options.lease());
    if (!lease) return lease.error();
    wishes.lease = std::move(*lease);
  }
  Result<selection::FilePart> part = selection::parse_file_part(options.part());
  if (!part) return part.error();
  wishes.selection.part = std::move(*part);
  selection::Keep& keep = wishes.selection.keep;
#define SLUICE_OPTION(...)
#define SLUICE_KEEP(name, ...) keep.name = options.name();
#include "dataplane/base/options/options.def"
  keep.top = options.top();
  return wishes;
}

}  // namespace

void put_values(const digests::Values& values, google::protobuf::RepeatedPtrField<api::Digest>* to) {
  for (const digests::Value& value : values) {
    api::Digest* const one = to->Add();
    one->set_kind(std::string(name_of(value.kind)));
    one->set_hex(value.hex);
  }
}

api::Session to_api(const transfer::View& view) {
  api::Session session;
  session.set_id(view.id);
  session.set_state(api_state(view.state));
  session.set_direction(direction_of(view));
  session.set_peer(view.peer);
  session.set_from(view.asker.source_node);
  session.set_ordered_by(view.asker.ordered_by);
  session.set_lease(view.asker.lease);
  if (view.asker.user) {
    session.set_user(base::printable(view.asker.user->name));
    session.set_uid(view.asker.user->uid);
  } else if (view.asker.mapped) {
    session.set_user(transfer::mapped_text(*view.asker.mapped, view.peer));
    session.set_uid(view.asker.mapped->user.uid);
  }
  if (view.asker.local_files) {
    api::LocalFiles* const local = session.mutable_local_files();
    local->set_uid(view.asker.local_files->uid);
    local->set_token(view.asker.local_files->token);
    for (const std::string& name : view.asker.local_files->names) local->add_names(name);
  }
  for (const transfer::FileView& file : view.files) add_file(file, &session);
  for (const transfer::LegView& leg : view.legs) add_leg(leg, &session);
  add_names(view.names, session.mutable_names());
  session.set_bytes_total(view.bytes_total);
  session.set_listing(view.names.listing);
  add_summary(view.summary, &session);
  put(view.bottleneck.now, session.mutable_bottleneck());
  for (const verdict::Verdict& cause : view.bottleneck.causes) put(cause, session.add_causes());
  add_history(view.summary.history, &session);
  if (view.rate_bps) session.set_rate_bps(*view.rate_bps);
  session.set_lanes(view.lanes);
  session.set_chunk_bytes(view.chunk_bytes);
  session.set_chunk_reason(view.chunk_reason);
  for (const rate::SizePoint& point : view.sizes.points) add_size(point, &session);
  if (view.sizes.law.per_byte > 0) session.set_loss_length_bytes(1 / view.sizes.law.per_byte);
  session.set_crc(view.crc);
  session.set_protection(view.protection);
  session.set_fec(view.extras.fec);
  session.set_compress(view.extras.compress);
  session.set_rate_limit_bps(view.rate.limit_bps);
  session.set_rate_mode(view.rate.mode);
  if (view.rate.condition) session.set_rate_state(std::string(rate::condition_name(*view.rate.condition)));
  session.set_started_unix_ns(view.started_unix_ns);
  session.set_waiting_for(view.waiting_for);
  session.set_priority(view.queue.priority);
  session.set_queue_place(view.queue.place);
  session.set_queue_length(view.queue.length);
  if (view.deadline) add_deadline(*view.deadline, &session);
  for (const transfer::LegView& leg : view.legs) {
    if (leg.echoes) add_echoes(*leg.echoes, leg.figures.extra.echoes, session.mutable_echoes());
  }
  if (view.error) {
    session.set_error_code(static_cast<uint32_t>(view.error->code));
    session.set_error(view.error->message);
    session.set_error_name(std::string(error_code_name(view.error->code)));
  }
  session.set_state_name(api::state_name(session));
  api::make_texts_valid(&session);
  return session;
}

Result<node::Wishes> wishes_of(const api::SendRequest& request) {
  Result<node::Wishes> wishes = wishes_of_any(request);
  if (!wishes) return wishes;
  wishes->source_node = request.from();
  wishes->id = request.id();
  return wishes;
}
Result<node::Wishes> wishes_of(const api::GetRequest& request) {
  Result<node::Wishes> wishes = wishes_of_any(request);
  if (wishes) wishes->more_peers = {request.more_peers().begin(), request.more_peers().end()};
  return wishes;
}

}  // namespace sluice::service
