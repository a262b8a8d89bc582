// From rows.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/journal/codec.h"
#include "control/journal/digest_rows.h"
#include "control/journal/order_rows.h"
#include "control/proto/ability_fields.h"
#include "control/proto/fields.h"
#include "control/proto/journal.pb.h"
#include "control/proto/option_fields.h"
#include "control/proto/range_fields.h"
#include "control/selection/choice.h"
#include "dataplane/base/file_time.h"

namespace sluice::journal {
namespace {

constexpr uint32_t kCrcKindMax = static_cast<uint32_t>(wire::CrcKind::kRead);
constexpr uint32_t kVerdictMax = static_cast<uint32_t>(transfer::DeadlineAdmission::kDoubtful);
constexpr uint32_t kProtectionMax = static_cast<uint32_t>(wire::Protection::kAes256Gcm);

std::optional<transfer::Agreement> agreement_of(const Agreement& from) {
  if (from.crc_kind() > kCrcKindMax || from.rate_mode() >= rate::kModeNames.size() ||
      from.reach() > static_cast<uint32_t>(board::Reach::kWeOpen) || from.protection() > kProtectionMax) {
    return std::nullopt;
  }
  transfer::Agreement to;
  to.lanes = from.lanes();
  to.chunk_bytes = from.chunk_bytes();
  to.extent_bytes = from.extent_bytes();
  to.partition_bytes = from.partition_bytes();
  to.crc_kind = static_cast<wire::CrcKind>(from.crc_kind());
  to.rate_bps = from.rate_bps();
  to.udp_checksum = from.udp_checksum();
  to.discard = from.discard();
  const auto copy = [](const std::string& bytes, std::array<uint8_t, 16>* ip) {
    if (bytes.size() == ip->size()) std::copy(bytes.begin(), bytes.end(), ip->begin());
  };
  copy(from.local_ip(), &to.local_ip);
  copy(from.peer_ip(), &to.peer_ip);
  for (const uint32_t port : from.peer_ports()) to.peer_ports.push_back(static_cast<uint16_t>(port));
  to.mode = static_cast<rate::Mode>(from.rate_mode());
  to.expected_loss_ppm = std::min(from.expected_loss_ppm(), transfer::kExpectedLossPpmMax);
  to.chunk_reason = rate::size_reason_of(from.chunk_reason());
  to.chunk_auto = from.chunk_auto();
  to.reach = static_cast<board::Reach>(from.reach());
  to.protection = static_cast<wire::Protection>(from.protection());
  to.abilities = peer::abilities_in(from);
  to.peer_queue_datagrams = from.peer_queue_datagrams();
  to.digests_unanswered =
      std::clamp(from.digests_unanswered(), transfer::kDigestsUnansweredMin, transfer::kDigestsUnansweredMax);
  return to;
}

template <typename Flows>
std::vector<transfer::FlowRecord> flows_of(const Flows& flows) {
  std::vector<transfer::FlowRecord> all;
  for (const Flow& flow : flows) {
    all.push_back({.slot = FlowSlotId(flow.slot()),
                   .flow_id = flow.flow_id(),
                   .credit_extents = flow.credit(),
                   .local_port = static_cast<uint16_t>(flow.local_port())});
  }
  return all;
}

std::optional<transfer::LegRecord> leg_of(const Leg& from) {
  transfer::LegRecord to{.peer = from.peer(),
                         .flows = flows_of(from.flows()),
                         .board_generation = from.board_generation(),
                         .board_session = SessionSlotId(from.board_session()),
                         .peer_unaware = from.peer_unaware(),
                         .left_out = from.left_out()};
  if (from.has_agreement()) {
    to.agreement = agreement_of(from.agreement());
    if (!to.agreement) return std::nullopt;
  }
  return to;
}

// As versions before 0.2 wrote it.
Leg only_leg_of(const SessionRecord& record) {
  Leg leg;
  leg.set_peer(record.peer());
  if (record.has_agreement()) *leg.mutable_agreement() = record.agreement();
  *leg.mutable_flows() = record.flows();
  leg.set_board_generation(record.board_generation());
  leg.set_board_session(record.board_session());
  leg.set_peer_unaware(record.peer_unaware());
  return leg;
}

// A field of its own that says nothing says 0; any other option is as it is without it.
std::optional<transfer::Options> options_of(const Request& from) {
  transfer::Options to;
  for (const options::Option& option : options::all()) {
    if (option.of != options::Of::kTransfer) continue;
    const auto* const own = api::option_field(option, from);
    const auto number =
        own != nullptr ? api::option_in(option, from, *own)
                       : api::option_in(option, from.options(), *api::option_field(option, from.options()));
    if (!number) return std::nullopt;
    if (own != nullptr || *number) option.set_value(to, option.clamp(number->value_or(0)));
  }
  return to;
}

std::optional<transfer::Request> request_of(const Request& from) {
  const std::optional<transfer::Options> asked = options_of(from);
  if (!asked) return std::nullopt;
  transfer::Request to;
  to.options = *asked;
  to.source_paths.assign(from.source_paths().begin(), from.source_paths().end());
  to.destination = from.destination();
  to.source_bytes = from.source_bytes();
  to.selection = selection::selection_of(from);
  to.selection.keep = selection::Keep::of(from.keep());
  to.selection.part = peer::part_of(from);
  if (from.has_user()) to.user = user_of(from.user());
  if (from.has_local_files()) {
    const LocalFiles& local = from.local_files();
    to.local_files = transfer::LocalFiles{
        .uid = local.uid(), .token = local.token(), .names = {local.names().begin(), local.names().end()}};
  }
  to.expected = expected_of(from);
  if (!selection::check_selection(to.selection, to.source_paths.size())) return std::nullopt;
  return to;
}

transfer::Summary summary_of(const Summary& from) {
  transfer::Summary to{.bytes_done = from.bytes_done(),
                       .bytes_sent = from.bytes_sent(),
                       .chunks = from.chunks(),
                       .retransmits = from.retransmits(),
                       .duplicates = from.duplicates(),
                       .crc_errors = from.crc_errors(),
                       .lost = from.lost(),
                       .no_room = from.no_room(),
                       .rtt_ns = from.rtt_ns(),
                       .elapsed_ns = from.elapsed_ns(),
                       .data_elapsed_ns = from.data_elapsed_ns(),
                       .attempts = from.attempts(),
                       .bytes_resent = from.bytes_resent(),
                       .device = from.device(),
                       .parity = from.parity(),
                       .compressed_bytes = from.compressed_bytes(),
                       .compressed_wire_bytes = from.compressed_wire_bytes(),
                       .decoded_chunks = from.decoded_chunks()};
  for (const CauseRow& row : from.causes()) {
    to.causes.push_back({.cause = verdict::cause_of(row.cause()),
                         .held_ns = row.held_ns(),
                         .evidence = {row.evidence().begin(), row.evidence().end()}});
  }
  for (const RatePoint& point : from.history()) {
    to.history.push_back(
        {.length_ns = point.length_ns(), .bytes = point.bytes(), .cause = verdict::cause_of(point.cause())});
  }
  to.digest_ns = from.digest_ns();
  return to;
}

}  // namespace

std::optional<transfer::Record> decode_record(const std::string& bytes, const std::string& request) {
  SessionRecord from;
  if (!from.ParseFromString(bytes)) return std::nullopt;
  if (!SessionRecord::State_IsValid(from.state())) return std::nullopt;
  transfer::Record to;
  to.id = from.id();
  to.initiator = from.initiator();
  const bool role_known = from.role_known() || from.legs_size() == 0;
  to.role = !role_known     ? transfer::Role::kUnknown
            : from.source() ? transfer::Role::kSource
                            : transfer::Role::kDestination;
  to.state = static_cast<transfer::RecordState>(from.state());
  if (from.error_code() != 0) {
    const bool known = from.error_code() <= static_cast<uint32_t>(kErrorCodeLast);
    to.error = Error{known ? static_cast<ErrorCode>(from.error_code()) : ErrorCode::kInternal, from.error()};
  }
  to.started_unix_ns = from.started_unix_ns();
  to.files_left = from.files_left();
  to.limit_bps = from.limit_bps();
  to.priority = std::clamp(from.priority(), -transfer::kPriorityMax, transfer::kPriorityMax);
  if (from.deadline_admission() > kVerdictMax) return std::nullopt;
  to.deadline_admission = static_cast<transfer::DeadlineAdmission>(from.deadline_admission());
  if (from.legs_size() == 0) *from.add_legs() = only_leg_of(from);
  for (const Leg& leg : from.legs()) {
    std::optional<transfer::LegRecord> one = leg_of(leg);
    if (!one) return std::nullopt;
    to.legs.push_back(std::move(*one));
  }
  to.summary = summary_of(from.summary());
  if (from.has_granted()) to.granted = granted_of(from.granted());
  if (from.has_ordered()) to.ordered = ordered_of(from.ordered());
  if (from.has_lease()) to.lease = peer::lease_of(from.lease());
  if (from.has_moved()) to.moved = moved_of(from.moved());
  if (from.has_mapped()) to.mapped = mapped_of(from.mapped());
  Request asked;
  if (!request.empty() && !asked.ParseFromString(request)) return std::nullopt;
  if (!request.empty() || from.has_request()) {
    to.request = request_of(request.empty() ? from.request() : asked);
    if (!to.request) return std::nullopt;
  }
  if (to.initiator && !to.request) return std::nullopt;
  return to;
}

}  // namespace sluice::journal
