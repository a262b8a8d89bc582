// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/path_watch.h"

#include <fmt/format.h>

#include <algorithm>

namespace sluice::transfer {
namespace {

constexpr uint32_t kEthernetBytes = 14 + 24;  // header; preamble, FCS and gap

rate::SizeSearch::Reading reading_of(const board::FlowState& state) {
  const auto read = [](const std::atomic<uint64_t>& value) { return value.load(std::memory_order_acquire); };
  rate::SizeSearch::Reading reading{
      .sent = read(state.chunks) + read(state.retransmitted_chunks) + read(state.repaired_chunks),
      .arrived = read(state.peer_datagrams),
      .statuses = read(state.statuses),
      .rtt_ns = read(state.rtt_ns),
      .padded_sent = read(state.padded_probes)};
  for (uint32_t i = 0; i < board::kPaddedSizesMax; ++i) reading.padded_came[i] = read(state.padded_came[i]);
  return reading;
}

}  // namespace

void PathWatch::begin(std::string peer_name, const Agreement& agreement, size_t lanes) {
  peer_name_ = std::move(peer_name);
  ip4_ = agreement.peer_ip[10] == 0xff && agreement.peer_ip[11] == 0xff;
  chunk_bytes_ = agreement.chunk_bytes;
  datagram_bytes_ = chunk_bytes_ + rate::datagram_overhead_bytes(ip4_) + kEthernetBytes;
  searches_.clear();
  for (size_t i = 0; i < lanes; ++i) searches_.push_back(rate::SizeSearch(chunk_bytes_, ip4_));
}

Status PathWatch::step(const Tick& event, rate::PathSizes& sizes, uint64_t now_ns, Effects& out) {
  const size_t known = std::min(event.lanes.size(), searches_.size());
  for (uint32_t i = 0; i < known; ++i) {
    const LaneId lane(i);
    rate::SizeSearch& search = searches_[lane];
    for (const rate::SizeSearch::Ask& ask : search.step(reading_of(event.lanes[i]->state), now_ns)) {
      out.add(CommandLane{.leg = event.leg,
                          .command = {.kind = board::CommandKind::kSendPadded,
                                      .lane = lane,
                                      .range = {.offset = 0, .length = ask.chunk_bytes},
                                      .tag = ask.count}});
    }
    if (search.found()) return shorter(*search.found(), sizes, now_ns);
  }
  return {};
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
