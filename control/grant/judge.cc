// SPDX-License-Identifier: Apache-2.0
#include "control/grant/judge.h"

#include <fmt/format.h>

namespace sluice::grant {
namespace {

using transfer::Granted;

Result<std::optional<Granted>> judge_call(const Call& call, const identity::Standing& now) {
  using None = std::optional<Granted>;
  // Whoever was called only asks, or tells of an end: it shows nothing.
  if (call.began_here || call.hello.ended || (!call.hello.grant && call.hello.inquires)) return None();
  // Somebody else's: the caller hears what anybody does (transfer/peer_call.h), and not that there is one.
  if (call.knows_session && !call.of_caller) return None();
  if (!call.hello.grant) {
    if (!call.known) return None();
    return Error{ErrorCode::kPeerUntrusted,
                 fmt::format("{} ordered this session, and the call shows no grant: begin another session",
                             call.known->issuer)};
  }
  if (call.knows_session && !call.known)
    return Error{ErrorCode::kPeerUntrusted,
                 "the session began without a grant, and cannot go on with one: begin another session"};
  if (call.known && call.known->grant == *call.hello.grant) return call.known;
  Result<Granted> granted = check(*call.hello.grant,
                                  {.session_id = call.hello.session_id,
                                   .shown_by = call.peer,
                                   .self = *now.self,
                                   .known = call.knows_session,
                                   .now_unix_ns = call.now_unix_ns},
                                  *now.trust);
  if (!granted) return granted.error();
  if (call.known && call.known->issuer != granted->issuer)
    return Error{ErrorCode::kPeerUntrusted, "the session is for another node: begin another session"};
  return None(std::move(*granted));
}

bool is_second_presenter(const Call& call) {
  if (!call.active || call.of_caller || !call.hello.grant || !call.known || call.began_here) return false;
  if (call.known->grant == *call.hello.grant) return true;
  // Renewed, perhaps. One that somebody else has signed under the same id is no copy of it.
  const Result<Signed> other = read(*call.hello.grant);
  const Result<Signed> its = read(call.known->grant);
  return other && its && other->grant.id == its->grant.id && other->grant.issuer == its->grant.issuer;
}

Error second_presenter(const std::string& peer) {
  return {ErrorCode::kPeerUntrusted,
          "node " + peer +
              " has shown the grant of this session, which was given to another node: the session ends; "
              "find out how it came there, and order the transfer again"};
}

}  // namespace

Judged judge(const Call& call, const identity::Standing& now) {
  if (is_second_presenter(call)) {
    const Error error = second_presenter(call.peer.name);
    return {.granted = error, .ends = error};
  }
  return {.granted = judge_call(call, now), .ends = {}};
}

}  // namespace sluice::grant
