// SPDX-License-Identifier: Apache-2.0
#include "control/peer/heartbeat_codec.h"

#include <algorithm>
#include <cmath>

namespace sluice::peer {
namespace {

uint32_t permille_of(double part) { return static_cast<uint32_t>(std::lround(part * 1000)); }
double part_of(uint32_t permille) { return std::min(permille, 1000U) / 1000.0; }

}  // namespace

void put(const transfer::Heartbeat& m, PeerMessage* wire) {
  Heartbeat& to = *wire->mutable_heartbeat();
  if (m.load) {
    to.mutable_load()->set_busy(permille_of(m.load->busy));
    to.mutable_load()->set_reading(permille_of(m.load->reading));
    to.mutable_load()->set_writing(permille_of(m.load->writing));
    to.mutable_load()->set_read_ns(m.load->read_ns);
    to.mutable_load()->set_write_ns(m.load->write_ns);
    to.mutable_load()->set_missed(m.load->missed);
  }
  if (m.bottleneck) {
    to.mutable_bottleneck()->set_cause(static_cast<uint32_t>(m.bottleneck->cause));
    to.mutable_bottleneck()->set_share(permille_of(m.bottleneck->share));
    for (const std::string& line : m.bottleneck->evidence) to.mutable_bottleneck()->add_evidence(line);
  }
  to.set_whole(m.whole);
}

transfer::Heartbeat from_wire(const Heartbeat& m) {
  transfer::Heartbeat to{.whole = m.whole()};
  if (m.has_load()) {
    to.load = {.busy = part_of(m.load().busy()),
               .reading = part_of(m.load().reading()),
               .writing = part_of(m.load().writing()),
               .read_ns = m.load().read_ns(),
               .write_ns = m.load().write_ns(),
               .missed = m.load().missed()};
  }
  if (m.has_bottleneck()) {
    to.bottleneck = {.cause = verdict::cause_of(m.bottleneck().cause()),
                     .share = part_of(m.bottleneck().share()),
                     .evidence = {m.bottleneck().evidence().begin(), m.bottleneck().evidence().end()}};
  }
  return to;
}

}  // namespace sluice::peer
