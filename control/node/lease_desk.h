// Which lease a session of this node runs under, and what has to end before it may (docs/WIRE.md, 2.14).
//
// On the loop's thread; the journal is written on the node's pool. A lease counts from the moment on at which
// it is claimed, and nothing is done under it before the journal has it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/lease/lease_claims.h"
#include "control/runtime/transfer_task.h"

namespace sluice::node {

class LeaseDesk {
 public:
  using Task = std::shared_ptr<runtime::TransferTask>;
  static constexpr std::chrono::seconds kEndsWithin{60};  // what a session of this node waits for

  // `tasks`: of the node's sessions; it outlives this object.
  LeaseDesk(std::shared_ptr<runtime::Services> services, const std::vector<Task>& tasks);
  ~LeaseDesk();
  LeaseDesk(const LeaseDesk&) = delete;
  LeaseDesk& operator=(const LeaseDesk&) = delete;

  // From the journal, before its sessions.
  Status restore();
  // Is this over? Then a session from the journal that ran under it does not go on.
  std::optional<Error> over(const transfer::Lease& lease) const { return claims_.over(lease); }

  struct Claim {
    transfer::Lease lease;
    std::string holder;    // the node that begins the session; empty: this one
    bool goes_on = false;  // the session has run here under just this lease
  };
  // True: now. False: what runs under a lower epoch may write still; it ends, and whoever claims asks again.
  // kSuperseded, kResources: not at all.
  asio::awaitable<Result<bool>> claim(Claim claim);
  // The same, and waits. kStalled: it has not ended within kEndsWithin.
  asio::awaitable<Status> claim_and_wait(Claim claim);

 private:
  // True: none may write any more.
  bool end_lower(const transfer::Lease& lease);
  asio::awaitable<void> forget_old();

  const std::shared_ptr<runtime::Services> services_;
  const std::vector<Task>& tasks_;
  lease::LeaseClaims claims_;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // coroutines may outlive this object
};

}  // namespace sluice::node
