// SPDX-License-Identifier: Apache-2.0
#include "control/source/path_watch.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::transfer {
namespace {

rate::LaneReading reading_of(const board::FlowState& state) {
  const auto read = [](const std::atomic<uint64_t>& value) { return value.load(std::memory_order_acquire); };
  rate::LaneReading reading{.sent = read(state.chunks) + read(state.retransmitted_chunks) +
                                    read(state.repaired_chunks) + read(state.parity),
                            .arrived = read(state.peer_datagrams),
                            .statuses = read(state.statuses),
                            .rtt_ns = read(state.rtt_ns),
                            .padded_sent = read(state.padded_probes)};
  for (uint32_t i = 0; i < board::kPaddedSizesMax; ++i) reading.padded_came[i] = read(state.padded_came[i]);
  return reading;
}

// A new attempt must be worth it.
constexpr double kGainMin = 1.1;

// The time names the round.
void ask(const std::vector<rate::SizeAsk>& asks, LegId leg, LaneId lane, uint64_t now_ns, Effects& out) {
  for (const rate::SizeAsk& each : asks) {
    out.add(CommandLane{.leg = leg,
                        .command = {.kind = board::CommandKind::kSendPadded,
                                    .flow = {.leg = leg, .lane = lane},
                                    .range = {.offset = now_ns, .length = each.chunk_bytes},
                                    .tag = each.count}});
  }
}

}  // namespace

void PathWatch::begin(std::string peer_name, const Agreement& agreement, size_t lanes,
                      const rate::PathSizes& sizes, uint64_t now_ns) {
  peer_name_ = std::move(peer_name);
  ip4_ = agreement.ip4();
  chunk_bytes_ = agreement.chunk_bytes;
  datagram_bytes_ = chunk_bytes_ + rate::datagram_overhead_bytes(ip4_) + rate::kEthernetBytes;
  searches_.clear();
  for (size_t i = 0; i < lanes; ++i) searches_.push_back(rate::SizeSearch(chunk_bytes_, ip4_));
  measure_.reset();
  if (agreement.chunk_auto && sizes.measured(peer_name_, ip4_, now_ns) == nullptr)
    measure_.emplace(chunk_bytes_, ip4_);
}

Status PathWatch::step(const Tick& event, rate::PathSizes& sizes, uint64_t now_ns, Effects& out) {
  const size_t known = std::min(event.lanes.size(), searches_.size());
  if (measure_ && known > 0) return measure(event, sizes, now_ns, out);
  std::optional<LaneId> one = searching();
  for (uint32_t i = 0; i < known; ++i) {
    const LaneId lane(i);
    if (one.value_or(lane) != lane) continue;
    rate::SizeSearch& search = searches_[lane];
    ask(search.step(reading_of(event.lanes[i]->state), now_ns), event.leg, lane, now_ns, out);
    if (search.found()) return shorter(*search.found(), sizes, now_ns);
    one = search.searching() ? std::optional(lane) : std::nullopt;
  }
  return {};
}

std::optional<LaneId> PathWatch::sending(uint64_t now_ns) const {
  const std::optional<LaneId> one = searching();
  return one && searches_[*one].sending(now_ns) ? one : std::nullopt;
}

std::optional<LaneId> PathWatch::searching() const {
  for (LaneId lane; lane < searches_.end_id(); ++lane) {
    if (searches_[lane].searching()) return lane;
  }
  return std::nullopt;
}

// Over the first lane, beside the data. Nothing else is looked for meanwhile.
Status PathWatch::measure(const Tick& event, rate::PathSizes& sizes, uint64_t now_ns, Effects& out) {
  ask(measure_->step(reading_of(event.lanes[0]->state), now_ns), event.leg, LaneId(0), now_ns, out);
  if (!measure_->over()) return {};
  const std::optional<rate::SizeCurve> curve = std::exchange(measure_, std::nullopt)->curve();
  if (!curve) return {};
  sizes.set_measured(peer_name_, ip4_, *curve, now_ns);
  if (curve->best_chunk_bytes >= chunk_bytes_ || curve->gain < kGainMin) return {};
  return Error{
      ErrorCode::kStalled,
      fmt::format("of chunks of {} bytes {:.0f} % arrive at {}: going on with chunks of {}, which bring "
                  "{:.1f} times as much",
                  chunk_bytes_, curve->law.arrives(chunk_bytes_) * 100, peer_name_, curve->best_chunk_bytes,
                  curve->gain)};
}

Status PathWatch::shorter(uint32_t chunk_bytes, rate::PathSizes& sizes, uint64_t now_ns) const {
  sizes.set(peer_name_, ip4_, chunk_bytes, now_ns);
  return Error{
      ErrorCode::kStalled,
      fmt::format("the path to {} carries datagrams of at most {} bytes now, not of {}: going on with "
                  "chunks of {}",
                  peer_name_, chunk_bytes + rate::datagram_overhead_bytes(ip4_),
                  chunk_bytes_ + rate::datagram_overhead_bytes(ip4_), chunk_bytes)};
}

}  // namespace sluice::transfer
