// What befalls a volume while its machine is down.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tools/sim/world.h"

namespace sluice::sim {

void World::schedule_losses() {
  if (plan_.journal_lost_ns > 0) {
    scheduler_.at(started_ns_ + plan_.journal_lost_ns, [this] { lose_journal(); });
  }
  if (plan_.removed_ns > 0) {
    scheduler_.at(started_ns_ + plan_.removed_ns, [this] { remove_unfinished(); });
  }
  if (plan_.snapshot_ns > 0) {
    scheduler_.at(started_ns_ + plan_.snapshot_ns, [this] { hosts_[kDestination]->files.take_snapshot(); });
  }
}

// While nothing runs there, and only under a transfer that has not ended: nobody would look again.
void World::change_volume() {
  Host& host = *hosts_[kDestination];
  if (plan_.snapshot_ns == 0 && !plan_.damage) return;
  for (const auto& [id, saved] : host.journal.sessions()) {
    if (id == asked_id() && transfer::has_ended(saved.record.state)) return;
  }
  std::vector<uint32_t> named;
  for (uint32_t i = 0; i < plan_.sizes.size(); ++i) {
    const uint64_t unfinished = host.files.find(Oracle::temporary_name(i));
    if (host.files.find(Oracle::final_name(i)) != 0) named.push_back(i);
    if (plan_.damage && unfinished != 0) host.files.damage(unfinished);
  }
  if (plan_.damage) {
    oracle_.given_up();
  } else if (host.files.go_back()) {
    oracle_.volume_went_back(std::any_of(
        named.begin(), named.end(), [&](uint32_t i) { return host.files.find(Oracle::final_name(i)) == 0; }));
  }
  trace_.add(scheduler_.now_ns(), kDestination, "volume changes");
}

// As with a directory that is removed and made again: writers notice nothing before a file is to get its
// name.
void World::remove_unfinished() {
  Host& host = *hosts_[kDestination];
  if (healed_) return;
  for (const auto& [id, saved] : host.journal.sessions()) {
    if (id == asked_id() && transfer::has_ended(saved.record.state)) return;
  }
  trace_.add(scheduler_.now_ns(), kDestination, "unfinished files removed");
  for (uint32_t i = 0; i < plan_.sizes.size(); ++i) {
    const uint64_t inode = host.files.find(Oracle::temporary_name(i));
    if (inode == 0) continue;
    oracle_.name_removed(i, inode);
    host.files.remove(Oracle::temporary_name(i));
  }
  host.files.sync_directory();
  oracle_.given_up();
}

// Whoever was called begins what it is called for anew, and finds what has its name already in its way.
void World::lose_journal_of_called() {
  if (healed_) return;
  const uint32_t called = 1 - plan_.initiator;
  trace_.add(scheduler_.now_ns(), called, "journal lost by who was called");
  kill_control(called, 1'000'000, false);
  hosts_[called]->journal = Journal();
  called_forgot_ = true;
  oracle_.forgot(called);
  if (called == kDestination) oracle_.volume_went_back(false);
}

// Nobody knows of its sessions there any more, nor of unfinished files.
void World::lose_journal() {
  if (plan_.called_loses_journal) return lose_journal_of_called();
  if (healed_) return;
  trace_.add(scheduler_.now_ns(), plan_.initiator, "journal lost");
  kill_control(plan_.initiator, 1'000'000, false);
  hosts_[plan_.initiator]->journal = Journal();
  if (plan_.initiator == kDestination) oracle_.given_up();
  journal_lost_ = true;
}

}  // namespace sluice::sim
