// The sessions of a probe that runs for days, one after the other: a node or a peer that is away for a while
// does not end it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "control/client/client.h"
#include "tools/cli/app.h"
#include "tools/cli/canceller.h"

namespace sluice::cli {

class ProbeSessions {
 public:
  // `patience_s`: for so long it tries again what fails for want of a daemon, the peer, or room.
  ProbeSessions(const Context& context, Canceller& canceller, double patience_s)
      : context_(context), canceller_(canceller), patience_s_(patience_s) {}

  // How it ended. An error, unless it is one of a session that ends by itself: the first one fails at once,
  // so that whoever typed the command sees why. kCancelled: it was interrupted.
  Result<api::Session> run(const api::TransferRequest& request,
                           const std::function<void(const api::Session&)>& on_change = {});
  // Sessions that came to no end of their own, and were begun anew.
  uint64_t tried_again() const { return tried_again_; }
  bool interrupted() const { return canceller_.interrupted(); }

 private:
  using OnChange = std::function<void(const api::Session&)>;
  Result<api::Session> once(const api::TransferRequest& request, const OnChange& on_change);
  Result<api::Session> follow(const std::string& id, const OnChange& on_change);
  Status connect();
  bool connect_anew();

  const Context& context_;
  Canceller& canceller_;
  const double patience_s_;
  std::shared_ptr<api::Client> client_;
  bool one_has_ended_ = false;
  uint64_t tried_again_ = 0;
};

}  // namespace sluice::cli
