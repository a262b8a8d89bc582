// SPDX-License-Identifier: Apache-2.0
#include "control/parts/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace sluice::parts {
namespace {

// Of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014): each seed and
// object give another extent.
uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111eb;
  return value ^ (value >> 31U);
}

}  // namespace

bool Replicas::Answers::complete() const {
  return std::all_of(digests.begin(), digests.end(), [](const auto& digest) { return digest.has_value(); });
}

std::vector<ExtentId> Replicas::extents_of(const Subject& subject) const {
  const uint64_t extents = (subject.size_bytes + options_.extent_bytes - 1) / options_.extent_bytes;
  if (extents == 0) return {};
  std::vector<ExtentId> chosen = {
      ExtentId(0), ExtentId(mixed(options_.seed ^ subject.object.value()) % extents), ExtentId(extents - 1)};
  if (subject.held && subject.held->extent.value() < extents) chosen.push_back(subject.held->extent);
  std::sort(chosen.begin(), chosen.end());
  chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
  return chosen;
}

void Replicas::join(LegId leg, const std::string& peer) {
  Leg& joined = legs_[leg];
  if (joined.here) return;
  joined.here = true;
  joined.peer = peer;
  for (const auto& [object, comparison] : comparisons_) ask(leg, object);
}

void Replicas::leave(LegId leg) {
  const auto left = legs_.find(leg);
  if (left == legs_.end()) return;
  left->second.here = false;
  left->second.unanswered = 0;
  left->second.waiting.clear();
  std::erase_if(actions_.questions, [leg](const Portion& question) { return question.leg == leg; });
  for (auto& [object, comparison] : comparisons_) {
    // What it has said stays true of its replica. What it was asked is asked again.
    const auto answers = comparison.answers.find(leg);
    const bool answered = answers != comparison.answers.end() && answers->second.complete();
    if (!answered && answers != comparison.answers.end()) comparison.answers.erase(answers);
    if (!answered && comparison.subject.begun_by == leg) stand_in(comparison);
    judge(comparison);
  }
}

void Replicas::compare(const Subject& subject) {
  const auto [at, is_new] = comparisons_.try_emplace(subject.object);
  if (!is_new) return;
  at->second.subject = subject;
  at->second.extents = extents_of(subject);
  if (subject.held) at->second.held.emplace(subject.held->extent, *subject.held);
  for (const auto& [leg, state] : legs_) {
    if (state.here) ask(leg, subject.object);
  }
}

void Replicas::ask(LegId leg, ObjectId object) {
  if (comparisons_.at(object).answers.contains(leg)) return;
  legs_[leg].waiting.push_back(object);
  ask_more(leg);
}

void Replicas::ask_more(LegId leg) {
  Leg& state = legs_[leg];
  while (!state.waiting.empty()) {
    const auto at = comparisons_.find(state.waiting.front());
    if (at != comparisons_.end() && !at->second.answers.contains(leg)) {
      Comparison& comparison = at->second;
      if (state.unanswered + comparison.extents.size() > kQuestionsMax) return;
      comparison.answers[leg].digests.resize(comparison.extents.size());
      question(leg, comparison, comparison.extents);
    }
    state.waiting.pop_front();
  }
}

void Replicas::question(LegId leg, const Comparison& comparison, const std::vector<ExtentId>& extents) {
  if (extents.empty()) return;
  Portion portion{.leg = leg, .object = comparison.subject.object, .ranges = {}};
  for (const ExtentId extent : extents) {
    const uint64_t offset = extent.value() * options_.extent_bytes;
    const uint64_t left = comparison.subject.size_bytes - offset;
    portion.ranges.push_back({.offset = offset, .length = std::min<uint64_t>(options_.extent_bytes, left)});
  }
  legs_[leg].unanswered += extents.size();
  actions_.questions.push_back(std::move(portion));
}

void Replicas::confirmed(ObjectId object, const Held& held) {
  const auto at = comparisons_.find(object);
  if (at == comparisons_.end()) return;
  Comparison& comparison = at->second;
  if (std::find(comparison.extents.begin(), comparison.extents.end(), held.extent) ==
      comparison.extents.end()) {
    comparison.last = held;
    return;
  }
  if (comparison.held.emplace(held.extent, held).second) judge(comparison);
}

// The leg that has begun the object is gone, and nothing that is compared came from it. The last extent that
// did speaks for it, and is asked of all others.
void Replicas::stand_in(Comparison& comparison) {
  if (!comparison.held.empty() || !comparison.last) return;
  comparison.extents.push_back(comparison.last->extent);
  comparison.held.emplace(comparison.last->extent, *comparison.last);
  std::erase_if(comparison.answers, [this](const auto& each) { return !legs_.at(each.first).here; });
  for (auto& [leg, answers] : comparison.answers) {
    answers.digests.emplace_back();
    question(leg, comparison, {comparison.last->extent});
  }
}

void Replicas::said(LegId leg, ObjectId object, ExtentId first, std::span<const uint64_t> digests) {
  const auto at = comparisons_.find(object);
  const auto state = legs_.find(leg);
  if (at == comparisons_.end() || state == legs_.end() || !state->second.here) return;
  Comparison& comparison = at->second;
  const auto answers = comparison.answers.find(leg);
  if (answers == comparison.answers.end()) return;
  bool answered = false;
  for (size_t index = 0; index < comparison.extents.size(); ++index) {
    const uint64_t extent = comparison.extents[index].value();
    if (extent < first.value() || extent - first.value() >= digests.size()) continue;
    std::optional<uint64_t>& digest = answers->second.digests[index];
    if (digest) continue;  // The first word counts.
    digest = digests[extent - first.value()];
    state->second.unanswered -= std::min<size_t>(state->second.unanswered, 1);
    answered = true;
  }
  if (!answered) return;
  judge(comparison);
  ask_more(leg);
}

// The leg that has begun the object is what the others are compared with. If it is gone, the first leg is
// that has answered and does not differ from what is held.
void Replicas::judge(Comparison& comparison) {
  if (comparison.in_doubt) return;
  for (auto& [leg, answers] : comparison.answers) {
    if (!answers.complete() || answers.refused) continue;
    const Held* const held = differs_from_held(comparison, answers);
    if (held == nullptr) continue;
    answers.refused = true;
    differ(comparison, leg, std::nullopt, held);
  }
  const std::optional<LegId> reference = reference_of(comparison);
  if (!reference) return;
  const Answers& right = comparison.answers.at(*reference);
  for (auto& [leg, answers] : comparison.answers) {
    if (!answers.complete() || answers.refused || answers.agreed) continue;
    if (answers.digests != right.digests) {
      comparison.in_doubt = true;
      return differ(comparison, leg, *reference, nullptr);
    }
    answers.agreed = true;
    actions_.agreed.push_back({.leg = leg, .object = comparison.subject.object});
  }
}

std::optional<LegId> Replicas::reference_of(const Comparison& comparison) const {
  const std::optional<LegId>& begun_by = comparison.subject.begun_by;
  const auto usable = [](const Answers& answers) { return answers.complete() && !answers.refused; };
  for (const auto& [leg, answers] : comparison.answers) {
    if (answers.agreed) return leg;
  }
  if (begun_by) {
    const auto answers = comparison.answers.find(*begun_by);
    const auto state = legs_.find(*begun_by);
    const bool refused = answers != comparison.answers.end() && answers->second.refused;
    if (answers != comparison.answers.end() && usable(answers->second)) return begun_by;
    if (!refused && state != legs_.end() && state->second.here) return std::nullopt;  // it will answer
  }
  for (const auto& [leg, answers] : comparison.answers) {
    if (usable(answers)) return leg;
  }
  return std::nullopt;
}

const Replicas::Held* Replicas::differs_from_held(const Comparison& comparison,
                                                  const Answers& answers) const {
  for (size_t index = 0; index < comparison.extents.size(); ++index) {
    const auto held = comparison.held.find(comparison.extents[index]);
    if (held != comparison.held.end() && answers.digests[index] != held->second.crc) return &held->second;
  }
  return nullptr;
}

void Replicas::differ(const Comparison& comparison, LegId leg, std::optional<LegId> other, const Held* held) {
  const bool known = held != nullptr && held->from && legs_.contains(*held->from);
  const std::string from = known ? " from " + legs_.at(*held->from).peer : "";
  const std::string& name = comparison.subject.name;
  const std::string& peer = legs_.at(leg).peer;
  std::string message = other ? fmt::format(
                                    "{} at {} and at {} differ: compare the two files, and get it from the "
                                    "node that has the right one",
                                    name, legs_.at(*other).peer, peer)
                              : fmt::format(
                                    "{} at {} differs from what has arrived of it already{}: compare the "
                                    "files of the nodes, and get "
                                    "it from the one that has the right one",
                                    name, peer, from);
  actions_.disagreements.push_back(
      {.object = comparison.subject.object, .leg = leg, .other = other, .message = std::move(message)});
}

void Replicas::remove(ObjectId object) {
  const auto at = comparisons_.find(object);
  if (at == comparisons_.end()) return;
  for (const auto& [leg, answers] : at->second.answers) {
    const auto open = static_cast<size_t>(std::count_if(answers.digests.begin(), answers.digests.end(),
                                                        [](const auto& digest) { return !digest; }));
    Leg& state = legs_[leg];
    if (state.here) state.unanswered -= std::min(state.unanswered, open);
  }
  comparisons_.erase(at);
  std::erase_if(actions_.questions, [object](const Portion& question) { return question.object == object; });
  for (const auto& [leg, state] : legs_) {
    if (state.here) ask_more(leg);
  }
}

Replicas::Actions Replicas::take_actions() { return std::exchange(actions_, {}); }

}  // namespace sluice::parts
