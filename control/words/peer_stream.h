// What an end of a transfer knows of the way to a peer: whether it is there, and that words go over it.
//
// Pure. A leg has one (control/leg/control_stream.h); an end keeps those of its attempts and knows no leg.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "control/words/effects.h"

namespace sluice::transfer {

class PeerStream {
 public:
  virtual LegId leg() const = 0;  // whose flows are meant with effects and events of this peer
  virtual bool up() const = 0;    // the Hellos are exchanged
  // Dropped while it is not up: what matters is said again on the next stream.
  virtual void say(Message message, Effects& out) = 0;

 protected:
  ~PeerStream() = default;
};

}  // namespace sluice::transfer
