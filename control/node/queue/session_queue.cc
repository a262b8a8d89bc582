// SPDX-License-Identifier: Apache-2.0
#include "control/node/queue/session_queue.h"

#include <fmt/format.h>

#include <tuple>
#include <utility>

#include "dataplane/base/check.h"

namespace sluice::node {
namespace {

// The users of a node leave one of the places that it may have, if there are more.
uint32_t users_most(uint32_t places) { return places > 1 ? places - 1 : places; }

}  // namespace

void SessionQueue::expect(const std::string& id, const std::string& caller, int32_t priority,
                          uint32_t share) {
  if (runs(id) || waiting_.contains(id)) return;
  waiting_[id].session = {.caller = caller, .number = next_number_++, .priority = priority, .share = share};
}

void SessionQueue::ask(const std::string& id, const std::string& caller, int32_t priority, uint32_t share) {
  expect(id, caller, priority, share);
  const auto at = waiting_.find(id);
  if (at == waiting_.end()) return;
  at->second.session.priority = priority;
  at->second.session.share = share;
  at->second.asked = true;
}

void SessionQueue::run(const std::string& id, const std::string& caller, uint32_t share) {
  leave(id);
  running_[id] = {.caller = caller, .number = next_number_++, .share = share};
}

void SessionQueue::step_aside(const std::string& id) {
  if (const auto at = waiting_.find(id); at != waiting_.end()) at->second.asked = false;
  const auto runs = running_.extract(id);
  if (runs.empty()) return;
  DCHECK(!waiting_.contains(id), "nobody both runs and waits");
  runs.mapped().held_up = false;
  waiting_[id].session = runs.mapped();
}

void SessionQueue::leave(const std::string& id) {
  running_.erase(id);
  waiting_.erase(id);
}

void SessionQueue::set_held_up(const std::string& id, bool held_up) {
  const auto at = running_.find(id);
  if (at != running_.end()) at->second.held_up = held_up;
}

bool SessionQueue::has_room(const Session& session) const {
  const bool own = session.caller.empty();
  uint32_t taken = 0;
  uint32_t of_kind = 0;
  uint32_t of_caller = 0;
  uint32_t of_users = 0;
  uint32_t of_share = 0;
  for (const auto& [id, each] : running_) {
    if (each.held_up) continue;
    ++taken;
    of_kind += each.caller.empty() == own ? 1 : 0;
    if (each.caller != session.caller) continue;
    ++of_caller;
    of_users += each.share != 0 ? 1 : 0;
    of_share += each.share == session.share ? 1 : 0;
  }
  if (taken >= places_ || of_kind >= places_ - 1) return false;
  if (!own && of_caller >= per_peer_) return false;
  if (session.share == 0) return true;
  // Users of this host have together what one peer has.
  const uint32_t all = own ? std::min(per_peer_, users_most(places_ - 1)) : users_most(per_peer_);
  return of_users < all && of_share < (all + 1) / 2;
}

// Those who have asked. Each counts behind those that its node has running and those of it before it; among
// the sessions of a node, each user's in the same way.
std::vector<std::string> SessionQueue::in_turn() const {
  struct Turn {
    std::string id;
    Session session;
    uint32_t behind = 0;
  };
  std::map<std::pair<std::string, uint32_t>, uint32_t> of_share;
  std::map<std::string, uint32_t> of_caller;
  for (const auto& [id, each] : running_) {
    if (each.held_up) continue;
    ++of_share[{each.caller, each.share}];
    ++of_caller[each.caller];
  }
  std::vector<Turn> turns;
  for (const auto& [id, each] : waiting_)
    if (each.asked) turns.push_back({.id = id, .session = each.session});
  const auto sort = [&turns] {
    std::ranges::sort(turns, {}, [](const Turn& turn) {
      const Session& session = turn.session;
      return std::tuple(-int64_t{session.priority}, session.share != 0, turn.behind, session.number);
    });
  };
  sort();
  for (Turn& each : turns) each.behind = of_share[{each.session.caller, each.session.share}]++;
  sort();
  for (Turn& each : turns) each.behind = of_caller[each.session.caller]++;
  sort();
  std::vector<std::string> ids;
  for (Turn& each : turns) ids.push_back(std::move(each.id));
  return ids;
}

std::vector<std::string> SessionQueue::admit() {
  std::vector<std::string> admitted;
  numbers_.clear();
  for (const std::string& id : in_turn()) {
    const auto at = waiting_.find(id);
    DCHECK(at != waiting_.end() && at->second.asked, "whose turn comes has asked");
    DCHECK(!runs(id), "nobody runs and waits");
    if (!has_room(at->second.session)) {
      numbers_.emplace(id, static_cast<uint32_t>(numbers_.size()) + 1);
      continue;
    }
    running_[id] = at->second.session;
    admitted.push_back(id);
    waiting_.erase(at);
  }
  DCHECK(is_sound(), "nobody both runs and waits, and places have numbers without gaps");
  return admitted;
}

bool SessionQueue::is_sound() const {
  std::vector<bool> numbers(numbers_.size());
  for (const auto& [id, number] : numbers_) {
    if (number == 0 || number > numbers.size() || numbers[number - 1] || !waiting_.contains(id)) return false;
    numbers[number - 1] = true;
  }
  return std::ranges::none_of(waiting_, [this](const auto& each) { return runs(each.first); });
}

uint32_t SessionQueue::place(const std::string& id) const {
  const auto at = numbers_.find(id);
  return at == numbers_.end() ? 0 : at->second;
}

}  // namespace sluice::node
