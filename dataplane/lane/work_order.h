// The kinds of work that a sender has, in the order in which they are asked for the next datagram.
//
// One thread: the worker; hot. An order is a list of types, so that the compiler calls each kind directly and
// inlines it. A kind tells with Sent whether it used the turn; the first that does not say kNothing ends it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::lane {

// kNoRoom: it has something to send, and the device takes nothing.
enum class Sent : uint8_t { kYes, kNothing, kNoRoom };

// `kSend`: the member of the sender that sends one datagram of this kind. `kWaits`: the member of the flow
// that tells whether the flow has any to send.
template <auto kSend, auto kWaits>
struct Kind {
  template <typename Sender, typename Flow>
  static Sent send(Sender& sender, Flow& flow, uint64_t leaves_ns) {
    return (sender.*kSend)(flow, leaves_ns);
  }
  template <typename Flow>
  static bool waits(const Flow& flow) {
    return (flow.*kWaits)();
  }
};

template <typename... Kinds>
struct InOrder {
  template <typename Sender, typename Flow>
  static Sent send(Sender& sender, Flow& flow, uint64_t leaves_ns) {
    Sent sent = Sent::kNothing;
    (void)(... || ((sent = Kinds::send(sender, flow, leaves_ns)) != Sent::kNothing));
    return sent;
  }
  template <typename Flow>
  static bool waits(const Flow& flow) {
    return (... || Kinds::waits(flow));
  }
};

// Two kinds, of which each goes first every other time. `kTurn` is the member of the flow that remembers it.
template <auto kTurn, typename A, typename B>
struct InTurns {
  template <typename Sender, typename Flow>
  static Sent send(Sender& sender, Flow& flow, uint64_t leaves_ns) {
    flow.*kTurn = !(flow.*kTurn);
    return flow.*kTurn ? InOrder<A, B>::send(sender, flow, leaves_ns)
                       : InOrder<B, A>::send(sender, flow, leaves_ns);
  }
  template <typename Flow>
  static bool waits(const Flow& flow) {
    return A::waits(flow) || B::waits(flow);
  }
};

}  // namespace sluice::lane
