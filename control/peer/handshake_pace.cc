// SPDX-License-Identifier: Apache-2.0
#include "control/peer/handshake_pace.h"

#include <algorithm>

namespace sluice::peer {
namespace {

uint64_t between_ns(const Pace& pace) { return 1'000'000'000 / std::max(1U, pace.per_s); }

}  // namespace

uint64_t HandshakePace::Schedule::take(const Pace& pace, uint64_t now_ns) {
  const uint64_t step_ns = between_ns(pace);
  const uint64_t ahead_ns = step_ns * (std::max(1U, pace.at_once) - 1);
  const uint64_t due = std::max(due_ns, now_ns);
  due_ns = due + step_ns;
  return std::max(now_ns, due - std::min(due, ahead_ns));
}

void HandshakePace::Schedule::give_back(const Pace& pace) { due_ns -= std::min(due_ns, between_ns(pace)); }

HandshakePace::Turn HandshakePace::take(const std::string& address, uint64_t now_ns) {
  const auto known = known_.find(address);
  if (known == known_.end()) return {.begins_ns = strangers_.take(limits_.strangers, now_ns)};
  return {.begins_ns = known->second.schedule.take(limits_.known_address, now_ns), .known = true};
}

void HandshakePace::give_back(const std::string& address, const Turn& turn) {
  if (!turn.known) return strangers_.give_back(limits_.strangers);
  const auto known = known_.find(address);
  if (known != known_.end()) known->second.schedule.give_back(limits_.known_address);
}

void HandshakePace::trusted(const std::string& address, uint64_t now_ns) {
  known_[address].trusted_ns = now_ns;
  if (known_.size() <= limits_.known_addresses) return;
  known_.erase(std::ranges::min_element(known_, {}, [](const auto& one) { return one.second.trusted_ns; }));
}

}  // namespace sluice::peer
