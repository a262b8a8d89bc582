// SPDX-License-Identifier: Apache-2.0
#include "control/runtime/standing.h"

#include <chrono>

#include "dataplane/base/check.h"
#include "dataplane/base/log.h"

namespace sluice::runtime {
namespace {

// Anybody who calls makes this look: what was told is not told again.
void tell_problems(Services& services, const identity::Standing& standing) {
  std::string trust;
  for (const Error& problem : standing.trust->problems()) trust += problem.message + "; ";
  const std::string users = standing.users_problem ? standing.users_problem->message : "";
  if (trust + users == services.trust_problems) return;
  services.trust_problems = trust + users;
  if (!trust.empty())
    log::of(log::kPeer)->warn("{}whoever is known by these alone is not trusted, or not found", trust);
  if (!users.empty())
    log::of(log::kPeer)->error("{}; the map of users that was read before counts until then", users);
}

}  // namespace

asio::awaitable<Result<identity::Standing>> standing_now(std::shared_ptr<Services> services) {
  auto load = [services, asked = std::chrono::steady_clock::now()] { return services->standing.now(asked); };
  Result<identity::Standing> standing = co_await services->pool.wait_for(std::move(load));
  if (!standing) co_return standing;
  DCHECK(standing->self && standing->trust, "a standing is whole");
  tell_problems(*services, *standing);
  if (standing->self->fingerprint != services->self->fingerprint)
    log::of(log::kPeer)
        ->info("this node has a new key: {} in place of {}", standing->self->fingerprint,
               services->self->fingerprint);
  services->self = standing->self;
  co_return standing;
}

void remember_offer(Services& services, identity::Offer offer) {
  const auto known = services.offers.find(offer.peer);
  if (known != services.offers.end() && known->second.fingerprint == offer.fingerprint) return;
  log::of(log::kPeer)
      ->warn(
          "{} has a new key, {}, signed by the one that is pinned; to take it: sluice node trust {} "
          "--successor",
          offer.peer, offer.fingerprint, offer.peer);
  services.offers[offer.peer] = std::move(offer);
}

}  // namespace sluice::runtime
