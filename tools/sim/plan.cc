// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/plan.h"

#include <algorithm>

#include "dataplane/coding/block_code.h"
#include "dataplane/lane/worker_resources.h"
#include "tools/sim/random.h"

namespace sluice::sim {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint64_t kSecond = 1'000'000'000;

double fraction(Random& r, uint64_t per_million_max) {
  return static_cast<double>(r.scale(1, per_million_max)) * 1e-6;
}

void make_files(Plan& p, Random& r) {
  const uint64_t count = r.chance(600'000) ? 1 : r.between(1, 6);
  const uint64_t most = r.chance(200'000) ? 4 << 20 : r.chance(600'000) ? 3 << 19 : 300'000;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t bytes = r.chance(350'000) ? r.scale(0, most / count) : r.below(most / count);
    if (r.chance(200'000)) bytes = bytes / p.extent_bytes * p.extent_bytes + r.below(3);  // at a border
    p.sizes.push_back(bytes);
  }
}

void make_session(Plan& p, Random& r) {
  constexpr uint32_t kChunks[] = {512, 1024, 1384, 4096, 8192, 8192, 8896};
  p.extent_bytes = 65536U << (r.chance(700'000) ? 0 : r.below(3));
  p.chunk_bytes = kChunks[r.below(std::size(kChunks))];
  make_files(p, r);
  p.partition_bytes = uint64_t{p.extent_bytes} << r.below(5);
  p.lanes = static_cast<uint32_t>(r.chance(400'000) ? 1 : r.between(1, 4));
  for (auto& workers : p.workers) workers = static_cast<uint32_t>(r.between(1, 2));
  const uint32_t busiest = (p.lanes + p.workers[kDestination] - 1) / p.workers[kDestination];
  p.rx_extents = static_cast<uint32_t>(r.between(busiest + lane::kRepairReserve, 16 + 2 * busiest));
  p.rx_extents = std::max(p.rx_extents, 4U);
  p.tx_extents = static_cast<uint32_t>(r.between(4, 24));
  // As control grants it: all lanes of a worker together never more than it has.
  const uint32_t reserve = std::min(lane::kRepairReserve, p.rx_extents / 4);
  p.credit = static_cast<uint32_t>(r.between(1, std::max(1U, (p.rx_extents - reserve) / busiest)));
  p.crc = r.chance(250'000) ? wire::CrcKind::kCrc32c : wire::CrcKind::kCrc64Ecma;
  p.udp_checksum = r.chance(200'000);
  p.direct = r.chance(700'000);
  // How long a clean transfer takes, where the rate is what holds it up.
  const uint64_t wanted_ns = r.scale(5 * kMs, 3 * kSecond / 2);
  p.rate_bps = std::clamp<uint64_t>(p.bytes() * 8 * kSecond / wanted_ns, 10'000'000, 10'000'000'000);
  constexpr std::array<uint32_t, 4> kQueues = {0, 32, 256, 1024};
  p.queue_datagrams = kQueues[p.seed % kQueues.size()];
  p.status_interval_ns = static_cast<uint32_t>(r.scale(200'000, 5 * kMs));
  p.sync_lag_bytes = r.scale(65536, 4 << 20);
  p.sync_lag_ns = r.scale(5 * kMs, 500 * kMs);
  p.crc_lag_ns = r.scale(10 * kMs, 500 * kMs);
  p.tick_ns = r.scale(500'000, 5 * kMs);
}

emulator::Settings make_path(Random& r, uint64_t kinds) {
  emulator::Settings s;
  s.delay.fixed_us = static_cast<double>(r.scale(1, r.chance(100'000) ? 100'000 : 10'000));
  if (kinds & 1) s.loss.probability = fraction(r, r.chance(100'000) ? 400'000 : 50'000);
  if (kinds & 2) {
    s.loss.burst = {
        .p = fraction(r, 20'000), .r = fraction(r, 500'000) + 0.02, .loss_bad = 1, .loss_good = 0};
  }
  if (kinds & 4) s.loss.every_nth = r.between(2, 200);
  if (kinds & 8)
    s.duplicate = {.probability = fraction(r, 200'000), .delay_us = fraction(r, 1'000'000) * 1e4};
  if (kinds & 16) {
    s.corrupt.bits = fraction(r, 50'000);
    s.corrupt.bits_repaired = fraction(r, 50'000);
    s.corrupt.swap_words = fraction(r, 50'000);
    s.corrupt.bits_count = static_cast<uint32_t>(r.between(1, 20));
  }
  if (kinds & 32) s.corrupt.truncate = fraction(r, 50'000);
  if (kinds & 64) {
    s.reorder = {.probability = fraction(r, 300'000),
                 .distance = static_cast<uint32_t>(r.scale(1, 64)),
                 .hold_us_max = static_cast<double>(r.scale(10, 20'000))};
  }
  if (kinds & 128) {
    s.delay.uniform_us = static_cast<double>(r.scale(1, 2000));
    s.delay.keep_order = r.flip();
  }
  if (kinds & 256) s.delay.exponential_us = static_cast<double>(r.scale(1, 2000));
  return s;
}

void make_network(Plan& p, Random& r) {
  const bool faults = r.chance(800'000);
  for (uint32_t node = 0; node < 2; ++node) {
    p.path[node] = make_path(r, faults ? r.next() & r.next() : 0);
    if (r.chance(150'000)) {  // a bottleneck around the rate, with a short queue
      p.path[node].rate = {.bits_per_s = std::max<uint64_t>(10'000'000, p.rate_bps / 4 * r.between(2, 8)),
                           .queue_bytes = r.scale(20'000, 1'000'000),
                           .overhead_bytes = 24};
    }
  }
  if (r.chance(150'000)) {
    p.blackhole_per_second = r.between(1, 10);
    p.blackhole_ns = r.scale(kMs, 500 * kMs);
  }
  if (r.chance(200'000)) p.device_burst = static_cast<uint32_t>(r.between(1, 32));
  if (r.chance(200'000)) p.device_hold_ns = r.scale(1000, 200'000);
  if (r.chance(200'000)) p.device_keeps = static_cast<uint32_t>(r.between(1, 16));
  if (r.chance(100'000)) p.device_ring = static_cast<uint32_t>(r.between(8, 64));
  p.stream_latency_ns = r.scale(100'000, 20 * kMs);
  if (r.chance(300'000)) p.stream_jitter_ns = r.scale(1000, 50 * kMs);
}

void make_disk(DiskPlan& d, Random& r, bool destination) {
  d.latency_ns = r.scale(5'000, 2 * kMs);
  if (r.flip()) d.jitter_ns = r.scale(1000, 3 * kMs);
  if (r.chance(200'000)) {
    d.slow_per_million = r.scale(1000, 200'000);
    d.slow_ns = r.scale(kMs, 200 * kMs);
  }
  d.sync_ns = r.scale(100'000, r.chance(200'000) ? 300 * kMs : 10 * kMs);
  if (r.flip()) d.sync_jitter_ns = r.scale(1000, 20 * kMs);
  d.commit_ns = r.scale(20'000, 5 * kMs);
  d.sector_bytes = r.flip() ? 512 : 4096;
  if (destination && r.chance(150'000)) {
    d.sync_error_per_million = r.scale(50'000, 600'000);
    d.sync_errors_max = r.chance(800'000) ? 1 : 3;
  }
  if (r.chance(30'000)) {
    d.error_per_million = r.scale(1000, 50'000);
    d.errors_max = 1;
  }
  if (destination && r.chance(15'000)) d.full = true;
}

void make_crashes(Plan& p, Random& r) {
  const uint64_t kinds = r.next() & 7;  // which of dataplane, control, machine
  if (r.chance(750'000) && kinds != 0) {
    const uint64_t count = r.chance(150'000) ? r.between(4, 12) : r.between(1, 4);
    const bool one_side = r.flip();
    const uint64_t side = r.below(2);
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t kind = r.below(3);
      while ((kinds >> kind & 1) == 0) kind = (kind + 1) % 3;
      const uint64_t busy_ns = std::min(p.safety_ns, 30 * kMs + p.bytes() * 16 * kSecond / p.rate_bps);
      p.crashes.push_back({.time_ns = r.flip() ? r.below(busy_ns) : r.scale(100'000, p.safety_ns),
                           .node = static_cast<uint32_t>(one_side ? side : r.below(2)),
                           .kind = static_cast<CrashKind>(kind),
                           .down_ns = r.scale(kMs, r.chance(50'000) ? 15 * kSecond : 200 * kMs)});
    }
  }
  if (r.chance(150'000)) p.crash_at_points_per_million = r.scale(5'000, 200'000);
  if (r.chance(250'000)) {
    for (uint64_t i = r.between(1, 5); i > 0; --i) p.cuts.push_back(r.scale(100'000, p.safety_ns));
    p.cut_notice_ns = r.scale(10'000, 300 * kMs);
  }
}

// Drawn from a stream of its own: what came before stays as it was for each seed.
void make_operators(Plan& p, Random& r) {
  p.initiator = r.flip() ? kSource : kDestination;
  if (r.flip()) {
    p.open_objects_max = static_cast<uint32_t>(r.between(1, 4));
    p.open_ahead = static_cast<uint32_t>(r.between(1, 3));
  }
  p.stall_timeout_ns = r.scale(kSecond, 10 * kSecond);
  p.resume_timeout_ns = r.scale(3 * kSecond, 300 * kSecond);
  const uint64_t busy_ns = std::min(p.safety_ns, 30 * kMs + p.bytes() * 16 * kSecond / p.rate_bps);
  const auto act = [&](Act what) {
    const uint64_t time_ns = r.flip() ? r.below(busy_ns) : r.scale(100'000, p.safety_ns);
    p.actions.push_back({.time_ns = time_ns, .node = static_cast<uint32_t>(r.below(2)), .act = what});
    return p.actions.back();
  };
  if (r.chance(200'000)) {
    for (uint64_t i = r.between(1, 3); i > 0; --i) {
      Action go_on = act(Act::kPause);
      go_on.act = Act::kContinue;
      go_on.time_ns += r.scale(kMs, 2 * kSecond);
      if (r.chance(700'000)) p.actions.push_back(go_on);
    }
  }
  if (r.chance(100'000)) {
    for (uint64_t i = r.between(1, 3); i > 0; --i) act(Act::kStop);
  }
  if (r.chance(30'000)) act(Act::kCancel);
}

// What befalls the initiator alone: the other node is to come to know of it. Drawn from a stream of its own.
void make_initiator(Plan& p, Random& r) {
  const uint64_t busy_ns = std::min(p.safety_ns, 30 * kMs + p.bytes() * 16 * kSecond / p.rate_bps);
  if (r.chance(30'000)) p.journal_lost_ns = r.flip() ? 1 + r.below(busy_ns) : r.scale(100'000, p.safety_ns);
  if (r.chance(60'000)) {
    p.freeze = {.ns = r.scale(100 * kMs, 40 * kSecond), .at = static_cast<FreezeAt>(r.below(3))};
  }
}

void leave_stranger_alone(Plan& p) {
  p.stranger_alone = true;
  for (uint32_t node = 0; node < 2; ++node) {
    emulator::Settings clean;
    clean.delay = p.path[node].delay;
    p.path[node] = clean;
    DiskPlan& d = p.disk[node];
    d.sync_error_per_million = d.error_per_million = d.slow_per_million = 0;
    d.full = false;
  }
  p.blackhole_per_second = p.stall_per_million = p.crash_at_points_per_million = p.source_changes_ns = 0;
  p.device_ring = 1024;
  p.crashes.clear();
  p.cuts.clear();
  p.actions.clear();
  p.journal_lost_ns = 0;
  p.freeze = {};
  p.misread = false;
}

void make_nat(Plan& p, Random& r) {
  p.nat = r.chance(200'000);
  if (!p.nat || p.stranger_alone) return;
  for (uint64_t n = r.below(4); n > 0; --n) p.nat_forgets_ns.push_back(r.scale(kMs, p.safety_ns));
  std::sort(p.nat_forgets_ns.begin(), p.nat_forgets_ns.end());
}

// Volumes that go back in time, and files that are not what they were, while the destination is down.
void make_volume(Plan& p, Random& r) {
  if (p.stranger_alone || !r.chance(60'000)) return;
  const uint64_t busy_ns = std::min(p.safety_ns, 30 * kMs + p.bytes() * 16 * kSecond / p.rate_bps);
  p.snapshot_ns = r.below(busy_ns) + 1;
  if (r.flip()) {
    p.snapshot_ns = 0;
    p.damage = true;
  }
  p.crashes.push_back({.time_ns = p.snapshot_ns + r.below(busy_ns),
                       .node = kDestination,
                       .kind = CrashKind::kMachine,
                       .down_ns = r.scale(kMs, 200 * kMs)});
}

// A link in the middle of the way that carries less than both ports. Drawn from a stream of its own.
void make_narrow(Plan& p, Random& r) {
  if (p.stranger_alone || !r.chance(150'000)) return;
  constexpr uint32_t kLinks[] = {1280, 1492, 1500, 4352};
  p.carries_bytes =
      r.flip() ? kLinks[r.below(std::size(kLinks))] : static_cast<uint32_t>(r.between(1280, 8900));
  p.narrow_ns =
      r.flip() ? 0 : r.below(std::min(p.safety_ns, 30 * kMs + p.bytes() * 16 * kSecond / p.rate_bps));
  p.stays_narrow = r.flip();
  // To find out what is carried takes a while, and no node may be configured to have less patience than this.
  p.stall_timeout_ns = std::max(p.stall_timeout_ns, 5 * kSecond);
}

options::Fec draw_code(Random& random) {
  if (random.chance(300'000)) return options::Fec::kAuto;
  if (random.chance(700'000)) return options::Fec::kReedSolomon;
  return coding::is_built_in(coding::Scheme::kRaptorQ) ? options::Fec::kRaptorQ : options::Fec::kReedSolomon;
}

// Repair symbols are sent where losses are known of; so often they are declared, whether there are any or
// not.
void choose_codes(Plan* plan) {
  Random random(plan->seed, 17);
  if (!random.chance(400'000)) return;
  plan->fec = draw_code(random);
  if (plan->expected_loss_ppm == 0 && random.chance(500'000))
    plan->expected_loss_ppm = static_cast<uint32_t>(random.between(10'000, 300'000));
}

void choose_compression(Plan* plan) {
  Random random(plan->seed, 20);
  if (!random.chance(300'000)) return;
  plan->compress = random.flip() ? options::Compress::kAuto : options::Compress::kZstd;
  plan->compressible = random.chance(850'000);
}

}  // namespace

void have_coded(Plan* plan) {
  Random random(plan->seed, 21);
  plan->fec = draw_code(random);
  if (plan->expected_loss_ppm == 0)
    plan->expected_loss_ppm = static_cast<uint32_t>(random.between(10'000, 300'000));
  for (uint32_t node = 0; node < plan->nodes(); ++node)
    plan->path[node].loss.probability = 0.01 + fraction(random, 300'000);
}

Plan make_plan(uint64_t seed) { return make_plan(seed, course_of(seed)); }

Plan make_plan(uint64_t seed, Course course) {
  Plan p;
  p.seed = seed;
  p.holes = seed % 5 == 2;
  p.caller_copies = seed % 3 == 0;  // not drawn: what follows stays as it was for each seed
  Random r(seed, 1);
  p.safety_ns = r.scale(100 * kMs, 4 * kSecond);
  make_session(p, r);
  make_network(p, r);
  make_disk(p.disk[kSource], r, false);
  make_disk(p.disk[kDestination], r, true);
  make_crashes(p, r);
  if (r.chance(150'000)) {
    p.stall_per_million = r.scale(10, 5'000);
    p.stall_ns = r.scale(kMs, 300 * kMs);
  }
  if (r.chance(30'000)) p.source_changes_ns = r.scale(100'000, p.safety_ns);
  if (p.source_changes_ns == 0 && r.chance(30'000)) {
    // Only a source that remembers the CRC of the first read can find a wrong second one.
    p.misread =
        std::none_of(p.crashes.begin(), p.crashes.end(), [](const Crash& c) { return c.node == kSource; });
    if (p.misread) p.crash_at_points_per_million = 0;
  }
  Random operators(seed, 2);
  make_operators(p, operators);
  Random initiator(seed, 3);
  make_initiator(p, initiator);
  Random strangers(seed, 4);
  if (strangers.chance(150'000)) p.forged_per_million = strangers.scale(100, 50'000);
  if (p.forged_per_million > 0 && strangers.chance(400'000)) leave_stranger_alone(p);
  Random volumes(seed, 5);
  make_volume(p, volumes);
  Random places(seed, 6);
  if (places.chance(300'000)) {
    p.full_per_million = places.scale(50'000, 1'000'000);
    p.full_ns = places.scale(kMs, 5 * kSecond);
  }
  Random narrow(seed, 8);
  make_narrow(p, narrow);
  Random modes(seed, 7);
  if (modes.chance(500'000)) p.rate_mode = modes.chance(700'000) ? rate::Mode::kAdaptive : rate::Mode::kCubic;
  // Declared, whether it is so or not: what is lost is then repeated.
  if (modes.chance(100'000)) p.expected_loss_ppm = static_cast<uint32_t>(modes.between(100'000, 950'000));
  choose_codes(&p);
  choose_compression(&p);
  Random nats(seed, 9);
  make_nat(p, nats);
  choose_protection(&p);
  choose_failures(&p);
  choose_packs(&p);
  choose_removals(&p);
  Random legs(seed, 15);
  if (legs.chance(80'000)) choose_legs(&p, static_cast<uint32_t>(legs.between(2, 3)));
  choose_course(&p, course);
  return p;
}

}  // namespace sluice::sim
