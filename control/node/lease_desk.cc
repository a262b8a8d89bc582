// SPDX-License-Identifier: Apache-2.0
#include "control/node/lease_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <asio/use_awaitable.hpp>

#include "control/async/clock.h"
#include "dataplane/base/log.h"

namespace sluice::node {
namespace {

constexpr std::chrono::milliseconds kLookForEnds{50};

}  // namespace

LeaseDesk::LeaseDesk(std::shared_ptr<runtime::Services> services, const std::vector<Task>& tasks)
    : services_(std::move(services)), tasks_(tasks) {}

LeaseDesk::~LeaseDesk() { *alive_ = false; }

Status LeaseDesk::restore() {
  Result<std::vector<transfer::LeaseRow>> rows = services_->journal->leases();
  if (!rows) return rows.error();
  for (transfer::LeaseRow& row : *rows) claims_.restore(std::move(row));
  return {};
}

// A session that is complete ends by itself, and one that has ended lets go of its files.
bool LeaseDesk::end_lower(const transfer::Lease& lease) {
  bool none = true;
  for (const Task& task : std::vector<Task>(tasks_)) {
    const auto& its = task->transfer().job().lease;
    if (!lease::LeaseClaims::ends(its, lease)) continue;
    if (!task->transfer().ended()) task->post(transfer::Cancel{lease::LeaseClaims::superseded(*its)});
    none = none && !task->transfer().may_write();
  }
  return none;
}

asio::awaitable<Result<bool>> LeaseDesk::claim(Claim claim) {
  const std::shared_ptr<bool> alive = alive_;
  const std::shared_ptr<runtime::Services> services = services_;
  const lease::LeaseClaims::Claim asked{.lease = claim.lease,
                                        .holder = claim.holder,
                                        .goes_on = claim.goes_on,
                                        .now_unix_ns = async::unix_ns()};
  const Result<lease::LeaseClaims::Step> step = claims_.claim(asked);
  if (!step) co_return step.error();
  if (step->next == lease::LeaseClaims::Next::kLater) co_return false;
  if (step->next == lease::LeaseClaims::Next::kWrite) {
    const transfer::LeaseRow row = *step->row;
    (void)end_lower(claim.lease);  // at once, not when the disk has answered
    auto write = [services, row] { return services->journal->write(row); };
    const Status written = co_await services->pool.wait_for(std::move(write));
    if (!*alive) co_return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
    claims_.written(claim.lease);
    if (!written) co_return written.error();
    co_await forget_old();
    if (!*alive) co_return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
    if (std::optional<Error> over = claims_.over(claim.lease)) co_return *std::move(over);
  }
  co_return end_lower(claim.lease);
}

asio::awaitable<Status> LeaseDesk::claim_and_wait(Claim claim) {
  const std::shared_ptr<bool> alive = alive_;
  asio::steady_timer timer(services_->io);
  const auto until = std::chrono::steady_clock::now() + kEndsWithin;
  while (std::chrono::steady_clock::now() < until) {
    Claim again = claim;
    const Result<bool> now = co_await this->claim(std::move(again));
    if (!now) co_return now.error();
    if (*now) co_return Status();
    timer.expires_after(kLookForEnds);
    co_await timer.async_wait(asio::use_awaitable);
    if (!*alive) co_return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
  }
  co_return Error{
      ErrorCode::kStalled,
      fmt::format("lease {}: the session that runs here under a lower epoch has not ended within {} "
                  "s; 'sluice session list' says what it waits for",
                  transfer::shown_lease(claim.lease), kEndsWithin.count())};
}

// What the journal does not forget now it is asked for again at the next start.
asio::awaitable<void> LeaseDesk::forget_old() {
  const auto in_use = [this](const std::string& name) {
    return std::ranges::any_of(tasks_, [&name](const Task& task) {
      const auto& its = task->transfer().job().lease;
      return its && its->name == name;
    });
  };
  const std::vector<std::string> old = claims_.forget_old(async::unix_ns(), in_use);
  if (old.empty()) co_return;
  const std::shared_ptr<runtime::Services> services = services_;
  auto forget = [services, old] { return services->journal->forget_leases(old); };
  const Status forgotten = co_await services->pool.wait_for(std::move(forget));
  if (!forgotten) log::of(log::kSession)->warn("{}", forgotten.error().message);
}

}  // namespace sluice::node
