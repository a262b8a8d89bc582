// SPDX-License-Identifier: Apache-2.0
#include "control/parts/witness.h"

#include <algorithm>
#include <utility>

namespace sluice::parts {

Witness::Witness(ObjectId object, const recovery::Layout& layout, std::vector<Range> holes)
    : object_(object), layout_(layout), holes_(std::move(holes)) {}

Witness::Source& Witness::source(LegId leg) {
  const auto [at, is_new] = sources_.try_emplace(leg);
  if (is_new) {
    at->second.said = recovery::ExtentLedger(layout_);
    for (const Range& hole : holes_) at->second.said.add_zeros(hole);
  }
  return at->second;
}

void Witness::name(const ExtentMap& extents) {
  for (ExtentId at = extents.next_set(ExtentId(0)); at < extents.end_id();) {
    const ExtentId end = extents.next_clear({.first = at, .end = extents.end_id()});
    named_.add({.first = at, .end = end});
    at = extents.next_set(end);
  }
  for (const Range& hole : holes_) named_.remove(extents.whole_in(hole));
}

void Witness::held(const ExtentMap& there) {
  name(there);
  held_ = !named_.empty();
}

void Witness::has_holes(std::vector<Range> holes) {
  holes_ = std::move(holes);
  doubted_ = true;
  sources_.clear();  // what they have said was of other holes
  witness_.reset();
  due_.clear();
  ExtentMap all(layout_);
  all.set({.first = ExtentId(0), .end = all.end_id()});
  name(all);
}

void Witness::asked(LegId leg, ExtentRun extents) {
  senders_.insert(leg);
  source(leg).sends.add(extents);
  named_.add(extents);
  for (auto& [other, its] : sources_)
    if (other != leg) its.sends.remove(extents);
  if (!witness_) return;
  if (witness_ == leg) return due_.remove(extents);
  ask_for(sources_.at(*witness_), extents);
}

void Witness::ask_for(const Source& witness, ExtentRun extents) {
  for (const ExtentRun& run : witness.said.map().missing(extents)) due_.add(run);
  for (const ExtentRun& run : witness.asked.within(extents)) due_.remove(run);
}

void Witness::all_sent() {
  for (auto& [leg, its] : sources_) its.sends.clear();
  if (!witness_) return;
  for (const ExtentRun& run : named_.all()) ask_for(sources_.at(*witness_), run);
}

void Witness::said(LegId leg, ExtentId first, std::span<const uint64_t> digests) {
  Source& its = source(leg);
  for (size_t index = 0; index < digests.size(); ++index) {
    const ExtentId extent = first.plus(index);
    if (!its.said.map().is_set(extent)) (void)its.said.add(extent, digests[index]);
    if (witness_ == leg) due_.remove(run_of(extent));
    if (!its.asked.contains(extent)) continue;
    its.asked.remove(run_of(extent));
    ++answers_;
  }
}

void Witness::choose(LegId leg) {
  const Source& its = source(leg);
  witness_ = leg;
  due_.clear();
  for (const ExtentRun& run : named_.all()) ask_for(its, run);
  for (const ExtentRun& run : its.sends.all()) due_.remove(run);
}

void Witness::dismiss(LegId leg) {
  if (witness_ != leg) return;
  witness_.reset();
  due_.clear();
}

void Witness::leave(LegId leg) {
  dismiss(leg);
  if (const auto its = sources_.find(leg); its != sources_.end()) its->second.asked.clear();
}

uint64_t Witness::unanswered(LegId leg) const {
  const auto its = sources_.find(leg);
  return its == sources_.end() ? 0 : its->second.asked.extents();
}

std::optional<Portion> Witness::take_question(uint64_t extents_most) {
  if (!witness_ || due_.empty() || extents_most == 0) return std::nullopt;
  Source& witness = sources_.at(*witness_);
  Portion question{.leg = *witness_, .object = object_, .ranges = {}};
  while (!due_.empty() && extents_most != 0) {
    ExtentRun run = due_.first();
    run.end = std::min(run.end, run.first.plus(extents_most));
    extents_most -= run.end.value() - run.first.value();
    due_.remove(run);
    witness.asked.add(run);
    question.ranges.push_back(witness.said.map().bytes_of(run));
  }
  return question;
}

std::optional<uint64_t> Witness::digest() const {
  if (!witness_) return std::nullopt;
  const recovery::ExtentLedger& said = sources_.at(*witness_).said;
  return said.complete() ? std::optional(said.digest()) : std::nullopt;
}

}  // namespace sluice::parts
