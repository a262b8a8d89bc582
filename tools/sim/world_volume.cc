// What befalls a volume while its machine is down.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "tools/sim/world.h"

namespace sluice::sim {

// While nothing runs there, and only under a transfer that has not ended: nobody would look again.
void World::change_volume() {
  Host& host = *hosts_[kDestination];
  if (plan_.snapshot_ns == 0 && !plan_.damage) return;
  for (const auto& [id, saved] : host.journal.sessions()) {
    if (id == asked_id_ && transfer::has_ended(saved.record.state)) return;
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

// Nobody knows of its sessions there any more, nor of unfinished files.
void World::lose_journal() {
  if (healed_) return;
  trace_.add(scheduler_.now_ns(), plan_.initiator, "journal lost");
  kill_control(plan_.initiator, 1'000'000, false);
  hosts_[plan_.initiator]->journal = Journal();
  if (plan_.initiator == kDestination) oracle_.given_up();
  journal_lost_ = true;
}

}  // namespace sluice::sim
