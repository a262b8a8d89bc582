// SPDX-License-Identifier: Apache-2.0
#include "control/rate/path_size.h"

#include <algorithm>

#include "dataplane/core/wire.h"

namespace sluice::rate {
namespace {

constexpr uint32_t kUdpBytes = 8;
// Of IP datagrams: tunnels and DSL below Ethernet's 1500, then larger links.
constexpr uint32_t kLadder[] = {1280, 1380, 1420, 1450, 1476, 1492, 1500, 2000, 3000, 4352, 6000, 8000};
// Fewer than a quarter arrive: that is no loss that a law was made for.
constexpr uint64_t kArriveShare = 4;
// A size is carried that comes at least a third as often as the shortest.
constexpr uint64_t kCarriedShare = 3;
// What is known as exactly as this is not looked for any closer.
constexpr uint32_t kCloseShare = 16;
constexpr uint32_t kBetweenSteps = 10;
constexpr uint64_t kSettleNs = 100'000'000;
constexpr uint64_t kSettleUnknownNs = 500'000'000;  // while the round trip is not known

uint64_t grown(uint64_t from, uint64_t to) { return to - std::min(from, to); }

uint64_t came_of(const SizeSearch::Reading& reading, uint32_t chunk_bytes) {
  for (const uint64_t packed : reading.padded_came) {
    if (packed >> 32 == chunk_bytes) return packed & UINT32_MAX;
  }
  return 0;
}

}  // namespace

std::string_view size_reason_name(SizeReason reason) {
  return reason == SizeReason::kPath ? "path" : "agreed";
}

uint32_t datagram_overhead_bytes(bool ip4) {
  return static_cast<uint32_t>(wire::kHeaderBytes) + kUdpBytes + (ip4 ? 20 : 40);
}

void PathSizes::set(const std::string& peer, bool ip4, uint32_t chunk_bytes, uint64_t now_ns) {
  std::erase_if(known_, [&](const auto& each) { return each.second.until_ns <= now_ns; });
  known_[{peer, ip4}] = {.chunk_bytes = chunk_bytes, .until_ns = now_ns + kKeptNs};
}

uint32_t PathSizes::chunk_bytes(const std::string& peer, bool ip4, uint64_t now_ns) const {
  const auto at = known_.find({peer, ip4});
  return at == known_.end() || at->second.until_ns <= now_ns ? 0 : at->second.chunk_bytes;
}

SizeSearch::SizeSearch(uint32_t chunk_bytes, bool ip4)
    : chunk_bytes_(chunk_bytes), overhead_bytes_(datagram_overhead_bytes(ip4)) {}

std::vector<uint32_t> SizeSearch::ladder() const {
  std::vector<uint32_t> sizes;
  for (const uint32_t datagram_bytes : kLadder) {
    const uint32_t bytes = (datagram_bytes - overhead_bytes_) / wire::kChunkBytesStep * wire::kChunkBytesStep;
    if (bytes < chunk_bytes_) sizes.push_back(bytes);
  }
  sizes.push_back(chunk_bytes_);
  return sizes;
}

std::vector<SizeSearch::Ask> SizeSearch::step(const Reading& reading, uint64_t now_ns) {
  if (found_ || chunk_bytes_ + overhead_bytes_ <= kLeastDatagramBytes) return {};
  if (phase_ != Phase::kWatching) {
    if (!settled(reading, now_ns)) return {};
    return judge(reading, now_ns);
  }
  watch(reading, now_ns);
  if (!suspects_ || now_ns < next_search_ns_) return {};
  return search(Phase::kLadder, ladder(), reading, now_ns);
}

void SizeSearch::watch(const Reading& reading, uint64_t now_ns) {
  if (last_ns_ == 0) {
    before_ = last_ = reading;
    last_ns_ = now_ns;
  }
  if (now_ns - last_ns_ < std::max(kWindowNs, 4 * reading.rtt_ns)) return;
  const uint64_t left = grown(before_.sent, last_.sent);
  if (left >= kWindowSent) {
    const bool answers = reading.statuses > last_.statuses;
    suspects_ = answers && grown(before_.arrived, reading.arrived) * kArriveShare < left;
    if (answers && !suspects_) pause_ns_ = kPauseNs;
    before_ = last_;
  }
  last_ = reading;
  last_ns_ = now_ns;
}

std::vector<SizeSearch::Ask> SizeSearch::search(Phase phase, std::vector<uint32_t> sizes,
                                                const Reading& reading, uint64_t now_ns) {
  phase_ = phase;
  steps_.clear();
  std::vector<Ask> asks;
  for (const uint32_t bytes : sizes) {
    steps_.push_back({.chunk_bytes = bytes, .before = came_of(reading, bytes), .came = 0});
    asks.push_back({.chunk_bytes = bytes, .count = kEach});
  }
  // The longest first: where probes are lost from some moment on, that is not held against them.
  std::reverse(asks.begin(), asks.end());
  sent_before_ = reading.padded_sent;
  asked_ = kEach * steps_.size();
  asked_ns_ = changed_ns_ = now_ns;
  return asks;
}

// All have left, and no more of them arrive.
bool SizeSearch::settled(const Reading& reading, uint64_t now_ns) {
  for (Step& step : steps_) {
    const uint64_t now = came_of(reading, step.chunk_bytes);
    // The peer forgets sizes that were not asked for lately, and counts from one then.
    const uint64_t came = now >= step.before ? now - step.before : now;
    if (came <= step.came) continue;
    step.came = came;
    changed_ns_ = now_ns;
  }
  if (grown(sent_before_, reading.padded_sent) < asked_) {
    changed_ns_ = now_ns;
    return now_ns - asked_ns_ >= kUnsentNs;
  }
  const uint64_t wait_ns = reading.rtt_ns == 0 ? kSettleUnknownNs : std::max(kSettleNs, 2 * reading.rtt_ns);
  return now_ns - changed_ns_ >= wait_ns;
}

void SizeSearch::give_up(const Reading& reading, uint64_t now_ns) {
  phase_ = Phase::kWatching;
  suspects_ = false;
  before_ = last_ = reading;
  last_ns_ = now_ns;
  next_search_ns_ = now_ns + pause_ns_;
  pause_ns_ = std::min(2 * pause_ns_, kPauseMaxNs);
}

std::vector<SizeSearch::Ask> SizeSearch::judge(const Reading& reading, uint64_t now_ns) {
  const uint64_t shortest = steps_.front().came;
  size_t longest = steps_.size();
  for (size_t i = steps_.size(); shortest > 0 && longest == steps_.size() && i > 0; --i) {
    if (steps_[i - 1].came * kCarriedShare >= shortest) longest = i - 1;
  }
  if (phase_ == Phase::kBetween) {
    found_ = steps_[longest == steps_.size() ? 0 : longest].chunk_bytes;
    return {};
  }
  // Nothing came: the peer does not count such probes, or nothing at all arrives. Or the longest came.
  if (longest + 1 >= steps_.size()) {
    give_up(reading, now_ns);
    return {};
  }
  const uint32_t carried = steps_[longest].chunk_bytes;
  const uint32_t room = steps_[longest + 1].chunk_bytes - carried;
  if (room <= carried / kCloseShare) {
    found_ = carried;
    return {};
  }
  std::vector<uint32_t> sizes;
  for (uint32_t i = 0; i < kBetweenSteps; ++i) {
    const uint32_t bytes = carried + room * i / kBetweenSteps;
    sizes.push_back(bytes / wire::kChunkBytesStep * wire::kChunkBytesStep);
  }
  return search(Phase::kBetween, std::move(sizes), reading, now_ns);
}

}  // namespace sluice::rate
