// SPDX-License-Identifier: Apache-2.0
#include "control/metrics/families.h"

#include <array>
#include <string_view>

#include "dataplane/base/check.h"
#include "dataplane/base/text.h"

namespace sluice::metrics {
namespace {

constexpr double kPerNs = 1e-9;
constexpr size_t kLabelBytesMax = 128;
constexpr std::string_view kOthers = "other";

double seconds(uint64_t ns) { return static_cast<double>(ns) * kPerNs; }
double bytes_per_second(uint64_t bps) { return static_cast<double>(bps) / 8; }

// Those that a session which has not ended can be in.
struct StateName {
  transfer::ViewState state;
  const char* name;
};
constexpr StateName kStates[] = {
    {transfer::ViewState::kQueued, "queued"},           {transfer::ViewState::kConnecting, "connecting"},
    {transfer::ViewState::kNegotiating, "negotiating"}, {transfer::ViewState::kTransferring, "transferring"},
    {transfer::ViewState::kFinishing, "finishing"},     {transfer::ViewState::kWaiting, "waiting"},
    {transfer::ViewState::kPaused, "paused"},
};

struct ConditionName {
  rate::Condition condition;
  const char* name;
};
constexpr ConditionName kConditions[] = {
    {rate::Condition::kRamping, "ramping"},   {rate::Condition::kRunning, "running"},
    {rate::Condition::kYielding, "yielding"}, {rate::Condition::kYieldingToOthers, "yielding_to_others"},
    {rate::Condition::kCrawling, "crawling"}, {rate::Condition::kStopped, "stopped"},
};

class Families {
 public:
  Families() : all_(table().size()) {
    for (size_t i = 0; i < all_.size(); ++i) all_[i].info = &table()[i];
  }

  void add(size_t index, double value, std::vector<std::string> labels = {}) {
    Family& family = all_[index];
    CHECK(labels.size() == family.info->labels.size(), "a sample has the labels of its row");
    family.samples.push_back({.labels = std::move(labels), .value = value});
  }
  void add(Metric metric, double value, std::vector<std::string> labels = {}) {
    add(index_of(metric), value, std::move(labels));
  }
  void count(Metric metric, uint64_t value, std::vector<std::string> labels = {}) {
    add(index_of(metric), static_cast<double>(value), std::move(labels));
  }

  std::vector<Family> take() {
    std::erase_if(all_, [](const Family& family) { return family.samples.empty(); });
    return std::move(all_);
  }

 private:
  std::vector<Family> all_;
};

// Names come from peers and from node.toml: they stay on their line, and short.
std::string label(std::string_view text) { return base::printable(text, kLabelBytesMax); }

// ---- the node ----------------------------------------------------------------------------------

void add_worker(Families& out, const std::string& port, uint32_t worker, const WorkerCounters& counters) {
  for (uint32_t i = 0; i < board::kCounters; ++i) {
    const board::CounterInfo& counter = board::counter_table()[i];
    std::vector<std::string> labels;
    if (is_of_port(counter)) labels.push_back(port);
    labels.push_back(std::to_string(worker));
    if (const std::string_view reason = drop_reason(counter); !reason.empty()) labels.emplace_back(reason);
    const auto value = static_cast<double>(counters[i]);
    out.add(index_of(static_cast<board::Counter>(i)), in_seconds(counter) ? value * kPerNs : value,
            std::move(labels));
  }
}

void add_dataplane(Families& out, const NodeFigures& node) {
  out.count(Metric::dataplane_attached, node.dataplane ? 1 : 0);
  if (!node.dataplane) return;
  const DataplaneFigures& dataplane = *node.dataplane;
  const std::string port = label(dataplane.port);
  out.add(Metric::dataplane_heartbeat_age_seconds, seconds(dataplane.heartbeat_age_ns));
  out.count(Metric::port_info, 1, {port, dataplane.hugepages ? "hugepages" : "ordinary"});
  const bool fell = !dataplane.fallback_for.empty();
  out.count(Metric::port_fallback, fell ? 1 : 0, {fell ? label(dataplane.fallback_for) : port});
  out.count(Metric::port_falls_total, dataplane.falls);
  out.add(Metric::port_rate_limit_bytes_per_second, bytes_per_second(node.port_rate_bps), {port});
  for (uint32_t worker = 0; worker < dataplane.workers.size(); ++worker)
    add_worker(out, port, worker, dataplane.workers[worker]);
}

void add_callers(Families& out, const NodeFigures::Callers& callers) {
  const std::pair<const char*, uint64_t> outcomes[] = {{"trusted", callers.trusted},
                                                       {"refused", callers.refused},
                                                       {"failed", callers.failed},
                                                       {"timed_out", callers.timed_out},
                                                       {"let_go", callers.let_go}};
  for (const auto& [outcome, count] : outcomes)
    out.count(Metric::control_connections_total, count, {outcome});
  out.count(Metric::control_handshakes_delayed_total, callers.waited);
}

void add_node(Families& out, const NodeFigures& node) {
  out.count(Metric::node_info, 1, {label(node.name), node.version});
  add_dataplane(out, node);
  for (const StateName& state : kStates) {
    uint64_t in_it = 0;
    for (const SessionFigures& session : node.sessions) in_it += session.view.state == state.state ? 1 : 0;
    out.count(Metric::sessions, in_it, {state.name});
  }
  out.count(Metric::sessions_running_max, node.sessions_max);
  out.count(Metric::sessions_waiting_max, node.queue_max);
  for (size_t code = 0; code < node.ended.size(); ++code) {
    out.count(Metric::sessions_ended_total, node.ended[code],
              {std::string(error_code_name(static_cast<ErrorCode>(code)))});
  }
  for (size_t i = 0; i < node.expiries.size() && i < kExpiriesMax; ++i) {
    const NodeFigures::Expiry& one = node.expiries[i];
    out.add(Metric::certificate_expiry_timestamp_seconds, static_cast<double>(one.unix_s),
            {one.kind, label(one.name)});
  }
  if (node.callers) add_callers(out, *node.callers);
  out.count(Metric::control_turns_total, node.turns);
  out.add(Metric::control_longest_turn_seconds, seconds(node.longest_turn_ns));
  out.add(Metric::journal_lost, node.journal_lost ? 1 : 0);
  out.count(Metric::audit_lines_lost_total, node.audit_lines_lost);
}

// ---- sessions and lanes ------------------------------------------------------------------------

const char* direction_of(const transfer::View& view) {
  return view.role == transfer::Role::kSource        ? "send"
         : view.role == transfer::Role::kDestination ? "receive"
                                                     : "unknown";
}

void add_counts(Families& out, const std::string& session, const SessionCounts& counts) {
  out.count(Metric::session_payload_bytes_total, counts.payload_bytes, {session});
  out.count(Metric::session_chunks_total, counts.chunks, {session});
  out.count(Metric::session_retransmits_total, counts.retransmits, {session});
  out.count(Metric::session_duplicates_total, counts.duplicates, {session});
  out.count(Metric::session_lost_datagrams_total, counts.lost_datagrams, {session});
  out.count(Metric::session_crc_errors_total, counts.crc_errors, {session});
  out.count(Metric::session_no_room_total, counts.no_room, {session});
  out.count(Metric::session_attempts_total, counts.attempts, {session});
}

void add_deadline(Families& out, const std::string& session, const transfer::DeadlineView& deadline) {
  out.add(Metric::session_deadline_timestamp_seconds, static_cast<double>(deadline.deadline_unix_ns) * kPerNs,
          {session});
  if (deadline.chance) out.add(Metric::session_deadline_chance_ratio, *deadline.chance, {session});
}

void add_session(Families& out, const transfer::View& view) {
  const std::string& id = view.id;
  out.count(Metric::session_info, 1, {id, label(view.peer), direction_of(view), view.rate.mode});
  out.add(Metric::session_start_timestamp_seconds, static_cast<double>(view.started_unix_ns) * kPerNs, {id});
  for (const StateName& state : kStates)
    out.count(Metric::session_state, view.state == state.state ? 1 : 0, {id, state.name});
  if (view.error && view.state == transfer::ViewState::kPaused)
    out.count(Metric::session_held, 1, {id, std::string(error_code_name(view.error->code))});
  out.count(Metric::session_size_bytes, view.bytes_total, {id});
  out.count(Metric::session_listing, view.names.listing ? 1 : 0, {id});
  out.count(Metric::session_done_bytes, view.summary.bytes_done, {id});
  add_counts(out, id, counts_of(view.summary));
  if (view.summary.rtt_ns != 0) out.add(Metric::session_rtt_seconds, seconds(view.summary.rtt_ns), {id});
  if (view.rate.limit_bps != 0) {
    out.add(Metric::session_rate_limit_bytes_per_second, bytes_per_second(view.rate.limit_bps), {id});
  }
  if (view.rate.condition) {
    for (const ConditionName& condition : kConditions) {
      out.count(Metric::session_rate_condition, *view.rate.condition == condition.condition ? 1 : 0,
                {id, condition.name});
    }
  }
  for (size_t i = 1; i < verdict::kCauseNames.size(); ++i) {
    const bool it_is = view.bottleneck.now.cause == static_cast<verdict::Cause>(i);
    out.count(Metric::session_bottleneck, it_is ? 1 : 0, {id, std::string(verdict::kCauseNames[i])});
  }
  if (view.deadline) add_deadline(out, id, *view.deadline);
}

void add_lane(Families& out, const std::string& session, const LaneFigures& lane) {
  const std::vector<std::string> labels = {session, std::to_string(lane.lane)};
  out.count(Metric::lane_payload_bytes_total, lane.payload_bytes, labels);
  out.count(Metric::lane_chunks_total, lane.chunks, labels);
  out.count(Metric::lane_lost_datagrams_total, lane.lost_datagrams, labels);
  out.count(Metric::lane_crc_errors_total, lane.crc_errors, labels);
  out.count(Metric::lane_no_room_total, lane.no_room, labels);
  if (!lane.sends) {
    out.count(Metric::lane_duplicate_chunks_total, lane.duplicate_chunks, labels);
    out.count(Metric::lane_late_chunks_total, lane.late_chunks, labels);
    return;
  }
  out.count(Metric::lane_retransmitted_chunks_total, lane.retransmitted_chunks, labels);
  out.count(Metric::lane_repaired_chunks_total, lane.repaired_chunks, labels);
  out.add(Metric::lane_rate_bytes_per_second, bytes_per_second(lane.rate_bps), labels);
  if (lane.rtt_ns != 0) out.add(Metric::lane_rtt_seconds, seconds(lane.rtt_ns), labels);
  if (lane.rtt_min_ns != 0) out.add(Metric::lane_rtt_min_seconds, seconds(lane.rtt_min_ns), labels);
  out.count(Metric::lane_credit_extents, lane.credit_extents, labels);
  const auto blocked = [&](const char* reason, uint64_t ns) {
    out.add(Metric::lane_blocked_seconds_total, seconds(ns), {labels[0], labels[1], reason});
  };
  blocked("credit", lane.blocked.credit_ns);
  blocked("source", lane.blocked.source_ns);
  blocked("memory", lane.blocked.memory_ns);
  blocked("pacing", lane.blocked.pacing_ns);
}

void add_sessions(Families& out, const std::vector<SessionFigures>& sessions, const Labelled& labelled) {
  out.count(Metric::sessions_unlabelled, labelled.without());
  for (const SessionFigures& session : sessions) {
    if (!labelled.has(session.view.id)) continue;
    add_session(out, session.view);
    for (const LaneFigures& lane : session.lanes) add_lane(out, session.view.id, lane);
  }
  add_counts(out, std::string(kOthers), labelled.others());
}

}  // namespace

std::vector<Family> families_of(const Sources& sources) {
  Families out;
  if (sources.node != nullptr) {
    add_node(out, *sources.node);
    add_sessions(out, sources.node->sessions, *sources.labelled);
    out.add(Metric::snapshot_age_seconds, sources.node_age_s);
  }
  for (const ExportSpace& space : sources.exports) {
    out.count(Metric::export_size_bytes, space.size_bytes, {label(space.name)});
    out.count(Metric::export_free_bytes, space.free_bytes, {label(space.name)});
  }
  out.add(Metric::process_cpu_seconds_total, sources.process.cpu_s);
  out.count(Metric::process_resident_memory_bytes, sources.process.resident_bytes);
  out.count(Metric::process_open_fds, sources.process.open_fds);
  out.count(Metric::process_max_fds, sources.process.max_fds);
  out.add(Metric::process_start_time_seconds, sources.process.start_time_s);
  return out.take();
}

}  // namespace sluice::metrics
