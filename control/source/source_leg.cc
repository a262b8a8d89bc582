// SPDX-License-Identifier: Apache-2.0
#include "control/source/source_leg.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "control/rate/lane_shares.h"
#include "control/rate/stricter.h"
#include "dataplane/base/counted.h"

namespace sluice::transfer {

// ---- an attempt --------------------------------------------------------------------------------

void SourceLeg::begin(const DataEnd::Way& way, rate::Paths& paths, uint64_t now_ns) {
  const Agreement& agreement = way.agreement;
  open(way.stream);
  caps_.agreed_bps = agreement.rate_bps;
  caps_.peer_bps = 0;
  rate::Terms terms = agreement.rate_terms();
  terms.cap_bps = cap_bps();
  // A peer behind a NAT gives an address that many others may have as well.
  const bool learnt = agreement.reach == board::Reach::kPeerOpens;
  const std::string address(agreement.peer_ip.begin(), agreement.peer_ip.end());
  rate_ = paths.join(learnt ? way.peer_name : address, terms, now_ns);
  path_.begin(way.peer_name, agreement, way.lanes, paths.sizes(), now_ns);
  lane_rates_.assign(way.lanes, UINT64_MAX);
  listed_.clear();
  flows_done_ = 0;
}

void SourceLeg::end() {
  work_answers_ = 0;
  rate_.reset();
  close();
}

// ---- the flows of an earlier life --------------------------------------------------------------

void SourceLeg::ask_work(uint32_t tag, Effects& out) {
  work_tag_ = tag;
  work_answers_ = static_cast<uint32_t>(lanes());
  for (uint32_t lane = 0; lane < lanes(); ++lane) {
    out.add(CommandLane{.leg = id(),
                        .command = {.kind = board::CommandKind::kQueryWork,
                                    .flow = {.leg = id(), .lane = LaneId(lane)},
                                    .tag = tag}});
  }
}

bool SourceLeg::hear_work(const board::Event& event) {
  if (work_answers_ == 0 || event.tag != work_tag_) return false;
  if (event.kind == board::EventKind::kWorkEnd) --work_answers_;
  return event.kind != board::EventKind::kWorkEnd;
}

// ---- the rate ----------------------------------------------------------------------------------

uint64_t SourceLeg::cap_bps() const {
  return rate::stricter_bps(caps_.agreed_bps, rate::stricter_bps(caps_.own_bps, caps_.peer_bps));
}

verdict::LimitOf SourceLeg::cap_of() const {
  if (cap_bps() == caps_.agreed_bps) return verdict::LimitOf::kAgreed;
  return cap_bps() == caps_.own_bps ? verdict::LimitOf::kOperator : verdict::LimitOf::kPeer;
}

void SourceLeg::allow(uint64_t limit_bps) {
  if (std::exchange(caps_.own_bps, limit_bps) == limit_bps) return;
  if (rate_ != nullptr) rate_->set_cap(cap_bps());
}

void SourceLeg::peer_allows(uint64_t limit_bps) {
  caps_.peer_bps = limit_bps;
  if (rate_ != nullptr) rate_->set_cap(cap_bps());
}

Status SourceLeg::step(const Tick& event, const recovery::Sender& sender, rate::Paths& paths, uint64_t now_ns,
                       Effects& out) {
  command_backlog_ = event.command_backlog;
  if (!event.lanes.empty()) control_rate(event, sender, now_ns, out);
  return path_.step(event, paths.sizes(), now_ns, out);
}

void SourceLeg::control_rate(const Tick& event, const recovery::Sender& sender, uint64_t now_ns,
                             Effects& out) {
  board::FlowFigures figures;
  Indexed<LaneId, bool> busy;
  for (uint32_t i = 0; i < event.lanes.size(); ++i) {
    const board::FlowState& state = event.lanes[i]->state;
    figures.add(state);
    busy.push_back(sender.has_work({.leg = id(), .lane = LaneId(i)}, state));
  }
  flows_done_ = figures.bytes_done;
  const rate::Condition before = rate_->condition();
  rate::PathReport report = figures.report();
  report.datagram_bytes = path_.datagram_bytes();
  const bool works = std::find(busy.begin(), busy.end(), true) != busy.end();
  const uint64_t rate_bps = rate_->step(report, works, now_ns);
  if (rate_->condition() != before && rate_->condition() > rate::Condition::kRunning)
    warn_of_rate(rate_bps, now_ns, out);
  if (const std::optional<LaneId> sending = path_.sending(now_ns)) {
    busy.assign(busy.size(), false);
    busy[*sending] = true;
  }
  const Indexed<LaneId, uint64_t> shares = rate::lane_shares(rate_bps, busy);
  const bool ramps = rate_->condition() == rate::Condition::kRamping;
  const bool ramped = std::exchange(ramps_, ramps);
  for (uint32_t i = 0; i < shares.size(); ++i) {
    const LaneId lane(i);
    if (std::exchange(lane_rates_[lane], shares[lane]) == shares[lane] && ramps == ramped) continue;
    out.add(SetRate{.leg = id(), .lane = lane, .rate_bps = shares[lane], .ramps = ramps});
  }
}

// It may change with every look, for as long as a peer comes and goes.
void SourceLeg::warn_of_rate(uint64_t rate_bps, uint64_t now_ns, Effects& out) {
  if (warned_.at_ns != 0 && now_ns - warned_.at_ns < kWarnNs) return void(++warned_.unsaid);
  std::string line = fmt::format("{}: {:.2f} Gbit/s", rate::condition_name(rate_->condition()),
                                 static_cast<double>(rate_bps) * 1e-9);
  if (warned_.unsaid != 0)
    line += fmt::format(" (and {} since the last such line)", base::counted(warned_.unsaid, "change"));
  warned_ = {.at_ns = now_ns};
  out.log(LogLevel::kWarn, std::move(line));
}

}  // namespace sluice::transfer
