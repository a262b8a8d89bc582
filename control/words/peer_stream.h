// The control stream to a peer, as an end of a transfer sees it: whether it is up, and how to say something.
//
// Pure. A leg has one (control/leg/control_stream.h). An end refers to it during an attempt and knows no leg.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/words/effects.h"

namespace sluice::transfer {

class PeerStream {
 public:
  virtual LegId leg() const = 0;          // whose flows are meant with effects and events of this peer
  virtual bool up() const = 0;            // the Hellos are exchanged
  virtual uint64_t heard_ns() const = 0;  // when the peer said something last; 0: never
  // Dropped while it is not up: what matters is said again on the next stream.
  virtual void say(Message message, Effects& out) = 0;

 protected:
  ~PeerStream() = default;
};

}  // namespace sluice::transfer
