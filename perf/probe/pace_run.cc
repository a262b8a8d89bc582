// See pace_run.h.
// SPDX-License-Identifier: Apache-2.0
#include "perf/probe/pace_run.h"

#include <sys/prctl.h>

#include <ctime>

#include "dataplane/net/frame.h"
#include "perf/probe/frames.h"

namespace sluice::probe {
namespace {

// The sender spins towards a due time nearer than this; only slot-1s ever waits longer.
constexpr uint64_t kSpinNs = 2'000'000;
constexpr timespec kWaiting{0, 1'000'000};
// The receiver has the whole ring as its patience; asleep it leaves its CPU to the sender's helpers.
constexpr uint32_t kIdleTurnsBeforeSleep = 256;
constexpr timespec kIdle{0, 10'000};
constexpr uint64_t kSilenceNs = 200'000'000;  // after the sender has ended: nothing more comes

template <typename Policy>
void send(net::FrameQueue& queue, const PaceOptions& options, lane::Clock& clock, const Pace& pace,
          const std::atomic<bool>& stop, Sent& sent) {
  const FrameWriter writer(options.sender.frame_bytes);
  Policy policy(pace);
  const uint64_t end_ns = pace.start_ns + static_cast<uint64_t>(options.sender.seconds * 1e9);
  uint64_t now_ns = clock.now_ns();
  while (now_ns < pace.start_ns) now_ns = clock.now_ns();
  while (now_ns < end_ns && !stop.load(std::memory_order_relaxed)) {
    // As dataplane/lane/tx_pump.cc: one reading of the clock for a burst, which the policy limits.
    for (uint32_t n = 0; n < net::kBurst && policy.ready(now_ns) && writer.append(queue); ++n) {
      policy.sent(now_ns);
    }
    const uint32_t offered = queue.tx_pending();
    if (offered > 0) {
      const uint32_t taken = offered - queue.tx_flush();
      now_ns = clock.now_ns();
      sent.add(now_ns, taken);
      continue;
    }
    const uint64_t due_ns = std::min(policy.next_ns(), end_ns);
    if (due_ns > now_ns + kSpinNs) nanosleep(&kWaiting, nullptr);
    now_ns = clock.now_ns();
  }
  sent.gaps.end_burst();
  sent.duration_ns = now_ns - pace.start_ns;
}

using Sender = void (*)(net::FrameQueue&, const PaceOptions&, lane::Clock&, const Pace&,
                        const std::atomic<bool>&, Sent&);

Sender sender_of(const std::string& policy) {
  if (policy == "unpaced") return send<Unpaced>;
  if (policy == "slot-1s") return send<SlotSecond>;
  if (policy == "slot-1ms") return send<SlotMillisecond>;
  if (policy == "history") return send<History>;
  return send<Bucket>;
}

void receive(net::FrameQueue& queue, const PaceOptions& options, lane::Clock& clock, Shared& shared,
             const std::atomic<bool>& stop) {
  prctl(PR_SET_TIMERSLACK, 1);
  VirtualQueue arrivals(options.pace(0), options.queue_frames);
  uint64_t received = 0;
  uint64_t last_ns = clock.now_ns();
  uint32_t idle_turns = 0;
  while (!stop.load(std::memory_order_relaxed)) {
    net::RxFrame frames[net::kBurst];
    net::RxSegmented segmented;
    const uint32_t count = queue.rx(frames, net::kBurst, &segmented);
    uint32_t ours = 0;
    for (uint32_t i = 0; i < count; ++i) ours += is_ours(frames[i]) ? 1 : 0;
    queue.release(frames, count);
    if (ours > 0) {
      last_ns = clock.now_ns();
      arrivals.add(last_ns, ours);
      received += ours;
    }
    if (count > 0) {
      idle_turns = 0;
    } else if (++idle_turns > kIdleTurnsBeforeSleep) {
      const bool ended = shared.sender_ended.load(std::memory_order_acquire);
      if (ended && (received >= shared.sent.load() || clock.now_ns() - last_ns > kSilenceNs)) break;
      nanosleep(&kIdle, nullptr);
    }
  }
  shared.received.store(received);
  shared.accepted.store(arrivals.accepted());
}

}  // namespace

Pace PaceOptions::pace(uint64_t start_ns) const {
  return {
      .rate_bps = rate_bps, .wire_bytes = sender.frame_bytes + net::kWireOverheadBytes, .start_ns = start_ns};
}

Result<std::unique_ptr<Sent>> run_sender(const PaceOptions& options, lane::Clock& clock, Shared& shared,
                                         const std::function<bool()>& peer_gone) {
  auto end = End::open("sluice-pace", options.sender);
  if (!end) return end.error();
  if (Status met = end->wait_for_peer(peer_gone); !met) return met.error();
  while (!shared.receiver_ready.load() && !peer_gone() && !stop_wanted()) nanosleep(&kWaiting, nullptr);
  if (stop_wanted()) return Error{ErrorCode::kCancelled, "stopped before the first frame"};
  // A moment ahead, so that what a policy allocates is there when its time begins.
  constexpr uint64_t kAheadNs = 50'000'000;
  const Pace pace = options.pace(clock.now_ns() + kAheadNs);
  auto sent = std::make_unique<Sent>(pace, options.queue_frames);
  std::atomic<bool> stop{false};
  const Status ran = end->run(
      stop, peer_gone, [&] { sender_of(options.policy)(end->queue(), options, clock, pace, stop, *sent); });
  if (!ran) return ran.error();
  shared.sent.store(sent->frames);
  shared.sender_ended.store(true, std::memory_order_release);
  // The device must stay until its last frames have been taken out of it; the receiver ends by itself.
  while (!peer_gone()) nanosleep(&kWaiting, nullptr);
  return sent;
}

Status run_receiver(const PaceOptions& options, lane::Clock& clock, Shared& shared) {
  auto end = End::open("sluice-pace", options.receiver);
  if (!end) return end.error();
  const auto never = [] { return false; };
  if (Status met = end->wait_for_peer(never); !met) return met;
  std::atomic<bool> stop{false};
  return end->run(stop, never, [&] {
    shared.receiver_ready.store(true);
    receive(end->queue(), options, clock, shared, stop);
  });
}

}  // namespace sluice::probe
