// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/network.h"

#include <algorithm>

#include "tools/sim/frame.h"

namespace sluice::sim {

namespace {

uint64_t low32(const uint8_t* at) {
  return uint64_t{at[0]} << 24 | uint64_t{at[1]} << 16 | uint64_t{at[2]} << 8 | at[3];
}

}  // namespace

Wire::Wire(const Plan& plan, Scheduler& scheduler, Trace& trace, Arrive arrive)
    : plan_(plan),
      scheduler_(scheduler),
      trace_(trace),
      arrive_(std::move(arrive)),
      nat_(plan.nat_forgets_ns) {
  for (uint32_t node = 0; node < 2; ++node)
    directions_.push_back(std::make_unique<Direction>(plan, node, 1 - node, mix(plan.seed + 11 + node)));
  for (uint32_t node = 2; node < plan.nodes(); ++node) {
    directions_.push_back(
        std::make_unique<Direction>(plan, node, kDestination, mix(plan.seed + 11 + 2 * node)));
    directions_.push_back(
        std::make_unique<Direction>(plan, kDestination, node, mix(plan.seed + 12 + 2 * node)));
  }
}

emulator::Settings Wire::path_between(const Plan& plan, uint32_t sender, uint32_t receiver) {
  emulator::Settings path = plan.path[sender];
  if (sender == kDestination) path.delay.fixed_us += static_cast<double>(plan.stream_far_ns[receiver]) * 1e-3;
  return path;
}

// A destination speaks to one source, or, to find it, to all: by the address of the frame.
void Wire::send(uint32_t node, std::span<const uint8_t> frame) {
  const uint32_t to = frame.size() > 5 && frame[0] == 2 ? frame[5] - 1U : kNodesMax;
  for (const auto& d : directions_) {
    if (d->from != node) continue;
    if (plan_.nodes() == 2 || node != kDestination || to >= plan_.nodes() || d->to == to) send(*d, frame);
  }
}

void Wire::send(Direction& d, std::span<const uint8_t> frame) {
  const uint32_t node = d.from;
  const uint64_t now_ns = scheduler_.now_ns();
  const bool udp = frame.size() > 24 && frame[12] == 8 && frame[13] == 0 && frame[23] == 17;
  if (udp && frame.size() >= kSluiceAt + 64) {
    constexpr const char* kTypes[] = {"data", "status", "probe", "parity"};
    const uint8_t* const sluice = frame.data() + kSluiceAt;
    const uint64_t of =
        uint64_t{sluice[2]} << 16 | uint64_t{sluice[15]} << 8 | sluice[43];  // flags, slot, object
    trace_.add(now_ns, node, kTypes[sluice[1] % 4], low32(sluice + 36), low32(sluice + 20), of);
  } else {
    trace_.add(now_ns, node, "frame", frame.size());
  }
  if (plan_.nat && node == plan_.initiator) {
    frame = translate(frame);
    nat_.leaves(translated_, now_ns);
  }
  if (udp && d.udp_frames < 64 && (plan_.lost_frames[side_of(node)] >> d.udp_frames++ & 1) != 0) {
    ++d.picked;
    return;
  }
  if (node == kSource && carries_bytes_ != 0 && frame.size() > kIpAt + carries_bytes_) {
    ++d.too_long;
    return;
  }
  d.path.push(frame, now_ns, d);
  if (!healed_ && d.forger.follows(frame)) {
    trace_.add(now_ns, node, "forged", d.forger.count());
    d.path.push(d.forger.forged(), now_ns, d);
  }
  plan_run(d);
}

std::span<uint8_t> Wire::translate(std::span<const uint8_t> frame) {
  translated_.assign(frame.begin(), frame.end());
  return translated_;
}

void Wire::plan_run(Direction& d) {
  const uint64_t due = std::min(d.path.next_poll_ns(), d.line.empty() ? UINT64_MAX : d.line.front_ns());
  if (due >= d.woken_ns) return;
  d.woken_ns = due;
  scheduler_.at(due, [this, &d, due] {
    if (d.woken_ns == due) run(d);
  });
}

void Wire::run(Direction& d) {
  const uint64_t now_ns = scheduler_.now_ns();
  d.woken_ns = UINT64_MAX;
  if (d.path.next_poll_ns() <= now_ns) d.path.poll(now_ns, d);
  while (!d.line.empty() && d.line.front_ns() <= now_ns) {
    if (plan_.nat && d.from != plan_.initiator) {
      if (nat_.comes(translate(d.line.front()), now_ns)) arrive_(d.to, translated_);
    } else {
      arrive_(d.to, d.line.front());
    }
    d.line.pop();
  }
  plan_run(d);
}

void Wire::heal() {
  healed_ = true;
  if (!plan_.stays_narrow) carries_bytes_ = 0;
  for (const auto& d : directions_) {
    emulator::Settings clean;
    clean.delay.fixed_us = std::min(plan_.path[d->from].delay.fixed_us, 5000.0);
    d->path.set(clean);
    d->path.blackhole_until(0);
  }
}

void Wire::slow_down(uint32_t node) {
  emulator::Settings slow = plan_.path[node];
  slow.rate.bits_per_s /= 10;
  for (const auto& d : directions_)
    if (d->from == node) d->path.set(slow);
}

void Wire::blackhole(uint32_t node, uint64_t until_ns) {
  for (const auto& d : directions_)
    if (d->from == node) d->path.blackhole_until(until_ns);
}

uint64_t Wire::frames() const {
  uint64_t sum = 0;
  for (const auto& d : directions_) sum += d->path.counters().in;
  return sum;
}

uint64_t Wire::faults() const {
  uint64_t sum = 0;
  for (const auto& d : directions_) {
    const emulator::PathCounters& c = d->path.counters();
    sum += c.dropped() + c.duplicated + c.overtaking + d->picked + d->too_long + d->forger.count();
    for (const uint64_t n : c.corrupted) sum += n;
  }
  return sum + nat_.kept_out();
}

}  // namespace sluice::sim
