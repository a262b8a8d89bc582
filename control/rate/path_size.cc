// SPDX-License-Identifier: Apache-2.0
#include "control/rate/path_size.h"

#include <algorithm>
#include <cmath>

#include "dataplane/base/grown.h"
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

using base::grown;

uint64_t came_of(const LaneReading& reading, uint32_t chunk_bytes) {
  for (const uint64_t packed : reading.padded_came) {
    if (packed >> 32 == chunk_bytes) return packed & UINT32_MAX;
  }
  return 0;
}

}  // namespace

std::string_view size_reason_name(SizeReason reason) {
  constexpr std::string_view kNames[] = {"agreed", "path", "loss"};
  return kNames[static_cast<size_t>(reason)];
}

uint32_t datagram_overhead_bytes(bool ip4) {
  return static_cast<uint32_t>(wire::kHeaderBytes) + kUdpBytes + (ip4 ? 20 : 40);
}

template <typename What>
void PathSizes::keep(Memory<What>& memory, const std::string& peer, bool ip4, What what, uint64_t now_ns) {
  std::erase_if(memory, [&](const auto& each) { return each.second.until_ns <= now_ns; });
  memory[{peer, ip4}] = {.what = std::move(what), .until_ns = now_ns + kKeptNs};
}

template <typename What>
const What* PathSizes::find(const Memory<What>& memory, const std::string& peer, bool ip4, uint64_t now_ns) {
  const auto at = memory.find({peer, ip4});
  return at == memory.end() || at->second.until_ns <= now_ns ? nullptr : &at->second.what;
}

void PathSizes::set(const std::string& peer, bool ip4, uint32_t chunk_bytes, uint64_t now_ns) {
  keep(carried_, peer, ip4, chunk_bytes, now_ns);
}

uint32_t PathSizes::chunk_bytes(const std::string& peer, bool ip4, uint64_t now_ns) const {
  const uint32_t* const carried = find(carried_, peer, ip4, now_ns);
  return carried == nullptr ? 0 : *carried;
}

void PathSizes::set_measured(const std::string& peer, bool ip4, SizeCurve curve, uint64_t now_ns) {
  keep(measured_, peer, ip4, std::move(curve), now_ns);
}

const SizeCurve* PathSizes::measured(const std::string& peer, bool ip4, uint64_t now_ns) const {
  return find(measured_, peer, ip4, now_ns);
}

// ---- rounds ------------------------------------------------------------------------------------

std::vector<SizeAsk> SizeRound::ask(const std::vector<uint32_t>& sizes, uint32_t each,
                                    const LaneReading& reading, uint64_t now_ns) {
  samples_.clear();
  before_.clear();
  std::vector<SizeAsk> asks;
  for (const uint32_t bytes : sizes) {
    samples_.push_back({.chunk_bytes = bytes, .sent = each, .arrived = 0});
    before_.push_back(came_of(reading, bytes));
    asks.push_back({.chunk_bytes = bytes, .count = each});
  }
  // The longest first: where probes are lost from some moment on, that is not held against them.
  std::reverse(asks.begin(), asks.end());
  sent_before_ = sent_ = reading.padded_sent;
  asked_ = uint64_t{each} * sizes.size();
  asked_ns_ = changed_ns_ = sent_ns_ = now_ns;
  return asks;
}

// All have left, and no more of them arrive.
bool SizeRound::settled(const LaneReading& reading, uint64_t now_ns) {
  for (size_t i = 0; i < samples_.size(); ++i) {
    const uint64_t now = came_of(reading, samples_[i].chunk_bytes);
    // The peer forgets sizes that were not asked for lately, and counts from one then.
    const uint64_t came = now >= before_[i] ? now - before_[i] : now;
    if (came <= samples_[i].arrived) continue;
    samples_[i].arrived = came;
    changed_ns_ = now_ns;
  }
  if (std::exchange(sent_, std::max(sent_, reading.padded_sent)) < reading.padded_sent) sent_ns_ = now_ns;
  if (!all_sent()) {
    changed_ns_ = now_ns;
    return now_ns - asked_ns_ >= kUnsentNs;
  }
  const uint64_t wait_ns = reading.rtt_ns == 0 ? kSettleUnknownNs : std::max(kSettleNs, 2 * reading.rtt_ns);
  return now_ns - changed_ns_ >= wait_ns;
}

// ---- what the path carries ---------------------------------------------------------------------

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

std::vector<SizeAsk> SizeSearch::step(const LaneReading& reading, uint64_t now_ns) {
  if (found_ || chunk_bytes_ + overhead_bytes_ <= kLeastDatagramBytes) return {};
  if (searching()) {
    // A lane that loses all that it sends is slowed down to next to nothing. Few probes decide then.
    const bool settled = round_.settled(reading, now_ns);
    if (!settled && !round_.drags_on(now_ns)) return {};
    return judge(reading, settled, now_ns);
  }
  watch(reading, now_ns);
  if (!suspects_ || now_ns < next_search_ns_) return {};
  return search(Phase::kLadder, ladder(), reading, now_ns);
}

void SizeSearch::watch(const LaneReading& reading, uint64_t now_ns) {
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

std::vector<SizeAsk> SizeSearch::search(Phase phase, const std::vector<uint32_t>& sizes,
                                        const LaneReading& reading, uint64_t now_ns) {
  phase_ = phase;
  return round_.ask(sizes, phase == Phase::kOnceMore ? kEachOnceMore : kEach, reading, now_ns);
}

void SizeSearch::give_up(const LaneReading& reading, uint64_t now_ns) {
  phase_ = Phase::kWatching;
  suspects_ = false;
  before_ = last_ = reading;
  last_ns_ = now_ns;
  next_search_ns_ = now_ns + pause_ns_;
  pause_ns_ = std::min(2 * pause_ns_, kPauseMaxNs);
}

std::vector<SizeAsk> SizeSearch::judge(const LaneReading& reading, bool closer, uint64_t now_ns) {
  const std::vector<SizeSample>& steps = round_.samples();
  const uint64_t shortest = steps.front().arrived;
  size_t longest = steps.size();
  for (size_t i = steps.size(); shortest > 0 && longest == steps.size() && i > 0; --i) {
    if (steps[i - 1].arrived * kCarriedShare >= shortest) longest = i - 1;
  }
  if (phase_ == Phase::kBetween)
    return ask_once_more(steps[longest == steps.size() ? 0 : longest].chunk_bytes, reading, now_ns);
  // Nothing came: the peer does not count such probes, or nothing at all arrives. Or the longest came.
  if (longest + 1 >= steps.size()) {
    give_up(reading, now_ns);
    return {};
  }
  const uint32_t carried = steps[longest].chunk_bytes;
  if (phase_ == Phase::kOnceMore) {
    found_ = carried;
    return {};
  }
  const uint32_t room = steps[longest + 1].chunk_bytes - carried;
  if (!closer || room <= carried / kCloseShare) return ask_once_more(carried, reading, now_ns);
  std::vector<uint32_t> sizes;
  for (uint32_t i = 0; i < kBetweenSteps; ++i) {
    const uint32_t bytes = carried + room * i / kBetweenSteps;
    sizes.push_back(bytes / wire::kChunkBytesStep * wire::kChunkBytesStep);
  }
  return search(Phase::kBetween, sizes, reading, now_ns);
}

std::vector<SizeAsk> SizeSearch::ask_once_more(uint32_t carried, const LaneReading& reading,
                                               uint64_t now_ns) {
  return search(Phase::kOnceMore, {carried, chunk_bytes_}, reading, now_ns);
}

// ---- which size brings most --------------------------------------------------------------------

SizeMeasure::SizeMeasure(uint32_t chunk_bytes, bool ip4) : overhead_bytes_(datagram_overhead_bytes(ip4)) {
  const double ratio = static_cast<double>(chunk_bytes) / wire::kChunkBytesMin;
  for (uint32_t i = 0; i < kSizes; ++i) {
    const double bytes = wire::kChunkBytesMin * std::pow(ratio, static_cast<double>(i) / (kSizes - 1));
    const uint32_t whole = static_cast<uint32_t>(bytes + 0.5) / wire::kChunkBytesStep * wire::kChunkBytesStep;
    if (sizes_.empty() || whole > sizes_.back()) sizes_.push_back(std::min(whole, chunk_bytes));
  }
}

std::vector<SizeAsk> SizeMeasure::step(const LaneReading& reading, uint64_t now_ns) {
  if (over_) return {};
  if (!asked_) {
    if (reading.statuses == 0) return {};  // the peer is not there yet
    asked_ = true;
    return round_.ask(sizes_, kEach, reading, now_ns);
  }
  if (!round_.settled(reading, now_ns)) return {};
  over_ = true;
  const SizeCurve curve = curve_of(round_.samples(), overhead_bytes_, kEthernetBytes);
  if (round_.samples().front().arrived > 0 && !curve.cut) curve_ = curve;
  return {};
}

}  // namespace sluice::rate
