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

Error superseded(const transfer::Lease& lease) {
  return {ErrorCode::kSuperseded,
          fmt::format("lease {} was taken under a higher epoch: whoever has it now goes on, and this session "
                      "does not",
                      transfer::shown_lease(lease))};
}

}  // namespace

LeaseDesk::LeaseDesk(std::shared_ptr<runtime::Services> services, const std::vector<Task>& tasks)
    : services_(std::move(services)), tasks_(tasks) {}

LeaseDesk::~LeaseDesk() { *alive_ = false; }

Status LeaseDesk::restore() {
  Result<std::vector<transfer::LeaseRow>> rows = services_->journal->leases();
  if (!rows) return rows.error();
  for (transfer::LeaseRow& row : *rows) book_.restore(std::move(row));
  return {};
}

std::optional<Error> LeaseDesk::over(const transfer::Lease& lease) const {
  if (!book_.is_stale(lease)) return std::nullopt;
  return superseded(lease);
}

// A session that is complete ends by itself, and one that has ended lets go of its files.
bool LeaseDesk::end_lower(const transfer::Lease& lease) {
  bool none = true;
  for (const Task& task : std::vector<Task>(tasks_)) {
    const auto& its = task->transfer().job().lease;
    if (!its || its->name != lease.name || its->epoch >= lease.epoch) continue;
    if (!task->transfer().ended()) task->post(transfer::Cancel{superseded(*its)});
    none = none && !task->transfer().may_write();
  }
  return none;
}

asio::awaitable<Result<bool>> LeaseDesk::claim(Claim claim) {
  const std::shared_ptr<bool> alive = alive_;
  const std::shared_ptr<runtime::Services> services = services_;
  const lease::LeaseBook::Claim asked{.lease = claim.lease,
                                      .holder = claim.holder,
                                      .goes_on = claim.goes_on,
                                      .now_unix_ns = async::unix_ns()};
  const Result<lease::LeaseBook::Answer> answer = book_.judge(asked);
  if (!answer) co_return answer.error();
  const std::string name = claim.lease.name;
  if (unwritten_.contains(name)) co_return false;  // somebody has just taken it
  if (*answer == lease::LeaseBook::Answer::kTakes) {
    const transfer::LeaseRow row = book_.take(asked);
    unwritten_.insert(name);
    (void)end_lower(claim.lease);  // at once, not when the disk has answered
    auto write = [services, row] { return services->journal->write(row); };
    const Status written = co_await services->pool.wait_for(std::move(write));
    if (!*alive) co_return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
    unwritten_.erase(name);
    if (!written) co_return written.error();
    co_await forget_old();
    if (!*alive) co_return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
    if (book_.is_stale(claim.lease)) co_return superseded(claim.lease);
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
  const std::vector<std::string> old = book_.forget_old(async::unix_ns(), in_use);
  if (old.empty()) co_return;
  const std::shared_ptr<runtime::Services> services = services_;
  auto forget = [services, old] { return services->journal->forget_leases(old); };
  const Status forgotten = co_await services->pool.wait_for(std::move(forget));
  if (!forgotten) log::of(log::kSession)->warn("{}", forgotten.error().message);
}

}  // namespace sluice::node
