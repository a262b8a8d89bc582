// See path.h.
// SPDX-License-Identifier: Apache-2.0
#include "tools/wire/path.h"

#include <algorithm>
#include <numeric>

namespace sluice::emulator {
namespace {

uint64_t from_us(double us) { return static_cast<uint64_t>(us * 1000); }

}  // namespace

uint64_t PathCounters::dropped() const {
  return std::accumulate(std::begin(dropped_loss), std::end(dropped_loss), dropped_blackhole + dropped_queue);
}

Path::Path(const Settings& settings, uint64_t seed, Framing framing)
    : settings_(settings),
      seed_(mix64(seed + 1)),
      framing_(framing),
      bottleneck_(settings.rate),
      loss_(settings.loss),
      corrupter_(settings.corrupt),
      delay_(settings.delay) {}

void Path::set(const Settings& settings) {
  if (!(settings.rate == settings_.rate)) counters_.queue_bytes_peak = 0;
  settings_ = settings;
  bottleneck_.set(settings.rate);
  loss_.set(settings.loss);
  corrupter_.set(settings.corrupt);
  delay_.set(settings.delay);
}

// Loss decides for every frame, also one that the queue drops anyhow: its burst and its numbers are then the
// same at any speed.
bool Path::dropped(uint32_t length, uint32_t frame_bytes, uint64_t now_ns, uint64_t* leaves_ns) {
  const LossReason lost = loss_.decide(seed_, frame_, length);
  if (now_ns < blackhole_until_ns_) {
    ++counters_.dropped_blackhole;
    return true;
  }
  if (!bottleneck_.enter(frame_bytes, now_ns, leaves_ns)) {
    ++counters_.dropped_queue;
    return true;
  }
  counters_.queue_bytes_peak = std::max(counters_.queue_bytes_peak, bottleneck_.queue_bytes());
  if (lost == kLossNone) return false;
  ++counters_.dropped_loss[lost];
  return true;
}

void Path::push(std::span<const uint8_t> frame, uint64_t now_ns, Out& out) {
  ++frame_;
  ++counters_.in;
  counters_.in_bytes += frame.size();
  const auto frame_bytes = static_cast<uint32_t>(frame.size());
  uint32_t length = frame_bytes;
  if (settings_.length_of == LengthOf::kUdpPayload) {
    const UdpPlace place = find_udp(frame, framing_);
    if (place.payload_offset != 0) length = place.payload_bytes;
  }
  uint64_t leaves_ns = now_ns;
  if (dropped(length, frame_bytes, now_ns, &leaves_ns)) return;

  const std::span<const uint8_t> bytes =
      corrupter_.apply(Draws(seed_, frame_, Stage::kCorrupt), frame, framing_, counters_.corrupted);
  const DuplicateSettings& duplicate = settings_.duplicate;
  const bool twice =
      duplicate.probability > 0 && Draws(seed_, frame_, Stage::kDuplicate).chance(duplicate.probability);
  const ReorderSettings& reorder = settings_.reorder;
  const bool reordered =
      reorder.probability > 0 && Draws(seed_, frame_, Stage::kReorder).chance(reorder.probability);
  const uint64_t deliver_ns = delay_.arrives_ns(Draws(seed_, frame_, Stage::kDelay), length, leaves_ns);
  if (twice) ++counters_.duplicated;
  if (reordered) {
    hold(bytes, deliver_ns, now_ns);
  } else {
    emit(bytes, deliver_ns, !held_.empty(), out);
    if (!held_.empty()) count_later_frame(deliver_ns, out);
  }
  if (twice) {
    const uint64_t starts_ns = leaves_ns + from_us(duplicate.delay_us);
    emit(bytes, delay_.arrives_ns(Draws(seed_, frame_, Stage::kDelay, 1), length, starts_ns), !held_.empty(),
         out);
  }
}

void Path::emit(std::span<const uint8_t> bytes, uint64_t deliver_ns, bool overtakes, Out& out) {
  if (overtakes || deliver_ns < deliver_ns_max_) ++counters_.overtaking;
  deliver_ns_max_ = std::max(deliver_ns_max_, deliver_ns);
  ++counters_.out;
  counters_.out_bytes += bytes.size();
  out.deliver(bytes, deliver_ns);
}

void Path::hold(std::span<const uint8_t> bytes, uint64_t deliver_ns, uint64_t now_ns) {
  Held held;
  if (!spare_.empty()) {
    held = std::move(spare_.back());
    spare_.pop_back();
  }
  held.bytes.assign(bytes.begin(), bytes.end());
  held.deliver_ns = deliver_ns;
  held.give_up_ns = now_ns + from_us(settings_.reorder.hold_us_max);
  held.later_frames = settings_.reorder.distance;
  next_poll_ns_ = std::min(next_poll_ns_, held.give_up_ns);
  held_.push_back(std::move(held));
  ++counters_.held_back;
  ++counters_.held;
}

void Path::count_later_frame(uint64_t deliver_ns, Out& out) {
  for (size_t i = 0; i < held_.size();) {
    if (--held_[i].later_frames == 0) {
      release(i, deliver_ns, out);
    } else {
      ++i;
    }
  }
}

void Path::release(size_t index, uint64_t deliver_ns, Out& out) {
  Held held = std::move(held_[index]);
  held_.erase(held_.begin() + static_cast<ptrdiff_t>(index));
  --counters_.held;
  emit(held.bytes, std::max(held.deliver_ns, deliver_ns), index > 0, out);
  spare_.push_back(std::move(held));
  find_next_poll();
}

void Path::find_next_poll() {
  next_poll_ns_ = UINT64_MAX;
  for (const Held& held : held_) next_poll_ns_ = std::min(next_poll_ns_, held.give_up_ns);
}

void Path::poll(uint64_t now_ns, Out& out) {
  if (now_ns < next_poll_ns_) return;
  for (size_t i = 0; i < held_.size();) {
    if (held_[i].give_up_ns <= now_ns) {
      release(i, now_ns, out);
    } else {
      ++i;
    }
  }
}

}  // namespace sluice::emulator
