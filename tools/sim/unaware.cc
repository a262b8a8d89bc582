// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/unaware.h"

#include <fmt/format.h>

namespace sluice::sim {
namespace {

// Does this node know a session that goes on?
bool goes_on(const Host& host, const std::string& id) {
  const auto saved = host.journal.sessions().find(id);
  const bool known = saved != host.journal.sessions().end();
  return known ? !transfer::has_ended(saved->second.record.state) : host.control->has(id);
}

}  // namespace

void Unaware::look(const std::vector<std::unique_ptr<Host>>& hosts, uint64_t now_ns, Oracle& oracle) {
  std::map<std::pair<uint32_t, std::string>, uint64_t> found;
  for (uint32_t node = 0; node < hosts.size(); ++node) {
    const Host& here = *hosts[node];
    const Host& there = *hosts[1 - node];
    const bool both =
        here.control != nullptr && there.control != nullptr && !here.frozen() && !there.frozen();
    if (!both) return since_ns_.clear();  // whoever is away cannot know
    for (const std::string& id : here.control->going_on()) {
      if (goes_on(there, id)) continue;
      const auto before = since_ns_.find({node, id});
      found[{node, id}] = before == since_ns_.end() ? now_ns : before->second;
    }
  }
  since_ns_ = std::move(found);
  for (const auto& [which, since_ns] : since_ns_) {
    if (now_ns - since_ns <= kBoundNs) continue;
    oracle.fail(fmt::format("session {} goes on at {} though it ended at the other node {} s ago",
                            which.second, which.first == kSource ? "src" : "dst",
                            (now_ns - since_ns) / 1'000'000'000));
  }
}

}  // namespace sluice::sim
