// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/streams.h"

#include <algorithm>

namespace sluice::sim {
namespace {

constexpr uint64_t kGivesUpNs = 5'000'000'000;  // a call, runtime/leg_stream.h
constexpr uint64_t kRepeatedNs = 200'000'000;   // what TCP gets no answer to

}  // namespace

Streams::Streams(const Plan& plan, Scheduler& scheduler, Trace& trace, Ends ends)
    : plan_(plan), scheduler_(scheduler), trace_(trace), ends_(std::move(ends)), random_(plan.seed, 7) {}

uint64_t Streams::far_ns(uint32_t one, uint32_t other) const {
  return plan_.stream_latency_ns + plan_.stream_far_ns[one] + plan_.stream_far_ns[other];
}

uint64_t Streams::latency_ns(uint32_t one, uint32_t other) {
  const uint64_t jitter_ns = healed_ ? 0 : plan_.stream_jitter_ns;
  return far_ns(one, other) + (jitter_ns > 0 ? random_.below(jitter_ns) : 0);
}

uint64_t Streams::rtt_ns(Id id) const {
  const auto at = connections_.find(id);
  return at == connections_.end() ? 0 : 2 * far_ns(at->second.caller, at->second.called);
}

uint32_t Streams::caller(Id id) const {
  const auto at = connections_.find(id);
  return at == connections_.end() ? kSource : at->second.caller;
}

Streams::Id Streams::call(uint32_t node, uint32_t to, std::vector<transfer::Message> words) {
  const Id id = next_++;
  connections_[id] = {.caller = node, .called = to};
  connections_[id].open[node] = true;
  scheduler_.after(3 * latency_ns(node, to), [this, node, to, id, said = std::move(words)] {
    const auto at = connections_.find(id);
    if (at == connections_.end() || !at->second.open[node]) return;
    const bool open = ends_.alive(to) && !at->second.cut;
    at->second.open[to] = open;
    at->second.arrives_ns.fill(scheduler_.now_ns());
    trace_.add(scheduler_.now_ns(), node, open ? "connected" : "not connected", id);
    if (!open) {
      connections_.erase(at);
      return ends_.call_ended(node, id, false, false);
    }
    at->second.said = true;
    for (const transfer::Message& word : said) send(node, id, word);
    take(node, id);
  });
  return id;
}

bool Streams::said(Id id) const {
  const auto at = connections_.find(id);
  return at != connections_.end() && at->second.said;
}

// The caller hears that its call is taken a round trip after it knows the other one, before anything else.
void Streams::take(uint32_t caller, Id id) {
  Connection& connection = connections_.at(id);
  const uint64_t taken_ns = scheduler_.now_ns() + 2 * latency_ns(caller, connection.called);
  connection.arrives_ns[connection.called] = taken_ns;
  scheduler_.at(taken_ns, [this, caller, id] {
    const auto at = connections_.find(id);
    if (at == connections_.end() || !at->second.open[caller]) return;
    if (at->second.cut) return miss(caller, id, scheduler_.now_ns() + kGivesUpNs);
    at->second.taken = true;
    ends_.call_ended(caller, id, true, true);
  });
}

// Of a machine that is gone nobody hears. One that is back says that it knows of no such connection, as soon
// as the caller's words are repeated.
void Streams::miss(uint32_t caller, Id id, uint64_t until_ns) {
  const auto at = connections_.find(id);
  if (at == connections_.end() || !at->second.open[caller]) return;
  if (ends_.alive(at->second.called) || scheduler_.now_ns() >= until_ns) return end(caller, id);
  scheduler_.after(kRepeatedNs, [this, caller, id, until_ns] { miss(caller, id, until_ns); });
}

void Streams::send(uint32_t node, Id id, transfer::Message message) {
  const auto at = connections_.find(id);
  if (at == connections_.end() || !at->second.open[node]) return;
  trace_.add(scheduler_.now_ns(), node, message_name(message).data(), id);
  const uint32_t to = at->second.other(node);
  if (!at->second.open[to] && ends_.alive(to)) {  // a machine that was away knows of no connection
    scheduler_.after(latency_ns(node, to), [this, node, id] { end(node, id); });
    return;
  }
  uint64_t& arrives = at->second.arrives_ns[node];
  arrives = std::max(arrives, scheduler_.now_ns() + latency_ns(node, to));
  scheduler_.at(arrives, [this, id, to, m = std::move(message)] {
    const auto found = connections_.find(id);
    if (found == connections_.end() || found->second.cut || !found->second.open[to]) return;
    if (ends_.alive(to)) ends_.message(to, id, m);
  });
}

std::optional<transfer::FlowSecret> Streams::export_secret(uint32_t node, Id id,
                                                           std::span<const uint8_t> context) const {
  const auto at = connections_.find(id);
  if (at == connections_.end() || !at->second.open[node]) return std::nullopt;
  uint64_t state = mix(plan_.seed ^ mix(id));
  for (const uint8_t byte : context) state = mix(state ^ byte);
  transfer::FlowSecret secret;
  for (uint8_t& byte : secret.bytes) byte = static_cast<uint8_t>(state = mix(state));
  return secret;
}

// This end of the connection is over; when both are, it is forgotten.
void Streams::end(uint32_t node, Id id) {
  const auto at = connections_.find(id);
  if (at == connections_.end() || !at->second.open[node]) return;
  at->second.open[node] = false;
  const bool called = node == at->second.caller && !at->second.taken;
  if (!at->second.open[at->second.other(node)]) connections_.erase(at);
  if (!ends_.alive(node)) return;
  if (called) return ends_.call_ended(node, id, false, true);
  ends_.ended(node, id);
}

void Streams::hang_up(uint32_t node, Id id) {
  const auto at = connections_.find(id);
  if (at == connections_.end() || !at->second.open[node]) return;
  at->second.open[node] = false;
  const uint32_t other = at->second.other(node);
  if (!at->second.open[other]) {
    connections_.erase(at);
    return;
  }
  const uint64_t arrives =
      std::max(at->second.arrives_ns[node], scheduler_.now_ns() + latency_ns(node, other));
  scheduler_.at(arrives, [this, id, other] { end(other, id); });
}

void Streams::cut() {
  disturbed_ns_ = scheduler_.now_ns();
  for (auto& [id, connection] : connections_) {
    if (connection.cut) continue;
    connection.cut = true;
    ++cuts_;
    trace_.add(scheduler_.now_ns(), kSource, "cut", id);
    for (const uint32_t node :
         {std::min(connection.caller, connection.called), std::max(connection.caller, connection.called)}) {
      const uint64_t notice_ns = plan_.cut_notice_ns > 0 ? random_.below(plan_.cut_notice_ns) : 0;
      scheduler_.after(1000 + notice_ns, [this, node, id] { end(node, id); });
    }
  }
}

// What it had said may be lost with it. Of a machine nobody hears, until it is back or missed.
void Streams::died(uint32_t node, bool silently) {
  for (auto at = connections_.begin(); at != connections_.end();) {
    auto& [id, connection] = *at++;
    if (!connection.open[node]) continue;
    if (silently || random_.flip()) connection.cut = true;
    if (!silently) {
      hang_up(node, id);
      continue;
    }
    connection.open[node] = false;
    if (!connection.open[connection.other(node)]) connections_.erase(id);
  }
}

}  // namespace sluice::sim
