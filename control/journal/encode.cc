// To rows.
// SPDX-License-Identifier: Apache-2.0
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

void put(const transfer::Agreement& from, Agreement* to) {
  to->set_lanes(from.lanes);
  to->set_chunk_bytes(from.chunk_bytes);
  to->set_extent_bytes(from.extent_bytes);
  to->set_partition_bytes(from.partition_bytes);
  to->set_crc_kind(static_cast<uint32_t>(from.crc_kind));
  to->set_rate_bps(from.rate_bps);
  to->set_udp_checksum(from.udp_checksum);
  to->set_discard(from.discard);
  to->set_local_ip(from.local_ip.data(), from.local_ip.size());
  to->set_peer_ip(from.peer_ip.data(), from.peer_ip.size());
  for (const uint16_t port : from.peer_ports) to->add_peer_ports(port);
  to->set_rate_mode(static_cast<uint32_t>(from.mode));
  to->set_expected_loss_ppm(from.expected_loss_ppm);
  to->set_chunk_reason(static_cast<uint32_t>(from.chunk_reason));
  to->set_reach(static_cast<uint32_t>(from.reach));
  to->set_chunk_auto(from.chunk_auto);
  to->set_protection(static_cast<uint32_t>(from.protection));
  peer::set_abilities(from.abilities, to);
  to->set_peer_queue_datagrams(from.peer_queue_datagrams);
  to->set_digests_unanswered(from.digests_unanswered);
}

void put(const transfer::LegRecord& from, Leg* to) {
  to->set_peer(from.peer);
  if (from.agreement) put(*from.agreement, to->mutable_agreement());
  for (const transfer::FlowRecord& flow : from.flows) {
    Flow* one = to->add_flows();
    one->set_slot(flow.slot.value());
    one->set_flow_id(flow.flow_id);
    one->set_credit(flow.credit_extents);
    one->set_local_port(flow.local_port);
  }
  to->set_board_generation(from.board_generation);
  to->set_board_session(from.board_session.value());
  to->set_peer_unaware(from.peer_unaware);
  to->set_left_out(from.left_out);
}

void put(const transfer::Summary& from, Summary* to) {
  to->set_bytes_done(from.bytes_done);
  to->set_bytes_sent(from.bytes_sent);
  to->set_chunks(from.chunks);
  to->set_retransmits(from.retransmits);
  to->set_duplicates(from.duplicates);
  to->set_crc_errors(from.crc_errors);
  to->set_lost(from.lost);
  to->set_no_room(from.no_room);
  to->set_rtt_ns(from.rtt_ns);
  to->set_elapsed_ns(from.elapsed_ns);
  to->set_data_elapsed_ns(from.data_elapsed_ns);
  to->set_attempts(from.attempts);
  to->set_bytes_resent(from.bytes_resent);
  to->set_device(from.device);
  to->set_parity(from.parity);
  to->set_decoded_chunks(from.decoded_chunks);
  to->set_compressed_bytes(from.compressed_bytes);
  to->set_compressed_wire_bytes(from.compressed_wire_bytes);
  to->set_digest_ns(from.digest_ns);
  for (const verdict::Tally::Row& row : from.causes) {
    CauseRow* const one = to->add_causes();
    one->set_cause(static_cast<uint32_t>(row.cause));
    one->set_held_ns(row.held_ns);
    for (const std::string& line : row.evidence) one->add_evidence(line);
  }
  for (const verdict::Point& point : from.history) {
    RatePoint* const one = to->add_history();
    one->set_length_ns(point.length_ns);
    one->set_bytes(point.bytes);
    one->set_cause(static_cast<uint32_t>(point.cause));
  }
}

// Options that journals have always known have fields of their own, so that an older version can read them;
// all others stand in `options`, as the API has them.
void put(const transfer::Options& from, Request* to) {
  for (const options::Option& option : options::all()) {
    if (option.of != options::Of::kTransfer) continue;
    const int64_t number = option.value_in(from);
    if (const auto* own = api::option_field(option, *to); own != nullptr) {
      api::set_option(option, number, to, *own);
    } else if (number != option.value_in(transfer::Options())) {
      api::TransferOptions* const others = to->mutable_options();
      api::set_option(option, number, others, *api::option_field(option, *others));
    }
  }
}

}  // namespace

std::string encode(const transfer::Record& record) {
  SessionRecord to;
  to.set_id(record.id);
  to.set_initiator(record.initiator);
  to.set_source(record.role == transfer::Role::kSource);
  to.set_role_known(record.role != transfer::Role::kUnknown);
  to.set_state(static_cast<SessionRecord::State>(record.state));
  if (record.error) {
    to.set_error_code(static_cast<uint32_t>(record.error->code));
    to.set_error(record.error->message);
  }
  to.set_started_unix_ns(record.started_unix_ns);
  to.set_files_left(record.files_left);
  to.set_limit_bps(record.limit_bps);
  to.set_priority(record.priority);
  to.set_deadline_admission(static_cast<uint32_t>(record.deadline_admission));
  for (const transfer::LegRecord& leg : record.legs) put(leg, to.add_legs());
  put(record.summary, to.mutable_summary());
  if (record.granted) put(*record.granted, to.mutable_granted());
  if (record.ordered) put(*record.ordered, to.mutable_ordered());
  if (record.lease) peer::put_lease(*record.lease, to.mutable_lease());
  if (record.moved) put(*record.moved, to.mutable_moved());
  if (record.mapped) put(*record.mapped, to.mutable_mapped());
  return to.SerializeAsString();
}

std::string encode(const transfer::Request& request) {
  Request to;
  for (const std::string& path : request.source_paths) to.add_source_paths(path);
  selection::put_selection(request.selection, &to);
  to.set_keep(request.selection.keep.bits());
  peer::put_part(request.selection.part, &to);
  to.set_destination(request.destination);
  put(request.options, &to);
  to.set_source_bytes(request.source_bytes);
  put_expected(request, &to);
  if (request.user) put(*request.user, to.mutable_user());
  if (request.local_files) {
    LocalFiles* const local = to.mutable_local_files();
    local->set_uid(request.local_files->uid);
    local->set_token(request.local_files->token);
    for (const std::string& name : request.local_files->names) local->add_names(name);
  }
  return to.SerializeAsString();
}

}  // namespace sluice::journal
