// See engine.h.
// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/engine.h"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>
#include <ctime>

#include "dataplane/lane/clock.h"

namespace sluice::emulator {
namespace {

// Longer than any pause of the link or of a reader that gets its turn; real receivers drop sooner.
constexpr uint64_t kPortPatienceNs = 50'000'000;
constexpr uint32_t kIdleTurnsBeforeSleep = 32;
constexpr uint64_t kSleepNsMax = 50'000;
constexpr uint64_t kQuietNs = 100'000'000;  // after so long without a frame, sleep longer
constexpr uint64_t kSleepNsMaxQuiet = 500'000;
constexpr uint64_t kSleepNsMin = 3'000;  // a shorter sleep is longer than that

}  // namespace

// ---- one direction -----------------------------------------------------------------------------

Direction::Direction(const Setup& setup, const Settings& settings)
    : setup_(setup), path_(settings, setup.seed), line_(setup.store_bytes) {}

void Direction::set(const Settings& settings) {
  path_.set(settings);
  line_.forget_peak();
}

bool Direction::turn(uint64_t now_ns) {
  now_ns_ = now_ns;
  bool busy = receive();
  path_.poll(now_ns, *this);
  busy |= send_due();
  flush();
  return busy;
}

bool Direction::receive() {
  net::RxFrame frames[net::kBurst];
  net::RxSegmented segmented;
  const uint32_t count = setup_.from->rx(frames, net::kBurst, &segmented);
  counters_.oversize += segmented.dropped;
  for (uint32_t i = 0; i < count; ++i) path_.push({frames[i].data, frames[i].length}, now_ns_, *this);
  setup_.from->release(frames, count);
  return count > 0;
}

void Direction::deliver(std::span<const uint8_t> bytes, uint64_t deliver_ns) {
  if (bytes.size() > setup_.frame_bytes_max) {
    ++counters_.dropped_too_long;
    return;
  }
  // What need not wait is copied only once.
  if (deliver_ns <= now_ns_ && line_.empty() && append(bytes)) return;
  if (!line_.add(bytes, deliver_ns)) ++counters_.dropped_store;
}

bool Direction::send_due() {
  bool sent = false;
  while (!line_.empty() && line_.front_ns() <= now_ns_) {
    if (!append(line_.front())) break;
    line_.pop();
    sent = true;
  }
  while (!line_.empty() && line_.front_ns() + kPortPatienceNs < now_ns_) {
    line_.pop();
    ++counters_.dropped_port_full;
  }
  return sent;
}

bool Direction::append(std::span<const uint8_t> bytes) {
  const auto length = static_cast<uint32_t>(bytes.size());
  const auto hand_over = [&] {
    return setup_.to->tx_begin(0, bytes.data(), length, nullptr, false) != nullptr;
  };
  bool taken = hand_over();
  if (!taken) {
    flush();
    taken = hand_over();
  }
  if (taken) counters_.handed_bytes += length;
  return taken;
}

void Direction::flush() {
  const uint32_t before = setup_.to->tx_pending();
  if (before == 0) return;
  const uint32_t not_taken = setup_.to->tx_flush();
  counters_.sent += before - not_taken;
  counters_.dropped_port_down += not_taken - setup_.to->tx_pending();
}

uint64_t Direction::next_due_ns() const {
  return std::min(path_.next_poll_ns(), line_.empty() ? UINT64_MAX : line_.front_ns());
}

// ---- both --------------------------------------------------------------------------------------

Engine::Engine(const std::array<Direction::Setup, kDirections>& setups,
               const std::array<Settings, kDirections>& settings)
    : directions_{Direction(setups[0], settings[0]), Direction(setups[1], settings[1])} {}

void Engine::run() {
  prctl(PR_SET_TIMERSLACK, 1);  // short sleeps must be short
  while (!stopping_.load(std::memory_order_relaxed)) {
    const uint64_t now_ns = lane::monotonic_ns();
    bool busy = serve_visitor(now_ns);
    for (Direction& direction : directions_) busy |= direction.turn(now_ns);
    if (busy) {
      busy_ns_ = now_ns;
      idle_turns_ = 0;
    } else if (++idle_turns_ > kIdleTurnsBeforeSleep) {
      idle(now_ns);
    }
  }
  const std::lock_guard lock(mutex_);
  running_ = false;
  changed_.notify_all();
}

// The nodes at the ends may need this CPU.
void Engine::idle(uint64_t now_ns) {
  uint64_t due_ns = UINT64_MAX;
  for (const Direction& direction : directions_) due_ns = std::min(due_ns, direction.next_due_ns());
  // What is due and was not sent waits for its device.
  const uint64_t most_ns = now_ns - busy_ns_ > kQuietNs ? kSleepNsMaxQuiet : kSleepNsMax;
  const uint64_t sleep_ns = due_ns > now_ns ? std::min(most_ns, due_ns - now_ns) : most_ns;
  if (sleep_ns < kSleepNsMin) {
    sched_yield();
    return;
  }
  const timespec duration{0, static_cast<long>(sleep_ns)};
  nanosleep(&duration, nullptr);
}

bool Engine::serve_visitor(uint64_t now_ns) {
  if (!visited_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  (*visitor_)(now_ns);
  visitor_ = nullptr;
  visited_.store(false);
  changed_.notify_all();
  return true;
}

void Engine::inside(const std::function<void(uint64_t now_ns)>& body) {
  std::unique_lock lock(mutex_);
  if (running_) {
    visitor_ = &body;
    visited_.store(true, std::memory_order_release);
    changed_.wait(lock, [&] { return visitor_ == nullptr || !running_; });
    if (visitor_ == nullptr) return;
    visitor_ = nullptr;
    visited_.store(false);
  }
  body(lane::monotonic_ns());
}

Json counters_json(const Direction& direction, uint64_t now_ns) {
  const PathCounters& path = direction.path().counters();
  const Direction::Counters& ends = direction.counters();
  Json json;
  json["in"] = path.in;
  json["in_bytes"] = path.in_bytes;
  json["out"] = ends.sent;
  json["out_bytes"] = ends.handed_bytes;
  json["dropped"] = path.dropped() + ends.dropped();
  json["inside"] = path.held + direction.inside();
  json["duplicated"] = path.duplicated;
  json["held_back"] = path.held_back;
  json["overtaking"] = path.overtaking;
  json["queue_bytes"] = direction.path().queue_bytes(now_ns);
  json["queue_bytes_peak"] = path.queue_bytes_peak;
  json["store_bytes_peak"] = direction.store_bytes_peak();
  json["oversize"] = ends.oversize;
  json["drops"] = {{"blackhole", path.dropped_blackhole},
                   {"queue", path.dropped_queue},
                   {"loss_packets", path.dropped_loss[kLossPackets]},
                   {"loss_every_nth", path.dropped_loss[kLossEveryNth]},
                   {"loss_burst", path.dropped_loss[kLossBurst]},
                   {"loss_length", path.dropped_loss[kLossLength]},
                   {"loss_probability", path.dropped_loss[kLossProbability]},
                   {"store", ends.dropped_store},
                   {"too_long", ends.dropped_too_long},
                   {"port_full", ends.dropped_port_full},
                   {"port_down", ends.dropped_port_down}};
  json["corrupted"] = {{"bits", path.corrupted[kCorruptBits]},
                       {"bits_repaired", path.corrupted[kCorruptBitsRepaired]},
                       {"swap_words", path.corrupted[kCorruptSwapWords]},
                       {"truncate", path.corrupted[kCorruptTruncate]},
                       {"forge", path.corrupted[kCorruptForge]}};
  return json;
}

}  // namespace sluice::emulator
