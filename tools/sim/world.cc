// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/world.h"

#include <fmt/format.h>

namespace sluice::sim {

World::World(const Plan& plan, bool print) : plan_(plan), oracle_(plan_), random_(plan.seed, 50) {
  trace_.print(print);
  for (uint32_t node = 0; node < plan_.nodes(); ++node) {
    hosts_.push_back(std::make_unique<Host>(plan_, node, scheduler_, trace_, oracle_));
    hosts_[node]->crash_here = [this, node](Random& random) {
      const auto kind = static_cast<CrashKind>(random.below(3));
      const uint64_t down_ns = random.scale(1'000'000, 300'000'000);
      scheduler_.after(random.below(100'000), [this, node, kind, down_ns] {
        if (!healed_) crash(node, kind, down_ns);
      });
    };
  }
  wire_ = std::make_unique<Wire>(plan_, scheduler_, trace_,
                                 [this](uint32_t node, std::span<const uint8_t> frame) {
                                   if (hosts_[node]->dataplane != nullptr)
                                     hosts_[node]->dataplane->arrive(frame);
                                 });
  streams_ = std::make_unique<Streams>(
      plan_, scheduler_, trace_,
      Streams::Ends{
          .alive = [this](uint32_t node) { return hosts_[node]->control != nullptr; },
          .serves =
              [this](uint32_t node) {
                return hosts_[node]->control != nullptr && hosts_[node]->dataplane != nullptr;
              },
          .call_ended = [this](uint32_t node, Streams::Id id, bool open,
                               bool said) { hosts_[node]->control->call_ended(id, open, said); },
          .message = [this](uint32_t node, Streams::Id id,
                            const transfer::Message& m) { hosts_[node]->control->message(id, m); },
          .ended = [this](uint32_t node, Streams::Id id) { hosts_[node]->control->stream_ended(id); }});
  for (auto& host : hosts_) host->streams = streams_.get();
  for (uint32_t node = 0; node < plan_.nodes(); ++node)
    if (is_source(node)) make_source(node);
  begin_course();
}

World::~World() = default;

void World::make_source(uint32_t node) {
  const bool other = plan_.several.lie == Lie::kOtherFiles && plan_.several.liar == node;
  FileSystem& files = hosts_[node]->files;
  for (uint32_t i = 0; i < plan_.sizes.size(); ++i) {
    const uint64_t number = files.create(Oracle::final_name(i));
    files.resize(number, plan_.sizes[i]);
    files.inode(number)->now = oracle_.content(i, other ? 2 : 0);
    files.set_durable(number);
    files.inode(number)->version = kSourceVersion;
  }
  files.sync_directory();
}

void World::change_source(uint32_t node) {
  if (healed_) return;
  oracle_.allow(End::kIntegrity);
  oracle_.allow_failures();
  trace_.add(scheduler_.now_ns(), node, "source changes");
  FileSystem& files = hosts_[node]->files;
  for (uint32_t i = 0; i < plan_.sizes.size(); ++i) {
    oracle_.source_changed(i);
    const uint64_t number = files.find(Oracle::final_name(i));
    files.inode(number)->now = oracle_.content(i, 1);
    files.set_durable(number);
    ++files.inode(number)->version;
  }
}

// ---- life and death ----------------------------------------------------------------------------------

void World::start_dataplane(uint32_t node) {
  Host& host = *hosts_[node];
  if (host.dataplane != nullptr || gone_[node] || scheduler_.now_ns() < down_[node].dataplane_ns) return;
  trace_.add(scheduler_.now_ns(), node, "dataplane starts");
  streams_->started(node);
  host.dataplane = std::make_unique<Dataplane>(
      Dataplane::Setup{.plan = plan_,
                       .node = node,
                       .generation = ++down_[node].dataplane_life,
                       .scheduler = scheduler_,
                       .trace = trace_,
                       .oracle = oracle_,
                       .disk = host.disk,
                       .send = [this, node](std::span<const uint8_t> frame) { wire_->send(node, frame); }});
}

void World::start_control(uint32_t node) {
  Host& host = *hosts_[node];
  if (host.control != nullptr || gone_[node] || scheduler_.now_ns() < down_[node].control_ns) return;
  trace_.add(scheduler_.now_ns(), node, "control starts");
  streams_->started(node);
  host.control = std::make_shared<Control>(host);
  host.control->start();
  tick(node, ++down_[node].control_life);
}

void World::tick(uint32_t node, uint64_t life) {
  Host& host = *hosts_[node];
  if (host.control == nullptr || down_[node].control_life != life) return;
  uint64_t next_ns = plan_.tick_ns;
  if (host.frozen()) {
    // What is due waits.
  } else if (!healed_ && plan_.stall_per_million > 0 && random_.chance(plan_.stall_per_million)) {
    next_ns += random_.below(plan_.stall_ns);
  } else {
    host.control->tick();
  }
  scheduler_.after(next_ns, [this, node, life] { tick(node, life); });
}

void World::kill_dataplane(uint32_t node, uint64_t down_ns) {
  Host& host = *hosts_[node];
  if (host.dataplane != nullptr) {
    host.dataplane->check();
    host.dataplane->kill();
    host.dataplane.reset();
  }
  down_[node].dataplane_ns = scheduler_.now_ns() + down_ns;
  scheduler_.after(down_ns, [this, node] { start_dataplane(node); });
}

void World::kill_control(uint32_t node, uint64_t down_ns, bool power) {
  Host& host = *hosts_[node];
  if (host.control != nullptr) {
    host.control_died(power);
    host.control.reset();
    host.frozen_until_ns = 0;
    streams_->died(node, power);
  }
  down_[node].control_ns = scheduler_.now_ns() + down_ns;
  scheduler_.after(down_ns, [this, node] { start_control(node); });
}

// What is written waits for its sync no longer than the lag says, as far as disk and journal let it.
void World::check_lag() {
  const DiskPlan& d = plan_.disk[kDestination];
  Host& host = *hosts_[kDestination];
  // Only a control that was always there, and whose disk did not fail, can be held to it.
  if (down_[kDestination].control_life != 1 || host.control == nullptr || host.sync_errors > 0) return;
  if (plan_.stall_per_million > 0 || plan_.freeze.ns > 0 || plan_.removed_ns > 0) return;
  if (plan_.course != Course::kTwoNodes) return;
  // What is durable is known here by what it told the source.
  const uint64_t now_ns = scheduler_.now_ns();
  const uint64_t disturbed_ns = streams_->disturbed_ns(kSource, kDestination);
  if (now_ns < disturbed_ns || now_ns - disturbed_ns < 500'000'000) return;
  const uint64_t commits = (plan_.growing ? 5 : 4) * plan_.sizes.size() + 3;
  const uint64_t wait_ns = plan_.sync_lag_ns + 25'000'000 + 4 * plan_.tick_ns +
                           3 * (d.sync_ns + d.sync_jitter_ns) + 2 * commits * d.commit_ns;
  const auto in_that_time =
      static_cast<uint64_t>(static_cast<__uint128_t>(plan_.rate_bps) * wait_ns / 8 / 1'000'000'000);
  const uint64_t window = uint64_t{plan_.rx_extents} * plan_.workers[kDestination] * plan_.extent_bytes;
  const uint64_t bound = plan_.sync_lag_bytes + in_that_time + 2 * window;
  if (oracle_.undurable_bytes() > bound) {
    oracle_.fail(fmt::format("{} bytes are written and not durable, at most {} were configured",
                             oracle_.undurable_bytes(), bound));
  }
}

void World::crash(uint32_t node, CrashKind kind, uint64_t down_ns) {
  trace_.add(scheduler_.now_ns(), node, crash_name(kind), down_ns);
  ++crashes_;
  if (node == kDestination) check_lag();
  if (kind != CrashKind::kControl) kill_dataplane(node, down_ns);
  if (kind != CrashKind::kDataplane) kill_control(node, down_ns, kind == CrashKind::kMachine);
  if (kind != CrashKind::kMachine) return;
  Host& host = *hosts_[node];
  host.files.lose_power();
  host.journal.lose_power(random_);
  if (node != kDestination) return;
  oracle_.power_lost(host.files);
  change_volume();
}

// ---- the course of a run -----------------------------------------------------------------------------

void World::schedule_blackholes() {
  const uint64_t count = plan_.blackhole_per_second * plan_.safety_ns / 1'000'000'000 + 1;
  for (uint64_t i = 0; plan_.blackhole_per_second > 0 && i < count; ++i) {
    const uint64_t at_ns = started_ns_ + random_.below(plan_.safety_ns);
    const uint64_t nodes = random_.between(1, 3);
    scheduler_.at(at_ns, [this, nodes] {
      if (healed_) return;
      const uint64_t until_ns = scheduler_.now_ns() + plan_.blackhole_ns;
      for (uint32_t node = 0; node < 2; ++node) {
        if ((nodes >> node & 1) != 0) wire_->blackhole(node, until_ns);
      }
    });
  }
}

void World::schedule() {
  started_ns_ = scheduler_.now_ns();
  for (const Crash& c : plan_.crashes) {
    scheduler_.at(started_ns_ + c.time_ns, [this, &c] {
      if (!healed_) crash(c.node, c.kind, c.down_ns);
    });
  }
  for (const uint64_t cut_ns : plan_.cuts) {
    scheduler_.at(started_ns_ + cut_ns, [this] {
      if (!healed_) streams_->cut();
    });
  }
  for (const Action& a : plan_.actions) {
    scheduler_.at(started_ns_ + a.time_ns, [this, &a] { act(a); });
  }
  for (const LegDeath& death : plan_.leg_deaths)
    scheduler_.at(started_ns_ + death.time_ns, [this, &death] { kill_leg(death); });
  schedule_blackholes();
  if (plan_.carries_bytes > 0) {
    scheduler_.at(started_ns_ + plan_.narrow_ns, [this] {
      if (!healed_ || plan_.stays_narrow) wire_->narrow(plan_.carries_bytes);
    });
  }
  schedule_losses();
  if (plan_.source_changes_ns > 0) {
    scheduler_.at(started_ns_ + plan_.source_changes_ns, [this] { change_source(kSource); });
  }
  for (const Trouble& t : plan_.troubles) {
    scheduler_.at(started_ns_ + t.time_ns, [this, &t] { trouble(t); });
  }
  schedule_course();
  scheduler_.at(started_ns_ + plan_.safety_ns, [this] { heal(); });
}

void World::heal() {
  healed_ = true;
  trace_.add(scheduler_.now_ns(), kSource, "healed");
  wire_->heal();
  streams_->heal();
  for (uint32_t node = 0; node < plan_.nodes(); ++node) {
    hosts_[node]->disk.faults = false;
    down_[node].dataplane_ns = down_[node].control_ns = 0;
    start_dataplane(node);
    start_control(node);
  }
}

// How the transfer that was asked for last has ended, as the node's journal has it.
End World::end_of(uint32_t node, const std::string& id) const {
  const auto saved = hosts_[node]->journal.sessions().find(id);
  if (saved == hosts_[node]->journal.sessions().end()) return End::kNone;
  const transfer::Record& record = saved->second.record;
  switch (record.state) {
    case transfer::RecordState::kSucceeded:
      return End::kDone;
    case transfer::RecordState::kCancelled:
      return End::kCancelled;
    case transfer::RecordState::kFailed:
      return record.error && record.error->code == ErrorCode::kIntegrity ? End::kIntegrity : End::kFailed;
    default:
      return End::kNone;
  }
}

// One that was stopped is started again, and may have a session in its journal.
bool World::is_quiet(const std::unique_ptr<Host>& host) {
  return host->control != nullptr && host->control->quiet() && !host->control->stopped();
}

// Nothing is under way at either node: also no end that waits for one that is gone.
bool World::over() const {
  if (!oracle_.failure().empty()) return true;
  if (plan_.course != Course::kTwoNodes) return course_is_over();
  const End end = end_of(plan_.initiator);
  if (!journal_lost_ && (end == End::kNone || (end == End::kFailed && !unconfirmed()))) return false;
  if (journal_lost_ && !healed_) return false;  // what was called may be down
  return std::all_of(hosts_.begin(), hosts_.end(), is_quiet);
}

// Events without any time between them: somebody is busy with nothing.
constexpr uint64_t kAtOnceMax = 100'000;

Outcome World::run() {
  for (uint32_t node = 0; node < plan_.nodes(); ++node) {
    start_dataplane(node);
    start_control(node);
  }
  schedule();
  operate();
  const uint64_t crawl_ns = plan_.bytes() * 8 * 1'000'000'000 / plan_.rate_bps * 100;
  const uint64_t deadline_ns = started_ns_ + plan_.safety_ns + plan_.healed_ns_max + crawl_ns;
  uint64_t at_once = 0;
  for (uint64_t before_ns = 0; !over() && scheduler_.step(deadline_ns); before_ns = scheduler_.now_ns()) {
    at_once = scheduler_.now_ns() == before_ns ? at_once + 1 : 0;
    if (at_once == kAtOnceMax) oracle_.fail("time stands still");
  }
  Outcome out;
  if (!over()) oracle_.fail("not over within the bound of the healed phase");
  judge(&out);
  return out;
}

void World::judge_ends(const Outcome& out) {
  const End peers = end_of(1 - plan_.initiator);
  if (unconfirmed()) oracle_.allow(end_of(kSource));
  if (!journal_lost_) oracle_.ended(out.end);
  // A cancel may overtake the end of the other node, and an end may overtake it.
  // A node that was called and agreed upon nothing keeps no record.
  bool agree = peers == out.end || (peers == End::kNone && out.end != End::kDone);
  // A source that has lost its CRCs cannot vouch for a copy once its files have changed.
  agree |= oracle_.may_end(End::kIntegrity) && out.end != End::kNone && peers != End::kNone;
  // In the first case there is no end; in the second it may have been forgotten.
  agree |= journal_lost_ || called_forgot_ || unconfirmed();
  if (!agree && !oracle_.may_end(End::kCancelled)) {
    oracle_.fail(fmt::format("the nodes ended differently: {} and {}", end_name(out.end), end_name(peers)));
  }
  // A source that was told of a file's end cannot know that its volume went back in time since.
  const bool stored = end_of(kDestination) == End::kDone;
  tell_what_has_failed();
  if (stored || ((out.end == End::kDone || peers == End::kDone) && plan_.snapshot_ns == 0))
    oracle_.check_files(hosts_[kDestination]->files);
  if (out.end == End::kDone && peers == End::kDone) check_failed();
}

void World::judge(Outcome* out) {
  for (auto& host : hosts_) {
    if (host->dataplane != nullptr) host->dataplane->check();
  }
  out->end = end_of(plan_.initiator);
  if (oracle_.failure().empty()) plan_.course == Course::kTwoNodes ? judge_ends(*out) : judge_course(*out);
  if (plan_.stranger_alone && trace_.reached.attempts > 2 * plan_.legs) {  // one at each node
    oracle_.fail(
        fmt::format("a stranger's datagrams ended an attempt: there were {}", trace_.reached.attempts));
  }
  out->failure = oracle_.failure();
  out->hash = trace_.hash();
  out->events = trace_.count();
  out->virtual_ns = scheduler_.now_ns() - started_ns_;
  out->told_ns = hosts_[plan_.initiator]->told_ns - std::min(started_ns_, hosts_[plan_.initiator]->told_ns);
  out->crashes = crashes_;
  out->faults = wire_->faults() + streams_->cuts() + hosts_[0]->disk.errors + hosts_[1]->disk.errors +
                hosts_[1]->sync_errors + crashes_;
  out->reached = trace_.reached;
  out->frames = wire_->frames();
  out->bytes = plan_.bytes();
  out->bytes_sent = oracle_.payload_bytes_sent();
  if (out->failure.empty()) return;
  out->tail = trace_.tail(60);
  for (const auto& host : hosts_) {
    if (host->control != nullptr) out->tail += host->control->describe();
  }
  for (const auto& host : hosts_) {
    if (host->dataplane != nullptr) out->tail += host->dataplane->counters();
  }
}

}  // namespace sluice::sim
