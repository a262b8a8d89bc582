// What a simulated control does about leases and grants, before a call comes to a session: what control/node
// does with control/lease and control/grant.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "control/grant/judge.h"
#include "tools/sim/control.h"
#include "tools/sim/papers.h"

namespace sluice::sim {
namespace {

constexpr uint64_t kLookNs = 2'000'000'000;  // control/node/trust_watch.cc

}  // namespace

// ---- leases --------------------------------------------------------------------------------------

bool Control::end_lower(const transfer::Lease& lease) {
  bool none = true;
  for (const auto& session : sessions()) {
    const auto& its = session->transfer().job().lease;
    if (session->over() || !lease::LeaseClaims::ends(its, lease)) continue;
    if (!session->transfer().ended()) session->post(transfer::Cancel{lease::LeaseClaims::superseded(*its)});
    none = none && (session->over() || !session->transfer().may_write());
  }
  return none;
}

// Whoever takes one is told to call again: by then the journal has the row.
Result<bool> Control::may_write(const Called& called) {
  const std::optional<transfer::Lease>& lease = called.hello.lease;
  if (!lease || host_.plan.broken == Break::kNoLease) return true;
  const std::string holder = node_name(called.caller);
  const lease::LeaseClaims::Claim claim{.lease = *lease,
                                        .holder = holder,
                                        .goes_on = called.session != nullptr || called.saved != nullptr,
                                        .now_unix_ns = host_.unix_ns()};
  const Result<lease::LeaseClaims::Step> step = claims_.claim(claim);
  if (!step) {
    ++host_.trace.reached.leases_refused;
    return step.error();
  }
  switch (step->next) {
    case lease::LeaseClaims::Next::kLater:
      return false;
    case lease::LeaseClaims::Next::kLook:
      return end_lower(*lease);
    case lease::LeaseClaims::Next::kWrite:
      break;
  }
  ++host_.trace.reached.leases_taken;
  (void)end_lower(*lease);
  Transaction row{.session = {}, .batch = {}, .lease = step->row};
  host_.commit(std::move(row), transfer::Durability::kPower, [weak = weak_from_this(), lease = *lease] {
    if (const auto self = weak.lock()) self->claims_.written(lease);
  });
  return false;
}

void Control::restore_leases() {
  for (const auto& [name, row] : host_.journal.leases()) claims_.restore(row);
  if (host_.plan.broken == Break::kNoLease) return;
  for (const auto& session : sessions()) {
    const auto& its = session->transfer().job().lease;
    if (session->over() || session->transfer().ended() || !its) continue;
    if (std::optional<Error> over = claims_.over(*its)) session->post(transfer::Cancel{std::move(over)});
  }
}

// ---- grants --------------------------------------------------------------------------------------

Result<std::optional<transfer::Granted>> Control::judge_grant(const Called& called) {
  using None = std::optional<transfer::Granted>;
  if (host_.papers == nullptr) return None();
  None known;
  if (called.saved != nullptr) known = called.saved->record.granted;
  if (called.session) known = called.session->transfer().job().granted;
  if (!called.hello.grant && !known) return None();
  const std::string caller = node_name(called.caller);
  const auto is_caller = [&](const auto& leg) { return leg.peer == caller; };
  const bool of_record = called.saved != nullptr && std::ranges::any_of(called.saved->record.legs, is_caller);
  const bool of_session =
      called.session && std::ranges::count(called.session->transfer().leg_peers(), caller) != 0;
  const bool initiator = called.session ? called.session->transfer().initiator()
                                        : called.saved != nullptr && called.saved->record.initiator;
  const Break broken = host_.plan.broken;
  const uint32_t shows = broken == Break::kStolenGrant ? kSource : called.caller;
  const grant::Judged judged = grant::judge(
      {.hello = called.hello,
       .peer = host_.papers->peers[shows],
       .known = known,
       .knows_session = called.session != nullptr || called.saved != nullptr,
       .active = called.session != nullptr,
       .of_caller = of_record || of_session,
       .began_here = initiator,
       .now_unix_ns = broken == Break::kEndlessGrant ? Host::kStartUnixNs + 1'000'000'000 : host_.unix_ns()},
      host_.papers->standing[host_.node]);
  if (judged.ends && called.session) {
    ++host_.trace.reached.grants_shown_twice;
    called.session->post(transfer::Cancel{judged.ends});
  }
  if (!judged.granted) {
    ++host_.trace.reached.grants_refused;
    host_.trace.note(host_.now_ns(), host_.node, judged.granted.error().message);
  } else if (*judged.granted) {
    ++host_.trace.reached.grants_taken;
  }
  return judged.granted;
}

void Control::judge_beginning(const Called& called) const {
  if (host_.node != kDestination || host_.papers == nullptr) return;
  const std::string wrong =
      host_.oracle.owners().begins(called.hello.session_id, called.caller, host_.unix_ns());
  if (!wrong.empty()) host_.oracle.fail(wrong);
}

void Control::look_at_grants() {
  if (host_.papers == nullptr || host_.now_ns() < looked_at_grants_ns_ + kLookNs) return;
  looked_at_grants_ns_ = host_.now_ns();
  if (host_.plan.broken == Break::kEndlessGrant) return;
  for (const auto& session : sessions()) {
    const auto& granted = session->transfer().job().granted;
    if (!granted || session->over()) continue;
    const Status still =
        grant::check_still(*granted, *host_.papers->standing[host_.node].trust, host_.unix_ns());
    if (!still) session->post(transfer::Cancel{still.error()});
  }
}

}  // namespace sluice::sim
