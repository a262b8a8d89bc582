// SPDX-License-Identifier: Apache-2.0
#include "control/node/grants.h"

#include <fmt/format.h>

#include "control/async/clock.h"

namespace sluice::node {

Result<std::optional<transfer::Granted>> judge_grant(const GrantShown& shown, const identity::Standing& now) {
  using None = std::optional<transfer::Granted>;
  // Whoever was called only asks, or tells of an end: it shows nothing.
  if (shown.began_here || shown.hello.ended || (!shown.hello.grant && shown.hello.inquires)) return None();
  // Somebody else's: the caller hears what anybody does (transfer/peer_call.h), and not that there is one.
  if (shown.knows_session && !shown.of_caller) return None();
  if (!shown.hello.grant) {
    if (!shown.known) return None();
    return Error{ErrorCode::kPeerUntrusted,
                 fmt::format("{} ordered this session, and the call shows no grant: begin another session",
                             shown.known->issuer)};
  }
  if (shown.knows_session && !shown.known)
    return Error{ErrorCode::kPeerUntrusted,
                 "the session began without a grant, and cannot go on with one: begin another session"};
  if (shown.known && shown.known->grant == *shown.hello.grant) return shown.known;
  Result<transfer::Granted> granted = grant::check(*shown.hello.grant,
                                                   {.session_id = shown.hello.session_id,
                                                    .shown_by = shown.peer,
                                                    .self = *now.self,
                                                    .known = shown.knows_session,
                                                    .now_unix_ns = async::unix_ns()},
                                                   *now.trust);
  if (!granted) return granted.error();
  if (shown.known && shown.known->issuer != granted->issuer)
    return Error{ErrorCode::kPeerUntrusted, "the session is for another node: begin another session"};
  return None(std::move(*granted));
}

bool is_second_presenter(const GrantShown& shown) {
  if (!shown.hello.grant || !shown.known || shown.began_here) return false;
  if (shown.known->grant == *shown.hello.grant) return true;
  // Renewed, perhaps. One that somebody else has signed under the same id is no copy of it.
  const Result<grant::Signed> other = grant::read(*shown.hello.grant);
  const Result<grant::Signed> its = grant::read(shown.known->grant);
  return other && its && other->grant.id == its->grant.id && other->grant.issuer == its->grant.issuer;
}

}  // namespace sluice::node
