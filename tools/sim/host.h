// What a simulated control finds on its node: its dataplane, its disk, its journal, its connections, and
// time.
//
// Owns the control's operations that block: each takes its time and then has its effect; if the control dies
// meanwhile, the effect may come about without it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tools/sim/dataplane.h"
#include "tools/sim/journal.h"
#include "tools/sim/streams.h"

namespace sluice::sim {

class Control;
class Session;
class Streams;
struct Papers;

struct Host {
  Host(const Plan& p, uint32_t n, Scheduler& s, Trace& t, Oracle& o)
      : plan(p),
        node(n),
        scheduler(s),
        trace(t),
        oracle(o),
        files(p.seed, 20 + n, p.disk[n].sector_bytes),
        disk{.node = n,
             .plan = p.disk[n],
             .files = files,
             .scheduler = s,
             .trace = t,
             .oracle = o,
             .random = Random(p.seed, 30 + n)},
        random(p.seed, 40 + n),
        places(p.seed, 50 + n) {
    disk.misread = n == kSource && p.misread;
  }

  uint64_t now_ns() const { return scheduler.now_ns(); }
  // By the clocks of all nodes, which are right. At the start of each world it is the same day.
  static constexpr int64_t kStartUnixNs = 1'800'000'000'000'000'000;
  int64_t unix_ns() const { return kStartUnixNs + unix_ahead_ns + static_cast<int64_t>(now_ns()); }

  // What a blocking call does, at its end. If the caller is killed meanwhile: chance decides; the kernel
  // still does it; or it is a transaction, which also a loss of power leaves whole or absent.
  enum class IfKilled : uint8_t { kFate, kStillDone, kTransaction };
  void operate(uint64_t takes_ns, IfKilled if_killed, std::function<void()> effect,
               std::function<void()> then) {
    const uint64_t id = ++operation_;
    operations.push_back({id, if_killed, std::move(effect)});
    scheduler.after(takes_ns, [this, id, then = std::move(then)] {
      const auto at = std::find_if(operations.begin(), operations.end(),
                                   [&](const Operation& each) { return each.id == id; });
      if (at == operations.end()) return;  // the control died
      const std::function<void()> do_it = std::move(at->effect);
      operations.erase(at);
      do_it();
      then();
    });
  }
  // One transaction at a time, in order.
  void commit(Transaction transaction, transfer::Durability durability, std::function<void()> then) {
    const uint64_t takes_ns = plan.disk[node].commit_ns + random.below(plan.disk[node].commit_ns + 1);
    committed_ns_ = std::max(committed_ns_, now_ns()) + takes_ns;
    auto effect = [this, durability, t = std::move(transaction)] { journal.commit(t, durability); };
    operate(committed_ns_ - now_ns(), IfKilled::kTransaction, std::move(effect), std::move(then));
  }
  // Does this sync fail? At most as often as the plan says.
  bool sync_fails() {
    const DiskPlan& d = plan.disk[node];
    if (!disk.faults || sync_errors >= d.sync_errors_max || !random.chance(d.sync_error_per_million))
      return false;
    ++sync_errors;
    oracle.allow_failures();
    return true;
  }
  uint64_t sync_ns() {
    const DiskPlan& d = plan.disk[node];
    return d.sync_ns + (d.sync_jitter_ns > 0 ? random.below(d.sync_jitter_ns) : 0);
  }
  // A place where a crash is worth more than elsewhere.
  void point() {
    if (disk.faults && random.chance(plan.crash_at_points_per_million)) crash_here(random);
  }
  void control_died(bool power) {
    bool transaction = random.flip();  // the one under way; those behind it had not begun
    for (Operation& each : std::exchange(operations, {})) {
      bool done = !power && (each.if_killed == IfKilled::kStillDone || random.flip());
      if (each.if_killed == IfKilled::kTransaction) done = std::exchange(transaction, false);
      if (done) each.effect();
    }
    committed_ns_ = 0;
  }

  struct Operation {
    uint64_t id = 0;
    IfKilled if_killed{};
    std::function<void()> effect;
  };

  const Plan& plan;
  uint32_t node;
  Scheduler& scheduler;
  Trace& trace;
  Oracle& oracle;
  FileSystem files;
  Journal journal;
  DiskShared disk;
  Random random;
  Random places;  // of this node, that other sessions have
  Streams* streams = nullptr;
  std::function<void(Random&)> crash_here;
  // Does another transfer of this node hold this unfinished file?
  std::function<bool(uint64_t inode, const Session* asking)> locked;
  std::unique_ptr<Dataplane> dataplane;  // null: not running
  std::shared_ptr<Control> control;
  std::vector<Operation> operations;
  uint32_t sync_errors = 0;
  uint64_t told_ns = 0;            // when users heard of the end of a session, first
  const Papers* papers = nullptr;  // where a third node has ordered the session
  int64_t unix_ahead_ns = 0;       // of the time that has passed: they jump ahead
  // Until then the control stands still: what happens to it waits.
  uint64_t frozen_until_ns = 0;
  bool frozen() const { return now_ns() < frozen_until_ns; }

 private:
  uint64_t operation_ = 0;
  uint64_t committed_ns_ = 0;
};

}  // namespace sluice::sim
