// SPDX-License-Identifier: Apache-2.0
#include "tools/sim/owners.h"

#include <fmt/format.h>

#include "tools/sim/nodes.h"

namespace sluice::sim {
namespace {

// docs/WIRE.md 2.13: clocks may be apart by so much; and a look each 2 s, with a disk and a stall in between.
constexpr int64_t kClocksNs = 60'000'000'000;
constexpr int64_t kLooksNs = 10'000'000'000;

}  // namespace

std::string Owners::begins(const std::string& session, uint32_t caller, int64_t unix_ns) {
  if (const auto lease = leases_.find(session); lease != leases_.end()) {
    const Lease& its = lease->second;
    if (owner_ && its.epoch < owner_->epoch)
      return fmt::format("{} begins under epoch {} of a lease, and {} has taken epoch {}",
                         node_name(its.node), its.epoch, node_name(owner_->node), owner_->epoch);
    if (owner_ && its.epoch == owner_->epoch && its.node != owner_->node)
      return fmt::format("{} and {} both begin under epoch {} of a lease", node_name(owner_->node),
                         node_name(its.node), its.epoch);
    owner_ = its;
  }
  const auto grant = grants_.find(session);
  if (grant == grants_.end()) return "";
  const Grant& its = grant->second;
  if (caller != its.holder)
    return fmt::format("{} begins by a grant that {} holds", node_name(caller), node_name(its.holder));
  if (ended_.contains(session)) return "a grant opens a session that has ended";
  if (unix_ns > its.end_by_unix_ns + kClocksNs + kLooksNs) return "a session begins by a grant that is over";
  if (begun_.insert(session).second && unix_ns > its.start_by_unix_ns + kClocksNs + kLooksNs)
    return "a session begins by a grant that was to be used before";
  return "";
}

std::string Owners::wrong_writer(uint64_t inode) const {
  const auto session = sessions_.find(inode);
  if (session == sessions_.end()) return "";
  if (over_ && grants_.contains(session->second)) return "bytes are written by a grant that is over";
  const auto lease = leases_.find(session->second);
  if (lease == leases_.end() || !owner_) return "";
  const Lease& its = lease->second;
  if (its.epoch == owner_->epoch && its.node == owner_->node) return "";
  return fmt::format("two nodes write: {} under epoch {} of a lease, and {} has epoch {}",
                     node_name(its.node), its.epoch, node_name(owner_->node), owner_->epoch);
}

}  // namespace sluice::sim
