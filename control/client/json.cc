// SPDX-License-Identifier: Apache-2.0
#include "control/client/json.h"

#include "control/proto/session_state.h"

namespace sluice::api {
namespace {

Json file_json(const FileProgress& file) {
  Json digests = Json::object();
  for (const Digest& digest : file.digests()) digests[digest.kind()] = digest.hex();
  return {{"object", file.object()},
          {"source", file.source()},
          {"destination", file.destination()},
          {"size_bytes", file.size()},
          {"bytes_done", file.bytes_done()},
          {"done", file.done()},
          {"digest_source", file.digest_source()},
          {"digest_destination", file.digest_destination()},
          {"names", file.names()},
          {"packed", file.packed()},
          {"digests", std::move(digests)}};
}

// Whose process opens files outside the exports, and which. The word that joins it and the session is for
// these two.
Json local_files_json(const LocalFiles& files) {
  Json names = Json::array();
  for (const std::string& name : files.names()) names.push_back(name);
  return {{"uid", files.uid()}, {"names", names}};
}

Json chunk_size_json(const ChunkSize& size) {
  return {{"chunk_bytes", size.chunk_bytes()}, {"sent", size.sent()},
          {"arrived", size.arrived()},         {"arrives", size.arrives()},
          {"goodput", size.goodput()},         {"payload_bytes", size.payload_bytes()}};
}

Json lane_json(const LaneProgress& lane) {
  return {{"lane", lane.lane()},     {"bytes", lane.bytes()},
          {"chunks", lane.chunks()}, {"retransmits", lane.retransmits()},
          {"lost", lane.lost()},     {"rate_limit_bps", lane.rate_limit_bps()},
          {"rtt_us", lane.rtt_us()}, {"credit_extents", lane.credit_extents()}};
}

Json rate_point_json(const RatePoint& point) {
  return {{"seconds", point.seconds()}, {"rate_bps", point.rate_bps()}, {"cause", point.cause()}};
}

Json missing_json(const MissingName& name) {
  Json out = {{"path", name.path()}, {"reason", name.reason()}};
  if (name.arrived()) out["arrived"] = true;
  return out;
}

template <typename List, typename ToJson>
Json each(const List& list, ToJson to_json) {
  Json out = Json::array();
  for (const auto& item : list) out.push_back(to_json(item));
  return out;
}

Json names_json(const NamesProgress& names) {
  return {{"total", names.total()},
          {"done", names.done()},
          {"failed", names.failed()},
          {"left_out", names.left_out()},
          {"missing", each(names.missing(), missing_json)}};
}

Json leg_json(const LegProgress& leg) {
  return {{"leg", leg.leg()},           {"peer", leg.peer()},
          {"state", leg.state()},       {"waiting_for", leg.waiting_for()},
          {"lanes", leg.lanes()},       {"bytes", leg.bytes()},
          {"rate_bps", leg.rate_bps()}, {"retransmits", leg.retransmits()},
          {"lost", leg.lost()},         {"rtt_us", leg.rtt_us()},
          {"error", leg.error()}};
}

// Without the bytes of each fault: `sluice probe integrity` shows them.
Json echoes_json(const Echoes& echoes) {
  return {{"asked", echoes.asked()},
          {"bytes", echoes.bytes()},
          {"sent", echoes.sent()},
          {"came", echoes.came()},
          {"wrong", echoes.wrong()},
          {"wrong_bytes", echoes.wrong_bytes()},
          {"copies", echoes.copies()},
          {"over", echoes.over()},
          {"udp_checksum", echoes.udp_checksum()},
          {"faults", each(echoes.faults(), [](const EchoFault& fault) {
             return Json{{"number", fault.number()}, {"offset", fault.offset()}};
           })}};
}

void add_compression(const Session& s, Json* out) {
  (*out)["compress"] = s.compress();
  (*out)["compressed_bytes"] = s.compressed_bytes();
  (*out)["compressed_wire_bytes"] = s.compressed_wire_bytes();
}

Json session_fields(const Session& s) {
  Json out = {{"id", s.id()},
              {"state", state_name(s)},
              {"state_name", state_name(s)},
              {"direction", s.direction()},
              {"peer", s.peer()},
              {"from", s.from()},
              {"ordered_by", s.ordered_by()},
              {"lease", s.lease()},
              {"user", s.user()},
              {"uid", s.has_uid() ? Json(s.uid()) : Json()},
              {"local_files", s.has_local_files() ? local_files_json(s.local_files()) : Json()},
              {"bytes_total", s.bytes_total()},
              {"listing", s.listing()},
              {"bytes_done", s.bytes_done()},
              {"bytes_sent", s.bytes_sent()},
              {"rate_bps", s.rate_bps()},
              {"goodput_bps", s.goodput_bps()},
              {"chunks", s.chunks()},
              {"retransmits", s.retransmits()},
              {"duplicates", s.duplicates()},
              {"crc_errors", s.crc_errors()},
              {"lost", s.lost()},
              {"no_room", s.no_room()},
              {"rtt_us", s.rtt_us()},
              {"lanes", s.lanes()},
              {"chunk_bytes", s.chunk_bytes()},
              {"chunk_reason", s.chunk_reason()},
              {"loss_length_bytes", s.loss_length_bytes()},
              {"crc", s.crc()},
              {"protection", s.protection()},
              {"fec", s.fec()},
              {"parity", s.parity()},
              {"decoded_chunks", s.decoded_chunks()},
              {"rate_limit_bps", s.rate_limit_bps()},
              {"rate_mode", s.rate_mode()},
              {"rate_state", s.rate_state()},
              {"started_unix_ns", s.started_unix_ns()},
              {"elapsed_s", s.elapsed_s()},
              {"data_elapsed_s", s.data_elapsed_s()},
              {"waiting_for", s.waiting_for()},
              {"priority", s.priority()},
              {"queue_place", s.queue_place()},
              {"queue_length", s.queue_length()},
              {"error_code", s.error_code()},
              {"error_name", s.error_name()},
              {"error", s.error()},
              {"wire", s.wire()},
              {"attempts", s.attempts()},
              {"bytes_resent", s.bytes_resent()},
              {"digest_s", s.digest_s()},
              {"deadline_unix_ns", s.deadline_unix_ns()},
              {"deadline_state", s.deadline_state()},
              {"deadline_chance_percent", nullptr},
              {"expected_end_unix_ns", s.expected_end_unix_ns()},
              {"late_s", s.late_s()}};
  if (s.has_deadline_chance_percent()) out["deadline_chance_percent"] = s.deadline_chance_percent();
  add_compression(s, &out);
  out["sizes"] = each(s.sizes(), chunk_size_json);
  out["bottleneck"] = bottleneck_json(s.bottleneck());
  out["causes"] = each(s.causes(), bottleneck_json);
  out["lane_progress"] = each(s.lane_progress(), lane_json);
  out["legs"] = each(s.legs(), leg_json);
  out["history"] = each(s.history(), rate_point_json);
  out["files"] = each(s.files(), file_json);
  out["echoes"] = s.has_echoes() ? echoes_json(s.echoes()) : Json(nullptr);
  out["names"] = names_json(s.names());
  return out;
}

Json sandbox_json(bool there, const Sandbox& sandbox) {
  if (!there) return nullptr;
  return {{"text", sandbox.text()},
          {"system_calls", sandbox.system_calls()},
          {"landlock", sandbox.landlock()},
          {"rings", sandbox.rings()},
          {"refused_calls", sandbox.refused_calls()}};
}

}  // namespace

Json bottleneck_json(const Bottleneck& bottleneck) {
  return {{"cause", bottleneck.cause()},
          {"share", bottleneck.share()},
          {"evidence",
           Json(std::vector<std::string>(bottleneck.evidence().begin(), bottleneck.evidence().end()))}};
}

Json session_json(const Session& session) {
  Json out = {{"schema", "sluice.session.v1"}};
  out.update(session_fields(session));
  return out;
}

Json sessions_json(const ListSessionsReply& reply) {
  Json sessions = Json::array();
  for (const Session& session : reply.sessions()) sessions.push_back(session_fields(session));
  return {{"schema", "sluice.sessions.v1"}, {"sessions", std::move(sessions)}};
}

Json counters_json(const CountersReply& reply) {
  Json counters = Json::array();
  for (const auto& counter : reply.counters()) {
    counters.push_back(Json{{"name", counter.name()},
                            {"unit", counter.unit()},
                            {"help", counter.help()},
                            {"value", counter.value()}});
  }
  return {{"schema", "sluice.counters.v1"}, {"counters", std::move(counters)}};
}

Json verify_json(const std::vector<VerifyProgress>& verdicts) {
  Json files = Json::array();
  for (const VerifyProgress& verdict : verdicts) {
    files.push_back(Json{{"file", verdict.file()},
                         {"good", verdict.good()},
                         {"bytes_checked", verdict.bytes_checked()},
                         {"digest", verdict.digest()},
                         {"problem", verdict.problem()}});
  }
  return {{"schema", "sluice.verify.v1"},
          {"files", std::move(files)},
          {"names_unchecked", verdicts.empty() ? 0 : verdicts.back().names_unchecked()}};
}

Json fallback_json(const NodeReply& reply) {
  if (!reply.has_fallback()) return {};
  const Fallback& fallback = reply.fallback();
  return {{"device", fallback.device()},
          {"reason", fallback.reason()},
          {"since_unix_ns", fallback.since_unix_ns()}};
}

Json live_json(const NodeReply& reply) {
  Json waits = Json::array();
  for (const NodeReply::Wait& wait : reply.waits())
    waits.push_back({{"export", wait.export_name()}, {"waited_s", wait.waited_s()}, {"calls", wait.calls()}});
  return {{"version", reply.version()},
          {"control_address", reply.control_address()},
          {"longest_turn_ns", reply.longest_turn_ns()},
          {"longest_turn", reply.longest_turn()},
          {"export_waits", std::move(waits)},
          {"metrics_address", reply.metrics_address()},
          {"control_sandbox", sandbox_json(reply.has_control_sandbox(), reply.control_sandbox())},
          {"dataplane_sandbox", sandbox_json(reply.has_dataplane_sandbox(), reply.dataplane_sandbox())},
          {"dataplane_attached", reply.dataplane_attached()},
          {"device", reply.device()},
          {"device_abilities", reply.device_abilities().empty() ? Json() : Json(reply.device_abilities())},
          {"fallback", fallback_json(reply)},
          {"falls", reply.falls()},
          {"workers", reply.workers()},
          {"hugepages", reply.hugepages()},
          {"link", reply.link().empty() ? Json() : Json(reply.link())},
          {"frame_bytes_max", reply.frame_bytes_max()},
          {"crc_variant", reply.crc_variant()},
          {"data_ip4", reply.data_ip4()},
          {"data_ip6", reply.data_ip6()}};
}

Json event_json(const SessionEvent& event) {
  Json out = {{"schema", "sluice.event.v1"}, {"event", event.event()}, {"unix_ns", event.unix_ns()}};
  if (event.dropped() != 0) {
    out["dropped"] = event.dropped();
    return out;
  }
  out.update({{"session", event.session()},
              {"state", event.state()},
              {"direction", event.direction()},
              {"from", event.from()},
              {"peer", event.peer()},
              {"bytes_done", event.bytes_done()},
              {"bytes_total", event.bytes_total()},
              {"listing", event.listing()},
              {"waiting_for", event.waiting_for()},
              {"rate_bps", nullptr},
              {"rate_limit_bps", event.rate_limit_bps()},
              {"rate_state", event.rate_state()},
              {"bottleneck", bottleneck_json(event.bottleneck())},
              {"error_code", event.error_code()},
              {"error_name", event.error_name()},
              {"error", event.error()}});
  if (event.has_rate_bps()) out["rate_bps"] = event.rate_bps();
  if (event.has_file()) out["file"] = file_json(event.file());
  return out;
}

Json export_json(const std::string& id, const std::string& to, const std::string& file, uint64_t bytes) {
  return {{"schema", "sluice.session_export.v1"}, {"id", id}, {"to", to}, {"file", file}, {"bytes", bytes}};
}

Json error_json(const Error& error) {
  return {{"schema", "sluice.error.v1"},
          {"code", static_cast<int>(error.code)},
          {"name", error_code_name(error.code)},
          {"message", error.message}};
}

std::string to_line(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::api
