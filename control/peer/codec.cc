// SPDX-License-Identifier: Apache-2.0
#include "control/peer/codec.h"

#include <fmt/format.h>

#include <charconv>

#include "control/peer/digests_codec.h"
#include "control/peer/failed_names.h"
#include "control/peer/heartbeat_codec.h"
#include "control/peer/hello_codec.h"
#include "control/peer/order_codec.h"
#include "control/peer/parts.h"
#include "control/proto/ability_fields.h"
#include "control/proto/fields.h"
#include "control/proto/range_fields.h"
#include "dataplane/base/file_time.h"

namespace sluice::peer {
namespace {

constexpr size_t kIdBytes = 16;

// ---- to the wire: one function for each message --------------------------------------------------

void put(const transfer::Specification& m, PeerMessage* wire) {
  Specification* to = wire->mutable_specification();
  to->set_role(m.role == transfer::OfferedRole::kSource        ? Specification::ROLE_SOURCE
               : m.role == transfer::OfferedRole::kDestination ? Specification::ROLE_DESTINATION
                                                               : Specification::ROLE_UNSPECIFIED);
  to->set_lanes_max(m.lanes_max);
  to->set_data_ip4(m.data_ip4);
  to->set_data_ip6(m.data_ip6);
  to->set_chunk_bytes_max_ip4(m.chunk_bytes_max_ip4);
  to->set_chunk_bytes_max_ip6(m.chunk_bytes_max_ip6);
  to->set_chunk_reason_ip4(static_cast<ChunkReason>(m.chunk_reason_ip4));
  to->set_chunk_reason_ip6(static_cast<ChunkReason>(m.chunk_reason_ip6));
  to->set_chunk_auto(m.chunk_auto);
  to->set_extent_bytes_max(m.extent_bytes_max);
  for (const uint32_t kind : m.crc_kinds) to->add_crc_kinds(static_cast<CrcKind>(kind));
  to->set_rate_bps_max(m.rate_bps_max);
  to->set_udp_checksum_needed(m.udp_checksum_needed);
  to->set_prefer_ip6(m.prefer_ip6);
  to->set_discard(m.discard);
  for (const uint32_t port : m.udp_ports) to->add_udp_ports(port);
  to->set_rate_mode(static_cast<RateMode>(m.rate_mode));
  to->set_expected_loss_ppm(m.expected_loss_ppm);
  to->set_learn_address(m.learn_address);
  to->set_queue_datagrams(m.queue_datagrams);
  set_abilities(m.abilities, to);
  to->set_protection(static_cast<Protection>(m.protection));
}

void put(const transfer::SpecificationSet& m, PeerMessage* wire) {
  SpecificationSet* to = wire->mutable_specification_set();
  to->set_lanes(m.lanes);
  to->set_chunk_bytes(m.chunk_bytes);
  to->set_chunk_reason(static_cast<ChunkReason>(m.chunk_reason));
  to->set_extent_bytes(m.extent_bytes);
  to->set_partition_bytes(m.partition_bytes);
  to->set_crc_kind(static_cast<CrcKind>(m.crc_kind));
  to->set_rate_bps(m.rate_bps);
  to->set_udp_checksum(m.udp_checksum);
  to->set_data_ip(m.data_ip);
  for (const uint32_t port : m.udp_ports) to->add_udp_ports(port);
  to->set_learns_address(m.learns_address);
  to->set_queue_datagrams(m.queue_datagrams);
  to->set_digests_unanswered(m.digests_unanswered);
  set_abilities(m.abilities, to);
  to->set_protection(static_cast<Protection>(m.protection));
}

void put(const transfer::TransferRequest& m, PeerMessage* wire) {
  TransferRequest* to = wire->mutable_transfer_request();
  for (const std::string& path : m.source_paths) to->add_source_paths(path);
  selection::put_selection(m.selection, to);
  to->set_keep(m.selection.keep.bits());
  put_part(m.selection.part, to);
}

void put(const transfer::TransferOffer& m, PeerMessage* wire) {
  TransferOffer* to = wire->mutable_transfer_offer();
  for (const transfer::OfferedFile& file : m.files) {
    File* one = to->add_files();
    one->set_object(file.number);
    one->set_path(file.name);
    one->set_size(file.size_bytes);
    one->set_mode(file.mode);
    base::put_file_time(file.mtime_ns, one);
    one->set_kind(static_cast<File::Kind>(file.kind));
    one->set_members(file.members);
    set_ranges(one->mutable_holes(), file.holes);
    catalog::put_attributes(file.attributes, one);
    put_digests(file.expected, one->mutable_expected());
  }
  to->set_destination(m.destination);
  to->set_destination_is_directory(m.into_directory);
  to->set_overwrite(m.overwrite);
  to->set_verify(m.verify);
  to->set_mkdir(m.mkdir);
  to->set_more(m.more);
  to->set_growing(m.growing);
  to->set_keep(m.keep);
  put_part(m.part, to);
  to->set_digests(m.digests);
}

void put(const transfer::TransferReady& m, PeerMessage* wire) {
  TransferReady* to = wire->mutable_transfer_ready();
  for (const uint64_t id : m.flow_ids) to->add_flow_ids(id);
  for (const uint32_t credit : m.credit_extents) to->add_credit_extents(credit);
  for (const std::string& path : m.final_paths) to->add_final_paths(path);
  to->set_objects(m.objects);
  to->set_growing(m.growing);
  to->set_keep(m.keep);
}

void put(const transfer::ObjectState& m, PeerMessage* wire) {
  ObjectState* to = wire->mutable_object_state();
  to->set_object(m.object.value());
  set_ranges(to->mutable_held(), m.held);
  to->set_done(m.done);
  to->set_digest(m.digest);
  to->set_end(m.end);
}

void put(const transfer::PartitionSent& m, PeerMessage* wire) {
  PartitionSent* to = wire->mutable_partition_sent();
  to->set_object(m.object.value());
  set_range(to->mutable_range(), m.range);
  to->set_lane(m.lane.value());
}

void put(const transfer::PartitionDone& m, PeerMessage* wire) {
  wire->mutable_partition_done()->set_object(m.object.value());
  set_ranges(wire->mutable_partition_done()->mutable_ranges(), m.ranges);
}

void put(const transfer::Need& m, PeerMessage* wire) {
  Need* to = wire->mutable_need();
  to->set_object(m.object.value());
  set_ranges(to->mutable_ranges(), m.ranges);
  if (m.lane) to->set_lane(m.lane->value());
}

void put(const transfer::FileDigest& m, PeerMessage* wire) {
  FileDigest* to = wire->mutable_file_digest();
  to->set_object(m.object.value());
  to->set_size(m.size_bytes);
  to->set_digest(m.digest);
}

void put(const transfer::SessionDone& m, PeerMessage* wire) {
  wire->mutable_session_done()->set_files(m.files);
  wire->mutable_session_done()->set_bytes(m.bytes);
}

void put(const transfer::Failure& m, PeerMessage* wire) {
  wire->mutable_failure()->set_code(m.code);
  wire->mutable_failure()->set_message(m.message);
}

void put(const transfer::RateLimit& m, PeerMessage* wire) {
  wire->mutable_rate_limit()->set_rate_bps(m.rate_bps);
}

void put(const transfer::Pause& m, PeerMessage* wire) {
  wire->mutable_pause()->set_node(m.node);
  wire->mutable_pause()->set_place(m.place);
  wire->mutable_pause()->set_places(m.places);
}

// ---- from the wire -------------------------------------------------------------------------------

// A reason that is not known here is shown as the usual one.
rate::SizeReason reason_of(ChunkReason reason) { return rate::size_reason_of(static_cast<uint32_t>(reason)); }

transfer::Specification take(const Specification& m) {
  return {.role = m.role() == Specification::ROLE_SOURCE        ? transfer::OfferedRole::kSource
                  : m.role() == Specification::ROLE_DESTINATION ? transfer::OfferedRole::kDestination
                                                                : transfer::OfferedRole::kUnspecified,
          .lanes_max = m.lanes_max(),
          .data_ip4 = m.data_ip4(),
          .data_ip6 = m.data_ip6(),
          .chunk_bytes_max_ip4 = m.chunk_bytes_max_ip4(),
          .chunk_bytes_max_ip6 = m.chunk_bytes_max_ip6(),
          .chunk_reason_ip4 = reason_of(m.chunk_reason_ip4()),
          .chunk_reason_ip6 = reason_of(m.chunk_reason_ip6()),
          .chunk_auto = m.chunk_auto(),
          .extent_bytes_max = m.extent_bytes_max(),
          .crc_kinds = std::vector<uint32_t>(m.crc_kinds().begin(), m.crc_kinds().end()),
          .rate_bps_max = m.rate_bps_max(),
          .udp_checksum_needed = m.udp_checksum_needed(),
          .prefer_ip6 = m.prefer_ip6(),
          .discard = m.discard(),
          .udp_ports = list_of(m.udp_ports()),
          // A mode that is not known stays one.
          .rate_mode = static_cast<rate::Mode>(std::min(static_cast<uint32_t>(m.rate_mode()), 255U)),
          .expected_loss_ppm = m.expected_loss_ppm(),
          .learn_address = m.learn_address(),
          .queue_datagrams = m.queue_datagrams(),
          .protection = static_cast<uint32_t>(m.protection()),
          .abilities = abilities_in(m)};
}

transfer::SpecificationSet take(const SpecificationSet& m) {
  return {.lanes = m.lanes(),
          .chunk_bytes = m.chunk_bytes(),
          .chunk_reason = reason_of(m.chunk_reason()),
          .extent_bytes = m.extent_bytes(),
          .partition_bytes = m.partition_bytes(),
          .crc_kind = static_cast<uint32_t>(m.crc_kind()),
          .rate_bps = m.rate_bps(),
          .udp_checksum = m.udp_checksum(),
          .data_ip = m.data_ip(),
          .udp_ports = list_of(m.udp_ports()),
          .learns_address = m.learns_address(),
          .queue_datagrams = m.queue_datagrams(),
          .protection = static_cast<uint32_t>(m.protection()),
          .digests_unanswered = m.digests_unanswered(),
          .abilities = abilities_in(m)};
}

transfer::TransferRequest take(const TransferRequest& m) {
  transfer::TransferRequest request{.source_paths = list_of(m.source_paths()),
                                    .selection = selection::selection_of(m)};
  request.selection.keep = selection::Keep::of(m.keep());  // the offer says which of them are known here
  request.selection.part = part_of(m);
  return request;
}

transfer::TransferOffer take(const TransferOffer& m) {
  transfer::TransferOffer offer{.destination = m.destination(),
                                .into_directory = m.destination_is_directory(),
                                .overwrite = m.overwrite(),
                                .verify = m.verify(),
                                .mkdir = m.mkdir(),
                                .more = m.more(),
                                .growing = m.growing(),
                                .keep = m.keep(),
                                .part = part_of(m),
                                .digests = m.digests()};
  for (const File& file : m.files()) {
    offer.files.push_back(
        {.number = file.object(),
         .name = file.path(),
         .size_bytes = file.size(),
         .mode = file.mode(),
         .mtime_ns = base::file_time_of(file),
         // A kind that is not known stays one.
         .kind = static_cast<catalog::FileKind>(std::min(static_cast<uint32_t>(file.kind()), 255U)),
         .members = file.members(),
         .holes = ranges_of(file.holes()),
         .attributes = catalog::attributes_of(file),
         .expected = digests_of(file.expected())});
  }
  return offer;
}

transfer::TransferReady take(const TransferReady& m) {
  return {.flow_ids = list_of(m.flow_ids()),
          .credit_extents = list_of(m.credit_extents()),
          .final_paths = list_of(m.final_paths()),
          .objects = m.objects(),
          .growing = m.growing(),
          .keep = m.keep()};
}

transfer::ObjectState take(const ObjectState& m) {
  return {.object = ObjectId(m.object()),
          .held = ranges_of(m.held()),
          .done = m.done(),
          .digest = m.digest(),
          .end = m.end()};
}

transfer::PartitionSent take(const PartitionSent& m) {
  return {.object = ObjectId(m.object()),
          .range = {.offset = m.range().offset(), .length = m.range().length()},
          .lane = LaneId(m.lane())};
}

transfer::Need take(const Need& m) {
  return {.object = ObjectId(m.object()),
          .ranges = ranges_of(m.ranges()),
          .lane = m.has_lane() ? std::optional(LaneId(m.lane())) : std::nullopt};
}

}  // namespace

PeerMessage to_wire(const transfer::Message& message) {
  PeerMessage wire;
  std::visit([&](const auto& m) { put(m, &wire); }, message);
  return wire;
}

std::optional<transfer::Message> from_wire(const PeerMessage& wire) {
  switch (wire.body_case()) {
    case PeerMessage::kHello:
      return take(wire.hello());
    case PeerMessage::kSpecification:
      return take(wire.specification());
    case PeerMessage::kSpecificationSet:
      return take(wire.specification_set());
    case PeerMessage::kTransferRequest:
      return take(wire.transfer_request());
    case PeerMessage::kTransferOffer:
      return take(wire.transfer_offer());
    case PeerMessage::kTransferReady:
      return take(wire.transfer_ready());
    case PeerMessage::kObjectState:
      return take(wire.object_state());
    case PeerMessage::kPartitionSent:
      return take(wire.partition_sent());
    case PeerMessage::kPartitionDone:
      return transfer::PartitionDone{.object = ObjectId(wire.partition_done().object()),
                                     .ranges = ranges_of(wire.partition_done().ranges())};
    case PeerMessage::kNeed:
      return take(wire.need());
    case PeerMessage::kFileDigest:
      return transfer::FileDigest{.object = ObjectId(wire.file_digest().object()),
                                  .size_bytes = wire.file_digest().size(),
                                  .digest = wire.file_digest().digest()};
    case PeerMessage::kFileDone:
      return take(wire.file_done());
    case PeerMessage::kSessionDone:
      return transfer::SessionDone{.files = wire.session_done().files(),
                                   .bytes = wire.session_done().bytes()};
    case PeerMessage::kHeartbeat:
      return from_wire(wire.heartbeat());
    case PeerMessage::kFailure:
      return transfer::Failure{.code = wire.failure().code(), .message = wire.failure().message()};
    case PeerMessage::kPause:
      return transfer::Pause{
          .node = wire.pause().node(), .place = wire.pause().place(), .places = wire.pause().places()};
    case PeerMessage::kRateLimit:
      return transfer::RateLimit{.rate_bps = wire.rate_limit().rate_bps()};
    case PeerMessage::kObjectFailed:
      return take(wire.object_failed());
    case PeerMessage::kWant:
      return take(wire.want());
    case PeerMessage::kExtentDigests:
      return take(wire.extent_digests());
    case PeerMessage::kDigestsWanted:
      return take(wire.digests_wanted());
    case PeerMessage::kNameDigests:
      return take(wire.name_digests());
    case PeerMessage::kDigestProgress:
      return take(wire.digest_progress());
    case PeerMessage::kOrder:
      return take(wire.order());
    case PeerMessage::kOrderState:
      return take(wire.order_state());
    case PeerMessage::kOrderWish:
      return take(wire.order_wish());
    case PeerMessage::kNamesRequest:  // of a call that carries no session (names_codec.h)
    case PeerMessage::kNamesPage:
    case PeerMessage::kNamesMore:
    case PeerMessage::kNamesDone:
    case PeerMessage::BODY_NOT_SET:
      return std::nullopt;
  }
  return std::nullopt;
}

std::string session_id_text(const std::string& bytes) {
  std::string text;
  if (bytes.size() != kIdBytes) return text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return text;
}

std::string session_id_bytes(const std::string& text) {
  std::string bytes;
  if (text.size() != 2 * kIdBytes) return bytes;
  for (size_t i = 0; i < text.size(); i += 2) {
    uint8_t byte = 0;  // stays so where a damaged journal has no hex digits: the peer knows no such session
    (void)std::from_chars(text.data() + i, text.data() + i + 2, byte, 16);
    bytes += static_cast<char>(byte);
  }
  return bytes;
}

}  // namespace sluice::peer
