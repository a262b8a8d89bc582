// SPDX-License-Identifier: Apache-2.0
#include "control/transfer/session_queue.h"

#include <fmt/format.h>

namespace sluice::transfer {

std::deque<SessionQueue::Waiting>::iterator SessionQueue::find(const std::string& id) {
  return std::find_if(queue_.begin(), queue_.end(), [&id](const Waiting& each) { return each.id == id; });
}

// Before the first that comes later than it.
std::deque<SessionQueue::Waiting>::iterator SessionQueue::place_for(const Session& session) {
  return std::find_if(queue_.begin(), queue_.end(), [&session](const Waiting& each) {
    return std::pair(-int64_t{each.session.priority}, each.session.number) >
           std::pair(-int64_t{session.priority}, session.number);
  });
}

void SessionQueue::expect(const std::string& id, const std::string& caller, int32_t priority) {
  if (runs(id) || find(id) != queue_.end()) return;
  const Session session{.caller = caller, .number = next_number_++, .priority = priority};
  queue_.insert(place_for(session), {.id = id, .session = session});
}

void SessionQueue::ask(const std::string& id, const std::string& caller, int32_t priority) {
  expect(id, caller, priority);
  auto at = find(id);
  if (at == queue_.end()) return;
  if (at->session.priority != priority) {
    Waiting moved = std::move(*at);
    queue_.erase(at);
    moved.session.priority = priority;
    at = queue_.insert(place_for(moved.session), std::move(moved));
  }
  at->asked = true;
}

void SessionQueue::run(const std::string& id, const std::string& caller) {
  leave(id);
  running_[id] = {.caller = caller, .number = next_number_++};
}

void SessionQueue::step_aside(const std::string& id) {
  if (const auto at = find(id); at != queue_.end()) at->asked = false;
  const auto runs = running_.extract(id);
  if (runs.empty()) return;
  runs.mapped().held_up = false;
  queue_.insert(place_for(runs.mapped()), {.id = id, .session = runs.mapped()});
}

void SessionQueue::leave(const std::string& id) {
  running_.erase(id);
  if (const auto at = find(id); at != queue_.end()) queue_.erase(at);
}

void SessionQueue::set_held_up(const std::string& id, bool held_up) {
  const auto at = running_.find(id);
  if (at != running_.end()) at->second.held_up = held_up;
}

size_t SessionQueue::taken() const {
  return static_cast<size_t>(
      std::ranges::count_if(running_, [](const auto& each) { return !each.second.held_up; }));
}

bool SessionQueue::has_room(const std::string& caller) const {
  uint32_t of_kind = 0;
  uint32_t of_caller = 0;
  for (const auto& [id, session] : running_) {
    if (session.held_up) continue;
    of_kind += session.caller.empty() == caller.empty() ? 1 : 0;
    of_caller += session.caller == caller ? 1 : 0;
  }
  if (taken() >= places_ || of_kind >= places_ - 1) return false;
  return caller.empty() || of_caller < per_peer_;
}

std::vector<std::string> SessionQueue::admit() {
  std::vector<std::string> admitted;
  for (auto at = queue_.begin(); at != queue_.end() && taken() < places_;) {
    if (!at->asked || !has_room(at->session.caller)) {
      ++at;
      continue;
    }
    running_[at->id] = at->session;
    admitted.push_back(at->id);
    at = queue_.erase(at);
  }
  numbers_.clear();
  for (const Waiting& each : queue_) {
    if (each.asked) numbers_[each.id] = static_cast<uint32_t>(numbers_.size()) + 1;
  }
  return admitted;
}

uint32_t SessionQueue::place(const std::string& id) const {
  const auto at = numbers_.find(id);
  return at == numbers_.end() ? 0 : at->second;
}

std::string place_text(uint32_t place, uint32_t of) {
  const uint32_t tens = place / 10 % 10;
  const uint32_t ones = place % 10;
  const char* const ending = tens == 1 || ones == 0 || ones > 3 ? "th"
                             : ones == 1                        ? "st"
                             : ones == 2                        ? "nd"
                                                                : "rd";
  return fmt::format("{}{} of {}", place, ending, of);
}

}  // namespace sluice::transfer
