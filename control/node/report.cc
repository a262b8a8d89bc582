// SPDX-License-Identifier: Apache-2.0
#include "control/node/report.h"

#include <algorithm>

#include "control/runtime/standing.h"
#include "dataplane/base/check.h"
#include "dataplane/base/version.h"

namespace sluice::node {
namespace {

// While it moves data its flows count for it; before, a slot may still hold what another flow counted.
bool has_flows(const transfer::View& view) {
  return view.state == transfer::ViewState::kTransferring || view.state == transfer::ViewState::kFinishing;
}

metrics::DataplaneFigures figures_of(attach::AttachedBoard& attached, uint64_t now_ns) {
  const board::PortInfo& port = attached.port();
  const board::Board& board = attached.board();
  DCHECK(port.workers <= board::kWorkersMax, "the port was checked when it was attached");
  const uint64_t alive_ns = board.dataplane_alive_ns.load(std::memory_order_acquire);
  metrics::DataplaneFigures figures{.port = port.device,
                                    .hugepages = port.hugepages != 0,
                                    .fallback_for = port.fallback_for,
                                    .falls = port.falls,
                                    .heartbeat_age_ns = now_ns - std::min(now_ns, alive_ns),
                                    .workers = {}};
  for (uint32_t worker = 0; worker < port.workers; ++worker) {
    metrics::WorkerCounters& counters = figures.workers.emplace_back();
    for (uint32_t i = 0; i < board::kCounters; ++i)
      counters[i] = board.workers[worker].counters[i].load(std::memory_order_relaxed);
  }
  return figures;
}

}  // namespace

Report::Report(std::shared_ptr<runtime::Services> services, const Sessions& sessions,
               const Reception& reception, const TrustWatch& trust, const ExportWatch& exports,
               const JournalWatch& journal)
    : services_(std::move(services)),
      sessions_(sessions),
      reception_(reception),
      trust_(trust),
      exports_(exports),
      journal_(journal) {}

Report::~Report() { *alive_ = false; }

std::vector<metrics::LaneFigures> Report::lanes(const std::string& id) const {
  std::vector<metrics::LaneFigures> lanes;
  const auto attached = services_->board->attached();
  const Sessions::Task task = sessions_.active(id);
  if (!attached || !task || !has_flows(task->transfer().overview(async::monotonic_ns()))) return lanes;
  for (const board::FlowGrant& lane : task->lanes()) {
    const auto number = static_cast<uint32_t>(lanes.size());
    lanes.push_back(metrics::figures_of(number, attached->flows().flow(lane.slot)));
  }
  return lanes;
}

Result<std::vector<CounterValue>> Report::counters() const {
  const auto board = services_->board->attached();
  if (!board) return no_dataplane(services_->node);
  std::vector<CounterValue> values;
  const board::CounterInfo* table = board::counter_table();
  for (uint32_t i = 0; i < board::kCounters; ++i) {
    values.push_back({.name = table[i].name,
                      .unit = table[i].unit,
                      .help = table[i].help,
                      .value = board->counter(static_cast<board::Counter>(i))});
  }
  return values;
}

asio::awaitable<Result<NodeInfo>> Report::info() {
  const std::shared_ptr<bool> alive = alive_;
  const std::shared_ptr<runtime::Services> services = services_;
  const Result<identity::Standing> standing = co_await runtime::standing_now(services);
  NodeInfo info{.name = services->node.name,
                .fingerprint = services->self->fingerprint,
                .dataplane_attached = services->board->attached() != nullptr,
                .port = services->board->last_port(),
                .crc_variant = services->board->last_crc_variant(),
                .exports = services->node.exports,
                .peers = {},
                .offers = {},
                .control_address = services->node.listen,
                .longest_turn_ns = services->turns->longest_ns(),
                .longest_turn = services->turns->longest_name(),
                .export_waits = {}};
  if (*alive) info.export_waits = exports_.waits();
  if (!standing) co_return info;
  info.peers = standing->trust->pinned();
  // What was taken, or whose peer is gone, is offered no more.
  std::erase_if(services->offers, [&info](const auto& offer) {
    return std::ranges::none_of(info.peers, [&offer](const identity::Peer& peer) {
      return peer.name == offer.first && peer.fingerprint != offer.second.fingerprint;
    });
  });
  for (const auto& offer : services->offers) info.offers.push_back(offer.second);
  co_return info;
}

std::optional<DataplaneState> Report::dataplane_state() const {
  const auto attached = services_->board->attached();
  if (!attached) return std::nullopt;
  const board::Board& board = attached->board();
  return DataplaneState{.sandbox = board.sandbox.load(std::memory_order_relaxed),
                        .refused_calls = board.refused_calls.load(std::memory_order_relaxed),
                        .link = static_cast<board::Link>(board.link.load(std::memory_order_relaxed))};
}

metrics::NodeFigures Report::figures() const {
  const async::TurnMeter::Scope turn(*services_->turns, "metrics");
  const uint64_t now_ns = async::monotonic_ns();
  metrics::NodeFigures figures{.name = services_->node.name,
                               .version = SLUICE_VERSION,
                               .port_rate_bps = services_->node.port_rate_bps,
                               .sessions_max = services_->node.sessions_max,
                               .queue_max = services_->node.queue_max,
                               .ended = sessions_.ended_by_code(),
                               .turns = services_->turns->turns(),
                               .longest_turn_ns = services_->turns->longest_ns(),
                               .journal_lost = journal_.lost(),
                               .audit_lines_lost = services_->audit.lost()};
  // One of each name: a series has one value.
  std::map<std::pair<std::string, std::string>, int64_t> ends;
  for (const identity::Expiry& one : trust_.expiries()) {
    if (one.unix_s == identity::kNoEnd) continue;
    const auto [at, is_new] = ends.try_emplace({one.kind, one.name}, one.unix_s);
    if (!is_new) at->second = std::min(at->second, one.unix_s);
  }
  for (const auto& [key, unix_s] : ends) figures.expiries.push_back({key.first, key.second, unix_s});
  std::ranges::sort(figures.expiries, {}, &metrics::NodeFigures::Expiry::unix_s);
  if (const std::optional<peer::CallerCounts> counts = reception_.counts()) {
    figures.callers = {.trusted = counts->trusted,
                       .refused = counts->refused,
                       .failed = counts->failed,
                       .timed_out = counts->timed_out,
                       .let_go = counts->let_go,
                       .waited = counts->waited};
  }
  const auto attached = services_->board->attached();
  if (attached) figures.dataplane = figures_of(*attached, now_ns);
  for (const Sessions::Task& task : sessions_.tasks()) {
    if (task->transfer().ended()) continue;
    metrics::SessionFigures& session = figures.sessions.emplace_back();
    session.view = task->transfer().overview(now_ns);
    if (!attached || !has_flows(session.view)) continue;
    for (const board::FlowGrant& lane : task->lanes()) {
      const auto number = static_cast<uint32_t>(session.lanes.size());
      session.lanes.push_back(metrics::figures_of(number, attached->flows().flow(lane.slot)));
    }
  }
  return figures;
}

}  // namespace sluice::node
