// What a session's flows tell, what it waits for, and what an operator sees of it.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "control/session/session.h"

namespace sluice::control {
namespace {

constexpr uint64_t kWatchNs = 100'000'000;
constexpr size_t kEarlyEventsMax = 2 * board::kEventSlots * board::kWorkersMax;

}  // namespace

void Session::on_event(const board::Event& event) {
  const auto lane = std::find_if(lanes_.begin(), lanes_.end(),
                                 [&](const Lane& candidate) { return candidate.grant.slot == event.flow; });
  if (lane == lanes_.end()) return;
  // What was written is worth keeping, also when the attempt has failed already.
  const bool kept = (data_running_ || winding_down_) && !is_source_ && end_ &&
                    event.kind == board::EventKind::kExtentWritten;
  if (event.kind == board::EventKind::kFlowOpened) {
    lane->answered = true;
    lane->open_status = event.value;
    changed_.notify();
  } else if (event.kind == board::EventKind::kFlowClosed) {
    flow_closed(event);
    changed_.notify();
  } else if ((data_running_ && !failed()) || kept) {
    end_->on_event(event, static_cast<uint32_t>(lane - lanes_.begin()));
  } else if (claim_pending_ || claimed_) {
    if (early_events_.size() < kEarlyEventsMax) early_events_.push_back(event);
  }
}

// By a command that a control left behind which is gone: this one claimed the flow before it was obeyed.
void Session::flow_closed(const board::Event& event) {
  if (claim_pending_ || claimed_) {
    if (early_events_.size() < kEarlyEventsMax) early_events_.push_back(event);
  } else if (data_running_ && !winding_down_) {
    fail({ErrorCode::kStalled, "a former sluice-control closed the flows: opening new ones"});
  }
}

void Session::on_tick(uint64_t now_ns) {
  if (!data_running_ || failed()) return;
  end_->on_tick(now_ns);
  if (now_ns - watched_ns_ >= kWatchNs) watch(now_ns);
}

void Session::on_board_lost() {
  board_lost_ = true;
  fail({ErrorCode::kDaemonNotRunning,
        fmt::format("sluice-dataplane of node {} ended: start it", context_->node.name)});
}

void Session::read_figures() {
  if (board_lost_ || lanes_.empty()) return;
  FlowFigures sum;
  for (uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lanes_[lane].answered && lanes_[lane].open_status == 0) sum.add(flow(lane).state);
  }
  figures_ = sum;
}

FlowFigures Session::figures() const {
  FlowFigures all = former_figures_;
  all.add(figures_);
  return all;
}

void Session::watch(uint64_t now_ns) {
  const FlowFigures before = figures_;
  read_figures();
  meter_.sample(bytes_done(), now_ns);
  waiting_for_ = end_->waiting_for(before, figures_, now_ns - watched_ns_, now_ns);
  watched_ns_ = now_ns;
  check_stall(now_ns);
}

void Session::check_stall(uint64_t now_ns) {
  const uint64_t mark = end_->progress(figures_);
  if (mark != progress_mark_) {
    progress_mark_ = mark;
    progress_ns_ = now_ns;
    interrupted_ns_ = backoff_ns_ = 0;
  }
  const uint64_t limit_ns = context_->node.stall_timeout_s * 1'000'000'000ULL;
  if (now_ns - progress_ns_ < limit_ns) return;
  fail({ErrorCode::kStalled, fmt::format("no progress with {} for {} s, node {} is waiting for {}",
                                         peer_name_, context_->node.stall_timeout_s, context_->node.name,
                                         waiting_for_.empty() ? "the peer" : waiting_for_)});
}

// A source that was restarted hears from the peer what is there; until then, what it knew before.
uint64_t Session::bytes_done() const {
  const uint64_t done = end_ ? end_->bytes_done(figures_) : 0;
  return data_running_ || ended_ ? done : std::max(done, saved_bytes_done_);
}

api::Session Session::snapshot() const {
  const uint64_t now_ns = ended_ ? ended_ns_ : monotonic_ns();
  api::Session session;
  session.set_id(id_);
  session.set_state(state_);
  session.set_direction(initiator_ ? (is_source_ ? "send" : "get")
                                   : (is_source_ ? "serve-send" : "serve-receive"));
  session.set_peer(peer_name_);
  if (end_) {
    end_->describe(&session);
    session.set_bytes_total(end_->bytes_total());
  }
  const FlowFigures all = figures();
  session.set_bytes_done(bytes_done());
  session.set_bytes_sent(all.bytes);
  session.set_rate_bps(data_running_ ? meter_.rate_bps() : 0);
  session.set_chunks(all.chunks);
  session.set_retransmits(all.retransmitted_chunks);
  session.set_duplicates(all.duplicate_chunks);
  session.set_crc_errors(all.crc_errors);
  session.set_lost(all.gaps);
  session.set_rtt_us(static_cast<double>(all.rtt_ns) * 1e-3);
  session.set_lanes(agreement_.lanes);
  session.set_attempts(attempts_);
  if (is_source_ && end_) {
    const uint64_t sent = all.bytes + all.retransmitted_chunks * agreement_.chunk_bytes;
    session.set_bytes_resent(sent - std::min(sent, end_->bytes_total()));
  }
  session.set_chunk_bytes(agreement_.chunk_bytes);
  if (agreement_.lanes != 0) session.set_crc(std::string(wire::crc_kind_name(agreement_.crc_kind)));
  session.set_rate_limit_bps(agreement_.rate_bps);
  session.set_started_unix_ns(started_unix_ns_);
  session.set_elapsed_s(static_cast<double>(now_ns - started_ns_) * 1e-9);
  if (data_started_ns_ != 0) {
    const uint64_t until_ns = data_ended_ns_ != 0 ? data_ended_ns_ : now_ns;
    const double data_s = static_cast<double>(until_ns - data_started_ns_) * 1e-9;
    session.set_data_elapsed_s(data_s);
    if (data_s > 0) session.set_goodput_bps(static_cast<double>(session.bytes_done()) * 8 / data_s);
  }
  session.set_waiting_for(waiting_for_);
  if (const std::optional<Error>& error = error_ ? error_ : held_) {
    session.set_error_code(static_cast<uint32_t>(error->code));
    session.set_error(error->message);
    session.set_error_name(std::string(error_code_name(error->code)));
  }
  session.set_wire(std::string(context_->board->port().device));
  return session;
}

}  // namespace sluice::control
