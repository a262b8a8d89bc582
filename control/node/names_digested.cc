// SPDX-License-Identifier: Apache-2.0
#include "control/node/names_digested.h"

#include <map>
#include <string>

namespace sluice::node {

std::vector<digests::Named> names_digested(const transfer::Saved& saved) {
  std::vector<digests::Named> all;
  for (const catalog::File& file : saved.files) {
    if (file.state != catalog::FileState::kDone) continue;
    for (digests::Named named : file.digests.found) {
      if (named.path.empty()) named.path = file.name;
      all.push_back(std::move(named));
    }
  }
  std::map<std::string, size_t, std::less<>> places;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].target.empty()) places.emplace(all[i].path, i);
  }
  for (digests::Named& named : all) {
    const auto target = places.find(named.target);
    if (named.target.empty() || target == places.end()) continue;
    named.values = all[target->second].values;
    named.size_bytes = all[target->second].size_bytes;
  }
  return all;
}

}  // namespace sluice::node
