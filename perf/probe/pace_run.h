// The two ends of sluice-pace: a sender under one policy of the ladder, and a receiver.
//
// One process each, forked, so that each has its own EAL as two nodes have. They share `Shared`,
// and each tells the same time (CLOCK_MONOTONIC) by a clock of its own.
//
// Times are the sender's: a frame leaves when the device has taken the burst it is in, read from the TSC
// behind tx_flush. That instant is what a wire would see; the receiver's arrival times are read once per
// burst and shift whenever its CPU is taken away, so what they say about the queue is given beside, not
// instead.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "dataplane/lane/clock.h"
#include "perf/probe/end.h"
#include "perf/probe/measures.h"

namespace sluice::probe {

struct PaceOptions {
  std::string policy;
  uint64_t rate_bps = 0;
  uint32_t queue_frames = 256;
  EndOptions sender;
  EndOptions receiver;
  bool json = false;

  Pace pace(uint64_t start_ns) const;
};

// Between the two processes.
struct Shared {
  std::atomic<bool> receiver_ready{false};
  std::atomic<bool> sender_ended{false};
  std::atomic<uint64_t> sent{0};  // final with sender_ended
  std::atomic<uint64_t> received{0};
  std::atomic<uint64_t> accepted{0};  // of a virtual queue fed with arrival times
};

struct Sent {
  Sent(const Pace& pace, uint32_t queue_frames) : gaps(pace), queue(pace, queue_frames) {}

  void add(uint64_t now_ns, uint32_t taken) {
    frames += taken;
    gaps.add(now_ns, taken);
    queue.add(now_ns, taken);
  }

  GapMeter gaps;
  VirtualQueue queue;
  uint64_t frames = 0;
  uint64_t duration_ns = 0;
};

// `peer_gone`: the receiver's process has ended.
Result<std::unique_ptr<Sent>> run_sender(const PaceOptions& options, lane::Clock& clock, Shared& shared,
                                         const std::function<bool()>& peer_gone);
Status run_receiver(const PaceOptions& options, lane::Clock& clock, Shared& shared);

}  // namespace sluice::probe
