// A whole transfer under one policy of the pacing ladder, in virtual time: what a queue on the way does not
// hold is sent again, until everything has arrived. FMFT's section 4 (docs/SOURCES.md), which counts what
// arrives at first.
//
// The sender's CPU takes `frame_cpu_ns` for a frame, so that an unpaced one is as fast as that, and kLookNs
// to look whether one may leave. What was lost is known a round trip later, and sent again once everything
// was sent. Pure, one owner.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>

#include "perf/probe/ladder.h"
#include "perf/probe/measures.h"

namespace sluice::probe {

inline constexpr uint64_t kLookNs = 100;

struct WholeOptions {
  Pace pace;  // its rate is that of the policy
  uint64_t link_bps = 0;
  uint32_t queue_frames = 0;  // before the link
  uint64_t rtt_ns = 0;
  uint64_t frame_cpu_ns = 0;
  uint64_t frames = 0;
};

struct Whole {
  uint64_t sent = 0;         // all of them, those that were sent again too
  uint64_t first_pass = 0;   // frames that arrived as they were sent first
  uint64_t duration_ns = 0;  // until the last one was in the queue
};

template <typename Policy>
Whole transfer_whole(const WholeOptions& options) {
  Policy policy(options.pace);
  Pace link = options.pace;
  link.rate_bps = options.link_bps;
  VirtualQueue queue(link, options.queue_frames);
  std::deque<uint64_t> known_lost_at_ns;
  Whole whole;
  uint64_t fresh = 0;
  uint64_t now_ns = options.pace.start_ns;
  while (queue.accepted() < options.frames) {
    const bool first = fresh < options.frames;
    const bool again = !first && known_lost_at_ns.front() <= now_ns;
    if (!(first || again) || !policy.ready(now_ns)) {
      now_ns += kLookNs;
      continue;
    }
    policy.sent(now_ns);
    ++whole.sent;
    const uint64_t before = queue.accepted();
    queue.add(now_ns, 1);
    const bool arrived = queue.accepted() > before;
    if (first) {
      ++fresh;
      whole.first_pass += arrived ? 1 : 0;
    } else {
      known_lost_at_ns.pop_front();
    }
    if (!arrived) known_lost_at_ns.push_back(now_ns + options.rtt_ns);
    now_ns += options.frame_cpu_ns;
  }
  whole.duration_ns = now_ns - options.pace.start_ns;
  return whole;
}

}  // namespace sluice::probe
