// SPDX-License-Identifier: Apache-2.0
#include "control/leg/bottleneck.h"

#include <algorithm>

#include "control/leg/control_stream.h"
#include "dataplane/base/grown.h"

namespace sluice::transfer {
namespace {

// A peer's word holds for three of its heartbeats.
constexpr uint64_t kFreshNs = 3 * ControlStream::kHeartbeatNs;
// After so many round trips the peer has answered for everything that was sent.
constexpr uint64_t kRoundTrips = 4;

using base::grown;

verdict::ReceiverSight receiver_sight(const board::FlowFigures& before, const board::FlowFigures& now,
                                      const board::Load& here) {
  return {.came = grown(before.chunks, now.chunks),
          .lost = grown(before.network_lost, now.network_lost),
          .no_room = grown(before.no_room, now.no_room),
          .here = here};
}

}  // namespace

Bottleneck::Mark Bottleneck::mark(const LaneSet& lanes, uint64_t now_ns) {
  return {.time_ns = now_ns, .figures = lanes.figures(), .workers = lanes.workers()};
}

void Bottleneck::start(const LaneSet& lanes, uint64_t now_ns) {
  moving_ = true;
  before_ = told_ = mark(lanes, now_ns);
  sent_before_ = false;
  advice_bps_ = 0;
  now_ = {};
  peer_load_.reset();
  peer_verdict_.reset();
}

void Bottleneck::look(const Job& job, const LaneSet& lanes, uint64_t now_ns) {
  if (job.source() != nullptr) {
    arrival_.look_at_source(lanes.figures(), job.bytes_done(), now_ns);
  } else {
    arrival_.look_at_destination(lanes.figures(), now_.cause == verdict::Cause::kNetwork, now_ns);
  }
  if (const uint64_t advice_bps = lanes.figures().peer_advice_bps; advice_bps != 0) advice_bps_ = advice_bps;
  if (moving_ && now_ns - before_.time_ns >= kIntervalNs) judge(job, lanes, now_ns);
}

void Bottleneck::conclude(const Job& job, const LaneSet& lanes, uint64_t now_ns) {
  if (!moving_) return;
  if (now_ns - before_.time_ns >= (tally_.empty() ? 1 : kShortestNs)) judge(job, lanes, now_ns);
  moving_ = false;
}

void Bottleneck::judge(const Job& job, const LaneSet& lanes, uint64_t now_ns) {
  const board::FlowFigures& figures = lanes.figures();
  const uint64_t interval_ns = now_ns - before_.time_ns;
  if (now_ns - heard_ns_ > kFreshNs) {
    peer_load_.reset();
    peer_verdict_.reset();
  }
  if (const SourceEnd* const source = job.source()) {
    now_ = verdict::judge(sight(*source, lanes, now_ns));
    sent_before_ = source->all_sent();
  } else if (peer_verdict_) {
    now_ = *peer_verdict_;
  } else {
    const board::Load here = board::load_of(before_.workers, lanes.workers(), interval_ns);
    now_ = verdict::judge(receiver_sight(before_.figures, figures, here));
  }
  tally_.add(now_, interval_ns);
  history_.add({.length_ns = interval_ns,
                .bytes = grown(before_.figures.plain_bytes(), figures.plain_bytes()),
                .cause = now_.cause});
  advice_bps_ = 0;
  before_ = mark(lanes, now_ns);
}

verdict::Sight Bottleneck::sight(const SourceEnd& source, const LaneSet& lanes, uint64_t now_ns) const {
  const board::FlowFigures& before = before_.figures;
  const board::FlowFigures& now = lanes.figures();
  const uint64_t interval_ns = now_ns - before_.time_ns;
  verdict::Sight sight{.interval_ns = interval_ns,
                       .lanes = static_cast<uint32_t>(lanes.size()),
                       .blocked = now.blocked.since(before.blocked),
                       .sent = grown(before.sent(), now.sent()),
                       .lost = grown(before.network_lost, now.network_lost),
                       .no_room = grown(before.no_room, now.no_room),
                       .all_sent = sent_before_ && source.all_sent() &&
                                   interval_ns > kRoundTrips * now.rtt_ns &&
                                   now.retransmitted_chunks == before.retransmitted_chunks,
                       .window = {.granted = grown(now.extents.done, now.credit_extents),
                                  .used = grown(now.extents.done, now.opened_extents),
                                  .wanted = now.extents.wanted},
                       .rtt_ns = now.rtt_ns,
                       .rtt_min_ns = now.rtt_min_ns,
                       .here = board::load_of(before_.workers, lanes.workers(), interval_ns),
                       .there = peer_load_,
                       .nothing_arrives = arrival_.evidence()};
  if (const rate::Share* const rate = source.rate(lanes.leg())) {
    sight.rate = {.now_bps = rate->rate_bps(),
                  .cap_bps = rate->cap_bps(),
                  .cap_of = source.cap_of(lanes.leg()),
                  .advice_bps = advice_bps_,
                  .condition = rate->condition()};
  }
  for (size_t i = 0; i < std::min(before_.workers.size(), lanes.workers().size()); ++i)
    sight.refused += grown(before_.workers[i].partial_bursts, lanes.workers()[i].partial_bursts);
  return sight;
}

void Bottleneck::hear(const Heartbeat& word, uint64_t now_ns) {
  if (word.load) peer_load_ = word.load;
  if (word.bottleneck) peer_verdict_ = word.bottleneck;
  if (word.load || word.bottleneck) heard_ns_ = now_ns;
  if (!word.bottleneck || !word.whole) return;
  // Of the whole session, which the source has seen from its beginning.
  moving_ = false;
  now_ = *word.bottleneck;
  tally_ = {};
  tally_.add(now_, static_cast<uint64_t>(now_.share * kSecondNs));
  tally_.add(verdict::Verdict{}, static_cast<uint64_t>((1 - now_.share) * kSecondNs));
}

Heartbeat Bottleneck::word(const Job& job, const LaneSet& lanes, bool last, uint64_t now_ns) {
  Heartbeat word;
  if (job.source() != nullptr) {
    if (last) word = {.bottleneck = tally_.whole(), .whole = true};
    if (!last && moving_) word.bottleneck = now_;
  } else if (moving_) {
    word.load = board::load_of(told_.workers, lanes.workers(), now_ns - told_.time_ns);
    told_ = mark(lanes, now_ns);
  }
  return word;
}

}  // namespace sluice::transfer
