// What operators do: they ask for transfers, pause and cancel them, and stop a control.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "tools/sim/world.h"

namespace sluice::sim {

void World::act(const Action& action) {
  Host& host = *hosts_[action.node];
  if (healed_ || host.control == nullptr) return;
  trace_.add(scheduler_.now_ns(), action.node, "operator", static_cast<uint64_t>(action.act));
  switch (action.act) {
    case Act::kPause:
      ++trace_.reached.pauses;
      return host.control->pause();
    case Act::kContinue:
      return host.control->go_on();
    case Act::kCancel:
      oracle_.allow(End::kCancelled);
      return host.control->cancel();
    case Act::kStop:
      host.control->stop();
      return finish_stop(action.node);
  }
}

// A control that ends in order waits for what is under way; then it is started again.
void World::finish_stop(uint32_t node) {
  Host& host = *hosts_[node];
  if (host.control == nullptr) return;  // it was killed meanwhile
  if (host.control->stopped()) return kill_control(node, 1'000'000, false);
  scheduler_.after(1'000'000, [this, node, life = down_[node].control_life] {
    if (down_[node].control_life == life) finish_stop(node);
  });
}

// Once all is healed, operators continue what is held.
void World::operate() {
  constexpr uint64_t kOperatorNs = 50'000'000;
  scheduler_.after(kOperatorNs, [this] { operate(); });
  for (const auto& host : hosts_) {
    if (healed_ && host->control != nullptr) host->control->go_on();
  }
  if (healed_ && plan_.course == Course::kTwoNodes) unaware_.look(hosts_, scheduler_.now_ns(), oracle_);
  if (journal_lost_) return;
  for (Asker& asker : askers_) ask(asker);
}

// An operator asks again when that came to nothing before it began.
bool World::is_content(const Asker& asker) const {
  const auto& sessions = hosts_[asker.node]->journal.sessions();
  const auto saved = sessions.find(asker.id);
  if (asker.asked == 0 || saved == sessions.end()) return false;
  const transfer::Record& record = saved->second.record;
  if (!transfer::has_ended(record.state)) return false;
  if (record.state != transfer::RecordState::kFailed || transfer::agreement_of(record) != nullptr)
    return true;
  // What was refused once is refused again.
  if (plan_.grant.what == GrantCase::kStolen || plan_.grant.what == GrantCase::kEnds) return true;
  // The work is another node's, or was done by it.
  return record.error && (record.error->code == ErrorCode::kSuperseded ||
                          (asker.lease && record.error->code == ErrorCode::kDestinationExists));
}

void World::ask(Asker& asker) {
  if (scheduler_.now_ns() < started_ns_ + asker.from_ns || (asker.once && asker.asked != 0)) return;
  Host& host = *hosts_[asker.node];
  if (host.control == nullptr || !host.control->quiet() || host.control->stopped()) return;
  if (is_content(asker)) return;
  ++asker.asked;
  asker.id = next_id(asker);
  if (asker.lease) oracle_.owners().leased(asker.id, {.node = asker.node, .epoch = asker.lease->epoch});
  host.control->ask(asker.id, asker.lease);
}

// Of several sources' sessions it says which extents are compared; of one by a grant, which grant.
std::string World::next_id(const Asker& asker) const {
  if (plan_.course == Course::kGrant) return papers_.grant.id;
  const uint64_t number = asker.asked + (asker.node == kRival ? 128 : 0) + (plan_.seed << 8);
  if (plan_.course == Course::kSources) return fmt::format("{:016x}{:016x}", mix(number), number);
  return fmt::format("{:032x}", number);
}

}  // namespace sluice::sim
