// The message with which each side of a connection begins.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/peer/codec.h"
#include "control/proto/grant_fields.h"
#include "control/proto/lease_fields.h"

namespace sluice::peer {

template <typename Field>
auto list_of(const Field& field) {
  return std::vector<typename Field::value_type>(field.begin(), field.end());
}

inline void put(const transfer::Hello& m, PeerMessage* wire) {
  Hello* to = wire->mutable_hello();
  to->set_protocol_version_min(m.version_min);
  to->set_protocol_version_max(m.version_max);
  to->set_software(m.software);
  to->set_session_id(session_id_bytes(m.session_id));
  to->set_known(m.known);
  for (const uint64_t id : m.flow_ids) to->add_flow_ids(id);
  to->set_ended(m.ended);
  to->set_inquires(m.inquires);
  to->set_paused(m.paused);
  to->set_share(m.share);
  to->set_user(m.user);
  to->set_leg(m.leg);
  to->set_names(m.names);
  to->set_by_map(m.by_map);
  to->set_orders(m.orders);
  to->set_granted(m.granted);
  if (m.grant) put_grant(*m.grant, to->mutable_grant());
  if (m.lease) put_lease(*m.lease, to->mutable_lease());
  to->set_leased(m.leased);
  if (m.move) put_move(*m.move, to->mutable_move());
}

inline transfer::Hello take(const Hello& m) {
  return {.version_min = m.protocol_version_min(),
          .version_max = m.protocol_version_max(),
          .software = m.software(),
          .session_id = session_id_text(m.session_id()),
          .known = m.known(),
          .flow_ids = list_of(m.flow_ids()),
          .ended = m.ended(),
          .inquires = m.inquires(),
          .names = m.names(),
          .by_map = m.by_map(),
          .paused = m.paused(),
          .share = m.share(),
          .user = m.user(),
          .leg = m.leg(),
          .orders = m.orders(),
          .grant = m.has_grant() ? std::optional(grant_of(m.grant())) : std::nullopt,
          .granted = m.granted(),
          .lease = m.has_lease() ? std::optional(lease_of(m.lease())) : std::nullopt,
          .leased = m.leased(),
          .move = m.has_move() ? std::optional(move_of(m.move())) : std::nullopt};
}

}  // namespace sluice::peer
