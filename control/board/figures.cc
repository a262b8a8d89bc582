// SPDX-License-Identifier: Apache-2.0
#include "control/board/figures.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "dataplane/base/grown.h"

namespace sluice::board {
namespace {

constexpr uint64_t kRateSpanNs = 1'000'000'000;
constexpr uint64_t kSilenceNs = 500'000'000;
// A wish has room for growth and repairs: half of it fills a path.
constexpr uint64_t kEnoughShare = 2;

using base::grown;
uint64_t read(const std::atomic<uint64_t>& value) { return value.load(std::memory_order_acquire); }

// Zero: not known yet.
void take_shortest(uint64_t* shortest, uint64_t value) {
  if (value != 0 && (*shortest == 0 || value < *shortest)) *shortest = value;
}

}  // namespace

void Blocked::add(const Blocked& other) {
  credit_ns += other.credit_ns;
  source_ns += other.source_ns;
  memory_ns += other.memory_ns;
  pacing_ns += other.pacing_ns;
}

Blocked Blocked::since(const Blocked& before) const {
  return {.credit_ns = grown(before.credit_ns, credit_ns),
          .source_ns = grown(before.source_ns, source_ns),
          .memory_ns = grown(before.memory_ns, memory_ns),
          .pacing_ns = grown(before.pacing_ns, pacing_ns)};
}

void OneWayDelays::add(const OneWayDelays& other) {
  if (!other.known) return;
  min_ns = known ? std::min(min_ns, other.min_ns) : other.min_ns;
  spread_ns = std::max(spread_ns, other.spread_ns);
  known = true;
}

void EchoFigures::add(const EchoFigures& other) {
  sent += other.sent;
  came += other.came;
  wrong += other.wrong;
  wrong_bytes += other.wrong_bytes;
  copies += other.copies;
  over |= other.over;
}

void FlowFigures::add(const FlowState& state) {
  chunks += read(state.chunks);
  bytes += read(state.bytes);
  retransmitted_chunks += read(state.retransmitted_chunks) + read(state.repaired_chunks);
  extra.parity.symbols += read(state.parity);
  extra.parity.decoded_chunks += read(state.decoded_chunks);
  extra.compression.bytes += read(state.compressed_bytes);
  extra.compression.wire_bytes += read(state.compressed_wire_bytes);
  extra.echoes.add({.sent = read(state.echoes),
                    .came = read(state.echoes_came),
                    .wrong = read(state.echoes_wrong),
                    .wrong_bytes = read(state.echo_bytes_wrong),
                    .copies = read(state.echo_copies),
                    .over = read(state.echoes_over) != 0});
  duplicate_chunks += read(state.duplicate_chunks);
  late_chunks += read(state.late_chunks);
  // A destination counts these itself, a source is told: a flow has only one of both.
  crc_errors += read(state.crc_errors) + read(state.peer_crc_errors);
  no_room += read(state.no_buffer_drops) + read(state.peer_no_room);
  network_lost += read(state.network_lost);
  bytes_done += read(state.bytes_done);
  rtt_ns = std::max(rtt_ns, read(state.rtt_ns));
  last_peer_ns = std::max(last_peer_ns, read(state.last_peer_ns));
  blocked.add({.credit_ns = read(state.blocked_credit_ns),
               .source_ns = read(state.blocked_source_ns),
               .memory_ns = read(state.blocked_memory_ns),
               .pacing_ns = read(state.blocked_pacing_ns)});
  extents.done += read(state.extents_done);
  extents.wanted += read(state.wanted_extents);
  credit_extents += read(state.credit_extents);
  opened_extents += read(state.opened_extents);
  take_shortest(&rtt_min_ns, read(state.rtt_min_ns));
  peer_bytes_received += read(state.peer_bytes_received);
  peer_received_end += read(state.peer_received_end);
  peer_datagrams += read(state.peer_datagrams);
  peer_advice_bps += read(state.peer_advice_bps);
  statuses += read(state.statuses);
  const int64_t least_ns = state.delay_min_ns.load(std::memory_order_acquire);
  const int64_t longest_ns = state.delay_max_ns.load(std::memory_order_acquire);
  delays.add({.known = least_ns != 0 || longest_ns != 0,
              .min_ns = least_ns,
              // They are read one after the other, and may be of two statuses.
              .spread_ns = longest_ns > least_ns
                               ? static_cast<uint64_t>(longest_ns) - static_cast<uint64_t>(least_ns)
                               : 0});
  const uint64_t since_ns = read(state.unreachable_since_ns);
  if (since_ns != 0 && (unreachable_since_ns == 0 || since_ns < unreachable_since_ns)) {
    unreachable_since_ns = since_ns;
    for (uint32_t i = 0; i < 2; ++i) {
      const uint64_t half = read(state.next_hop[i]);
      std::memcpy(next_hop + 8 * i, &half, sizeof half);
    }
  }
}

void FlowFigures::add(const FlowFigures& other) {
  chunks += other.chunks;
  bytes += other.bytes;
  retransmitted_chunks += other.retransmitted_chunks;
  extra.parity.symbols += other.extra.parity.symbols;
  extra.parity.decoded_chunks += other.extra.parity.decoded_chunks;
  extra.compression.bytes += other.extra.compression.bytes;
  extra.compression.wire_bytes += other.extra.compression.wire_bytes;
  extra.echoes.add(other.extra.echoes);
  duplicate_chunks += other.duplicate_chunks;
  late_chunks += other.late_chunks;
  crc_errors += other.crc_errors;
  no_room += other.no_room;
  network_lost += other.network_lost;
  bytes_done += other.bytes_done;
  rtt_ns = std::max(rtt_ns, other.rtt_ns);
  last_peer_ns = std::max(last_peer_ns, other.last_peer_ns);
  blocked.add(other.blocked);
  extents.done += other.extents.done;
  extents.wanted += other.extents.wanted;
  credit_extents += other.credit_extents;
  opened_extents += other.opened_extents;
  take_shortest(&rtt_min_ns, other.rtt_min_ns);
  peer_bytes_received += other.peer_bytes_received;
  peer_received_end += other.peer_received_end;
  peer_datagrams += other.peer_datagrams;
  peer_advice_bps += other.peer_advice_bps;
  statuses += other.statuses;
  delays.add(other.delays);
  if (other.unreachable_since_ns != 0 &&
      (unreachable_since_ns == 0 || other.unreachable_since_ns < unreachable_since_ns)) {
    unreachable_since_ns = other.unreachable_since_ns;
    std::memcpy(next_hop, other.next_hop, sizeof next_hop);
  }
}

rate::PathReport FlowFigures::report() const {
  return {.sent = sent(),
          .received_end = peer_received_end,
          .received = peer_datagrams,
          .lost = network_lost,
          .no_room = no_room,
          .crc_errors = crc_errors,
          .statuses = statuses,
          .bytes_received = peer_bytes_received,
          .credit_extents = credit_extents,
          .opened_extents = opened_extents,
          .last_peer_ns = last_peer_ns,
          .advice_bps = peer_advice_bps,
          .rtt_ns = rtt_ns,
          .rtt_min_ns = rtt_min_ns,
          .delay_min_ns = delays.min_ns,
          .delay_spread_ns = delays.spread_ns,
          .delay_known = delays.known};
}

void RateMeter::sample(uint64_t bytes, uint64_t now_ns) {
  samples_.push_back({now_ns, bytes});
  while (samples_.size() > 2 && now_ns - samples_[1].time_ns >= kRateSpanNs) samples_.pop_front();
}

std::optional<double> RateMeter::rate_bps() const {
  if (samples_.size() < 2) return std::nullopt;
  const Sample& first = samples_.front();
  const Sample& last = samples_.back();
  if (last.time_ns <= first.time_ns || last.bytes <= first.bytes) {
    const bool silent = last.time_ns >= first.time_ns + kRateSpanNs;
    return silent ? std::optional(0.0) : std::nullopt;
  }
  return static_cast<double>(last.bytes - first.bytes) * 8e9 /
         static_cast<double>(last.time_ns - first.time_ns);
}

std::string neighbour_wait(const FlowFigures& now, uint64_t now_ns) {
  if (now.unreachable_since_ns == 0 || now_ns < now.unreachable_since_ns + kSilenceNs) return "";
  in6_addr hop;
  std::memcpy(&hop, now.next_hop, sizeof hop);
  if (IN6_IS_ADDR_UNSPECIFIED(&hop)) {
    return "network (no route to the peer: set [port] gateway4 or gateway6; with sockets, the host's routes)";
  }
  const bool ip4 = IN6_IS_ADDR_V4MAPPED(&hop);
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(ip4 ? AF_INET : AF_INET6, now.next_hop + (ip4 ? 12 : 0), text, sizeof text);
  return fmt::format("network (neighbour {} does not answer {})", text, ip4 ? "ARP" : "neighbour discovery");
}

std::string sender_wait(const FlowFigures& before, const FlowFigures& now, uint64_t interval_ns,
                        uint64_t now_ns) {
  if (std::string wait = neighbour_wait(now, now_ns); !wait.empty()) return wait;
  if (now.last_peer_ns != 0 && now_ns > now.last_peer_ns && now_ns - now.last_peer_ns > kSilenceNs) {
    return "network (no status from peer)";
  }
  if (std::string wait = memory_wait(before, now, interval_ns); !wait.empty()) return wait;
  const Blocked blocked = now.blocked.since(before.blocked);
  if (std::max(blocked.holding_ns(), blocked.source_ns) < interval_ns / 2) return "";
  return blocked.source_ns > blocked.holding_ns() ? "source disk" : "peer's disk (credit)";
}

std::string memory_wait(const FlowFigures& before, const FlowFigures& now, uint64_t interval_ns) {
  const Blocked blocked = now.blocked.since(before.blocked);
  const uint64_t window = grown(now.extents.done, now.credit_extents);
  const uint64_t on_its_way = grown(now.extents.done, now.opened_extents);
  const uint64_t enough = now.extents.wanted / kEnoughShare;
  if (blocked.holding_ns() < interval_ns / 2 || blocked.source_ns > blocked.holding_ns()) return "";
  if (blocked.memory_ns > blocked.credit_ns) {
    if (on_its_way == 0)
      return "this node's memory (other sessions hold all buffers: raise [dataplane] memory_mib here)";
    if (on_its_way >= enough) return "";
    return fmt::format(
        "this node's memory (buffers for {} of {} extents that the path takes: raise [dataplane] memory_mib "
        "here)",
        on_its_way, now.extents.wanted);
  }
  if (window >= enough) return "";
  return fmt::format(
      "peer's memory (credit for {} of {} extents that the path takes: raise [dataplane] memory_mib there)",
      window, now.extents.wanted);
}

std::string digest_hex(wire::CrcKind kind, uint64_t digest) {
  if (!wire::checks(kind)) return "";
  return kind == wire::CrcKind::kCrc32c ? fmt::format("{:08x}", digest) : fmt::format("{:016x}", digest);
}

}  // namespace sluice::board
