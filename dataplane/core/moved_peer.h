// Whether a datagram from another address than the peer's is the peer's own: a NAT on its way has given it
// another one (docs/WIRE.md 1.10).
//
// Pure. Datagrams are not authenticated, so an address is never given up because of what one says of itself:
// the known one must have been silent, and the datagram must know what only somebody knows who received and
// sent on this flow shortly before. A copy that is sent again from elsewhere is too old by the time that the
// silence has lasted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice {

// For so long nothing has come from the address that is known.
inline constexpr uint64_t kMovedSilenceNs = 1'000'000'000;
// Within so much a datagram must be as old as it says; less than the silence.
inline constexpr uint64_t kMovedSlackNs = 500'000'000;

// What a receiver of data knows of its sender, by the last datagram that it took.
struct KnownSender {
  uint64_t send_time_ns = 0;  // by the sender's clock; 0: nothing has come yet
  uint64_t arrival_ns = 0;    // by ours
  uint32_t statuses_heard = 0;
  uint64_t statuses_sent = 0;
  uint64_t done_known = 0;  // completed extents: those that the sender has echoed, and all
  uint64_t done_end = 0;
};
// What a datagram says of its sender.
struct SaidOfSender {
  uint64_t send_time_ns = 0;
  uint32_t statuses_heard = 0;
  uint32_t done_seen = 0;
};

inline bool is_same_sender(const KnownSender& known, const SaidOfSender& said, uint64_t now_ns) {
  if (known.send_time_ns == 0) return true;
  if (said.send_time_ns <= known.send_time_ns) return false;
  const uint64_t there_ns = said.send_time_ns - known.send_time_ns;
  const uint64_t here_ns = now_ns - known.arrival_ns;
  if ((there_ns > here_ns ? there_ns - here_ns : here_ns - there_ns) > kMovedSlackNs) return false;
  // Both are modulo 2^32, and only grow.
  const uint32_t heard = said.statuses_heard - known.statuses_heard;
  const uint32_t seen = said.done_seen - static_cast<uint32_t>(known.done_known);
  return heard <= static_cast<uint32_t>(known.statuses_sent) - known.statuses_heard &&
         seen <= known.done_end - known.done_known;
}

// What a sender knows of the receiver.
struct KnownReceiver {
  uint64_t echo_ns = 0;  // the newest send_time that it has echoed; 0: none yet
  uint64_t sent_ns = 0;  // when something was sent last
  uint64_t rtt_ns = 0;
};
// What a status says: the newest datagram that it knows, and how long that has been there.
struct SaidOfReceiver {
  uint64_t echo_ns = 0;
  uint64_t hold_ns = 0;
};

inline bool is_same_receiver(const KnownReceiver& known, const SaidOfReceiver& said, uint64_t now_ns) {
  if (known.echo_ns == 0) return true;
  if (said.echo_ns < known.echo_ns || said.echo_ns > known.sent_ns) return false;
  const uint64_t age_ns = now_ns - said.echo_ns;
  return said.hold_ns <= age_ns && age_ns - said.hold_ns <= known.rtt_ns + kMovedSlackNs;
}

}  // namespace sluice
