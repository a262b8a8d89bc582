// How fast a transfer gets on: what it sees of itself, once a second, and what follows for its deadline.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/rate/stricter.h"
#include "control/transfer/transfer.h"

namespace sluice::transfer {

using deadline::Limit;

namespace {

constexpr double kNearly = 0.95;

}  // namespace

int64_t Transfer::unix_ns(uint64_t now_ns) const {
  return times_.started_unix_ns + static_cast<int64_t>(times_.before_ns + now_ns - times_.started_ns);
}

Pace::Stage Transfer::pace_stage() const {
  if (paused_ || cancelled_) return Pace::Stage::kAway;
  if (phase_ == P::kQueued && job_.initiator) return Pace::Stage::kWaits;
  const bool moves =
      phase_ == P::kActive && any_leg([](const Leg& leg) { return leg.phase() == LegPhase::kMoving; });
  return moves ? Pace::Stage::kMoves : Pace::Stage::kAway;
}

uint64_t Transfer::cap_bps() const {
  uint64_t cap_bps = 0;
  for (const auto& leg : legs_) {
    const uint64_t rate_bps = leg->agreement().rate_bps;
    cap_bps = job_.several_peers ? cap_bps + rate_bps : std::max(cap_bps, rate_bps);
  }
  if (cap_bps == 0 && job_.request) cap_bps = job_.request->options.rate_bps;  // nothing is agreed upon yet
  return rate::stricter_bps(cap_bps, job_.rate_limit_bps());
}

Transfer::RateSum Transfer::rate_sum() const {
  RateSum sum;
  for (LegId leg; job_.source() != nullptr && leg < legs_.end_id(); ++leg) {
    const rate::Share* const rate = job_.source()->rate(leg);
    if (rate == nullptr) continue;
    sum.known = true;
    sum.rate_bps += rate->rate_bps();
    sum.cap_bps += rate->cap_bps();
  }
  return sum;
}

Pace::Sight Transfer::sight(uint64_t now_ns) const {
  const Leg& leg = shown_leg();
  const board::FlowFigures figures = job_.legs.figures();
  const uint64_t total = job_.has_end() ? job_.bytes_total() : job_.request ? job_.request->source_bytes : 0;
  Pace::Sight sight{
      .stage = pace_stage(),
      .size_known = job_.has_end() || total != 0,
      .bytes_arrived = (job_.source() != nullptr ? figures.peer_bytes_received : figures.bytes) +
                       figures.extra.compression.saved_bytes(),
      .unix_now_ns = unix_ns(now_ns)};
  const bool generated = (job_.terms && job_.terms->discard) || (job_.request && is_generated(*job_.request));
  uint64_t cap_bps = this->cap_bps();
  uint32_t chunk_bytes = leg.agreement().chunk_bytes;
  if (chunk_bytes == 0 && job_.request) chunk_bytes = job_.request->options.chunk_bytes;
  if (const RateSum sum = rate_sum(); sum.known) cap_bps = std::min(cap_bps, sum.cap_bps);
  const uint64_t done = std::max(shown_.bytes_done, job_.bytes_done());
  // What several sources bring together is no path's speed.
  sight.load = {.path = {.peer = job_.several_peers ? peers() : peer(),
                         .outgoing = job_.role == Role::kSource,
                         .generated = generated},
                .order = times_.started_unix_ns,
                .bytes_left = total - std::min(total, done),
                .cap_bps = data_bps(cap_bps, chunk_bytes)};
  return sight;
}

// A source knows what it waited for; a destination only whether its own disk was too slow, and otherwise how
// near to its cap it was.
Limit Transfer::limit_now(double cap_bps) {
  const board::FlowFigures figures = job_.legs.figures();
  const board::FlowFigures before = std::exchange(going_.before, figures);
  if (job_.source() == nullptr) {
    if (figures.no_room > before.no_room) return Limit::kDestinationDisk;
    // A look is a second after the one before.
    const double rate_bps = 8 * static_cast<double>(figures.bytes - std::min(figures.bytes, before.bytes));
    return rate_bps >= kNearly * cap_bps ? Limit::kCap : Limit::kPath;
  }
  const board::Blocked blocked = figures.blocked.since(before.blocked);
  if (blocked.source_ns > Pace::kLookNs / 2) return Limit::kSourceDisk;
  const RateSum rate = rate_sum();
  if (!rate.known) return Limit::kPath;
  const auto rate_bps = static_cast<double>(rate.rate_bps);
  if (figures.peer_advice_bps != 0 && static_cast<double>(figures.peer_advice_bps) * kNearly <= rate_bps)
    return Limit::kDestinationDisk;
  if (blocked.credit_ns > Pace::kLookNs / 2) return Limit::kDestinationDisk;
  return rate_bps >= kNearly * static_cast<double>(rate.cap_bps) ? Limit::kCap : Limit::kPath;
}

void Transfer::keep_pace(uint64_t now_ns) {
  if (phase_ >= P::kEnding || detached_) return going_.pace.leave();
  if (!going_.pace.due(pace_stage(), now_ns)) return;
  Pace::Sight seen = sight(now_ns);
  if (seen.stage == Pace::Stage::kMoves) seen.limit = limit_now(seen.load.cap_bps);
  const std::optional<Error> error = going_.pace.look(seen, now_ns, out_);
  if (seen.stage == Pace::Stage::kMoves && job_.destination() != nullptr) note_sources(now_ns);
  if (job_.source() != nullptr)
    job_.source()->reserve(wire_bps(going_.pace.reserved_bps(), shown_leg().agreement().chunk_bytes));
  if (going_.pace.take_judged()) write_record(Entry::kJudged, Durability::kProcess, now_ns);
  if (error) give_up(*error, now_ns);
}

// How fast each of several sources is, for the next session that has it.
void Transfer::note_sources(uint64_t now_ns) {
  for (const auto& leg : legs_) {
    const uint64_t rate_bps = job_.destination()->source_bps(leg->id());
    if (rate_bps == 0) continue;
    settings_.outlook->heard({.peer = leg->peer_name(), .outgoing = false},
                             {.rate_bps = static_cast<double>(rate_bps)}, now_ns);
  }
}

// A session that is over within seconds has no sample of its path, and is worth one where another asks which
// of its sources is the fastest.
void Transfer::note_brief(const Leg& leg, uint64_t now_ns) {
  const double rate_bps = leg.early_bps();
  if (rate_bps <= 0 || job_.role != Role::kDestination || sight(now_ns).load.path.generated) return;
  settings_.outlook->brief({.peer = leg.peer_name(), .outgoing = false}, rate_bps, now_ns);
}

// For the deadlines of those to come. One that waited, rested, or shared its path says nothing of how long a
// session takes.
void Transfer::note_whole(uint64_t now_ns) {
  if (error_ || !job_.has_end() || attempts_.count != 1 || turn_.waited || times_.before_ns != 0) return;
  const deadline::Load load = sight(now_ns).load;
  const uint64_t bytes = job_.bytes_total();
  if (bytes == 0 || settings_.outlook->others_bps(job_.id, load.path) > 0) return;
  settings_.outlook->ended(load.path,
                           {.bytes = bytes,
                            .seconds = static_cast<double>(now_ns - times_.started_ns) * 1e-9,
                            .cap_bps = load.cap_bps},
                           now_ns);
}

std::optional<DeadlineView> Transfer::deadline_view(uint64_t now_ns) const {
  if (!job_.request || job_.request->options.deadline_unix_ns == 0) return std::nullopt;
  if (outcome_) {
    const uint64_t ended_ns = times_.ended_ns != 0 ? times_.ended_ns : times_.started_ns;
    return deadline_of_end(job_.request->options.deadline_unix_ns, unix_ns(ended_ns),
                           *outcome_ == RecordState::kSucceeded);
  }
  return going_.pace.view(sight(now_ns), now_ns);
}

}  // namespace sluice::transfer
