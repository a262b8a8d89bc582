// Echoes at the node that sends them (docs/WIRE.md 1.13): they leave before any data, within the paced rate,
// and what comes back is compared with what left.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "dataplane/lane/tx_flow.h"

namespace sluice::lane {
namespace {

// Events of one flow: whoever damages more than that is known by the counters.
constexpr uint64_t kFaultEventsMax = 4096;

uint64_t word_at(std::span<const uint8_t> bytes, size_t at) {
  uint64_t word = 0;
  std::memcpy(&word, &bytes[at], std::min(sizeof word, bytes.size() - at));
  return word;
}

uint32_t bytes_that_differ(uint64_t a, uint64_t b) {
  uint32_t differ = 0;
  for (uint64_t left = a ^ b; left != 0; left >>= 8) differ += (left & 0xFF) != 0 ? 1 : 0;
  return differ;
}

}  // namespace

void TxSide::look_at_echoes(Flow& flow, uint64_t now_ns) {
  if (flow.config.echoes == 0) return;
  flow.echoes.look(now_ns);
  set(flow.slot.state.echoes_over, flow.echoes.over() ? 1 : 0);
}

Sent TxSide::send_echo(Flow& flow, uint64_t leaves_ns) {
  if (!flow.echoes.has_unsent()) return Sent::kNothing;
  const uint32_t number = flow.echoes.next();
  const uint32_t bytes = flow.echoes.bytes();
  const wire::Header header{.type = wire::Type::kEcho,
                            .flow_id = flow.config.flow_id,
                            .tx_seq = number,
                            .send_time_ns = send_time_ns(flow, leaves_ns),
                            .length = bytes,
                            .done_seen = flow.peer.done.seen(),
                            .statuses_heard = flow.peer.statuses_heard};
  const std::span<uint8_t> payload(resources_.scratch.sealed.data(), bytes);
  flow.echoes.fill(number, payload);
  uint64_t ignored = 0;
  if (!flow.channel.send(header, payload, nullptr, leaves_ns, &ignored)) return Sent::kNoRoom;
  flow.echoes.sent(leaves_ns, flow.peer.round_trip.smoothed_ns());
  flow.pacing.pacer.sent(leaves_ns, flow.channel.wire_bytes(bytes));
  add(flow.slot.state.echoes, 1);
  return Sent::kYes;
}

void TxSide::on_echo(const net::RxDatagram& datagram, const wire::Header& h, uint64_t now_ns) {
  Flow* const flow = match(datagram, h.flow_id, now_ns);
  if (flow == nullptr || flow->closing || !flow->channel.is_way_of(datagram))
    return resources_.count(Counter::rx_drop_unknown_flow);
  const EchoRun::Came how = flow->echoes.is_new(h.tx_seq);
  if (how == EchoRun::Came::kNeverSent || h.length != flow->echoes.bytes())
    return resources_.count(Counter::rx_drop_echo);
  const seal::Opened opened = flow->channel.seal().open(h, datagram.payload, nullptr);
  if (!opened.good()) {
    return resources_.count(opened.outcome() == seal::Outcome::kBadEpoch ? Counter::rx_drop_bad_key_epoch
                                                                         : Counter::rx_drop_forged);
  }
  flow->channel.heard(now_ns);
  if (how == EchoRun::Came::kAgain) {
    add(flow->slot.state.echo_copies, 1);
    return resources_.count(Counter::rx_drop_replayed);
  }
  resources_.count(Counter::rx_echoes);
  flow->echoes.came(h.tx_seq);
  compare_echo(*flow, h.tx_seq, datagram.payload.subspan(wire::kHeaderBytes));
  add(flow->slot.state.echoes_came, 1);
}

void TxSide::compare_echo(Flow& flow, uint64_t number, std::span<const uint8_t> came) {
  const std::span<uint8_t> sent(resources_.scratch.sealed.data(), came.size());
  flow.echoes.fill(number, sent);
  if (std::memcmp(sent.data(), came.data(), came.size()) == 0) return;
  board::FlowState& state = flow.slot.state;
  add(state.echoes_wrong, 1);
  for (size_t at = 0; at < came.size(); at += sizeof(uint64_t)) {
    const uint64_t left = word_at(sent, at);
    const uint64_t back = word_at(came, at);
    if (left == back) continue;
    add(state.echo_bytes_wrong, bytes_that_differ(left, back));
    if (flow.echo_fault_events == kFaultEventsMax || !resources_.has_event_room()) continue;
    ++flow.echo_fault_events;
    resources_.emit({.kind = board::EventKind::kEchoFault,
                     .flow = flow.index,
                     .object = static_cast<uint32_t>(number),
                     .offset = at,
                     .length = std::min(sizeof(uint64_t), came.size() - at),
                     .digest = left,
                     .value = back});
  }
}

}  // namespace sluice::lane
