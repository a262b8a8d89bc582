// Which peers have a probe reflected by this node now: one of each peer at a time.
//
// Pure. All transfers of a node share one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

namespace sluice::transfer {

class Reflecting {
 public:
  using Place = std::shared_ptr<const std::string>;

  // Nothing: a probe of this peer is reflected already. Otherwise the peer's place, for as long as it is
  // held.
  Place take(const std::string& peer) {
    std::erase_if(places_, [](const auto& place) { return place.second.expired(); });
    if (places_.contains(peer)) return nullptr;
    Place taken = std::make_shared<const std::string>(peer);
    places_[peer] = taken;
    return taken;
  }

 private:
  std::map<std::string, std::weak_ptr<const std::string>> places_;
};

}  // namespace sluice::transfer
