// Echoes at the node that reflects them (docs/WIRE.md 1.13): one for one, each number once, as many as were
// agreed upon, and only to where the flow's peer is.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/lane/rx_flow.h"

namespace sluice::lane {

void RxSide::on_echo(const net::RxDatagram& datagram, const wire::Header& h, uint64_t now_ns) {
  Flow* const flow = match(datagram, h, now_ns);
  if (flow == nullptr) return resources_.count(Counter::rx_drop_unknown_flow);
  if (h.tx_seq >= flow->config.echoes || h.length > flow->config.chunk_bytes)
    return resources_.count(Counter::rx_drop_echo);
  // No number is answered twice: a nonce of the way back comes once.
  if (flow->is_copy(h)) return resources_.count(Counter::rx_drop_replayed);
  const seal::Opened opened = flow->channel.seal().open(h, datagram.payload, nullptr);
  if (!opened.good()) return count_unopened(*flow, h, opened.outcome());
  flow->echo_window.mark(h.tx_seq);
  flow->channel.heard(now_ns);
  resources_.count(Counter::rx_echoes);
  note_peer(*flow, h, false, now_ns);
  const wire::Header answer{.type = wire::Type::kEcho,
                            .flags = wire::kFlagReflected,
                            .flow_id = h.flow_id,
                            .tx_seq = h.tx_seq,
                            .send_time_ns = now_ns,
                            .length = h.length};
  uint64_t ignored = 0;
  if (!flow->channel.ready(now_ns, flow->slot.state) ||
      !flow->channel.send(answer, datagram.payload.subspan(wire::kHeaderBytes), nullptr, 0, &ignored))
    return resources_.count(Counter::echoes_unsent);
  add(flow->slot.state.echoes, 1);
}

}  // namespace sluice::lane
