// The parts that an end of a transfer has for its legs, by their numbers.
//
// Pure. A part stays after its attempt: it knows whether its peer has ended.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <map>

#include "control/words/terms.h"

namespace sluice::transfer {

// `Part`: SourceLeg or DestinationLeg.
template <typename Part>
class EndLegs {
 public:
  Part& at(LegId leg) { return parts_[leg]; }  // made when it is first asked for
  const Part* find(LegId leg) const {
    const auto part = parts_.find(leg);
    return part == parts_.end() ? nullptr : &part->second;
  }
  // On which an attempt is under way.
  bool begun(LegId leg) const { return find(leg) != nullptr && find(leg)->begun(); }
  size_t begun() const {
    return static_cast<size_t>(
        std::ranges::count_if(parts_, [](const auto& each) { return each.second.begun(); }));
  }
  template <typename Visit>
  void each(Visit visit) {
    for (auto& [leg, part] : parts_) visit(part);
  }
  template <typename Visit>
  void each_begun(Visit visit) {
    for (auto& [leg, part] : parts_)
      if (part.begun()) visit(part);
  }
  template <typename Visit>
  void each_begun(Visit visit) const {
    for (const auto& [leg, part] : parts_)
      if (part.begun()) visit(part);
  }
  bool peer_ended(LegId leg) const { return find(leg) != nullptr && find(leg)->peer_ended(); }
  bool peer_ended() const {  // of any
    return std::ranges::any_of(parts_, [](const auto& each) { return each.second.peer_ended(); });
  }

 private:
  std::map<LegId, Part> parts_;
};

}  // namespace sluice::transfer
