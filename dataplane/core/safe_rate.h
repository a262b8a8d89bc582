// The rate that a dataplane allows itself when nobody tells it anything: down to a crawl, then nothing.
//
// Pure. Control sets the rate; this only ever lowers it: to 1 % when the peer has reported nothing for
// max(4 RTT, 200 ms) or control nothing for 10 s, to nothing when the peer is silent for 10 s.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

namespace sluice {

inline constexpr uint64_t kPeerSilentNsMin = 200'000'000;
inline constexpr uint64_t kPeerGoneNs = 10'000'000'000;
inline constexpr uint64_t kControlSilentNs = 10'000'000'000;

// `peer_silent_ns`, `control_silent_ns`: time since last heard.
inline uint64_t safe_rate_bps(uint64_t rate_bps, uint64_t peer_silent_ns, uint64_t control_silent_ns,
                              uint64_t rtt_ns) {
  if (peer_silent_ns > kPeerGoneNs) return 0;
  if (peer_silent_ns > std::max(4 * rtt_ns, kPeerSilentNsMin)) return rate_bps / 100;
  if (control_silent_ns > kControlSilentNs) return rate_bps / 100;
  return rate_bps;
}

}  // namespace sluice
