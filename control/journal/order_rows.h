// The journal keeps who asked for a session, who has ordered it of this node, what this node has ordered of
// others, and where a session went.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/proto/grant_fields.h"
#include "control/proto/journal.pb.h"
#include "control/proto/lease_fields.h"
#include "control/words/records.h"

namespace sluice::journal {

inline void put(const transfer::Granted& from, Granted* to) {
  peer::put_grant(from.grant, to->mutable_grant());
  to->set_issuer(from.issuer);
  to->set_path(from.path);
  to->set_overwrite(from.overwrite);
  to->set_bytes_max(from.bytes_max);
  to->set_end_by_unix_ns(from.end_by_unix_ns);
}

inline void put(const transfer::User& from, User* to) {
  to->set_uid(from.uid);
  to->set_name(from.name);
}

inline transfer::User user_of(const User& from) { return {.uid = from.uid(), .name = from.name()}; }

inline void put(const transfer::Mapped& from, Mapped* to) {
  put(from.user, to->mutable_user());
  to->set_peer_user(from.peer_user);
}

inline transfer::Mapped mapped_of(const Mapped& from) {
  return {.user = user_of(from.user()), .peer_user = from.peer_user()};
}

inline void put(const transfer::Ordered& from, Ordered* to) {
  to->set_destination(from.destination);
  to->set_taken(from.taken);
  to->set_options(from.options);
  to->set_state(from.state);
}

inline transfer::Granted granted_of(const Granted& from) {
  return {.grant = peer::grant_of(from.grant()),
          .issuer = from.issuer(),
          .path = from.path(),
          .overwrite = from.overwrite(),
          .bytes_max = from.bytes_max(),
          .end_by_unix_ns = from.end_by_unix_ns()};
}

inline transfer::Ordered ordered_of(const Ordered& from) {
  return {.destination = from.destination(),
          .taken = from.taken(),
          .options = from.options(),
          .state = from.state()};
}

inline void put(const transfer::Moved& from, Moved* to) {
  peer::put_move(from.move, to->mutable_move());
  to->set_from(from.from);
  to->set_to(from.to);
  to->set_epoch(from.epoch);
}

inline transfer::Moved moved_of(const Moved& from) {
  return {.move = peer::move_of(from.move()), .from = from.from(), .to = from.to(), .epoch = from.epoch()};
}

}  // namespace sluice::journal
