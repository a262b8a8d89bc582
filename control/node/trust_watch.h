// What becomes of what runs when keys change: a session with a key that is trusted no more is paused, and a
// connection on which this node showed a key that it has no more is renewed, where the peer takes the new
// one.
//
// On control's one io_context thread; it looks every two seconds, from start() until stop().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "control/node/expiry_warnings.h"
#include "control/node/reception.h"
#include "control/node/sessions.h"

namespace sluice::node {

class TrustWatch {
 public:
  // `sessions` and `reception` outlive it.
  TrustWatch(std::shared_ptr<runtime::Services> services, Sessions& sessions, Reception& reception);
  ~TrustWatch();
  TrustWatch(const TrustWatch&) = delete;
  TrustWatch& operator=(const TrustWatch&) = delete;

  void start();
  void stop();
  const std::vector<identity::Expiry>& expiries() const { return expiries_; }  // as of the last look

 private:
  asio::awaitable<void> watch(std::shared_ptr<bool> alive);
  void look(const identity::Standing& now);
  static void end(const Sessions::Task& task, Error reason);
  void renew_soon(const Sessions::Task& task, const identity::Standing& now);
  asio::awaitable<void> renew(std::shared_ptr<bool> alive, identity::Standing now, identity::Peer peer);

  const std::shared_ptr<runtime::Services> services_;
  Sessions& sessions_;
  Reception& reception_;
  const std::shared_ptr<asio::steady_timer> timer_;
  ExpiryWarnings warnings_;
  std::vector<identity::Expiry> expiries_;
  std::map<std::string, uint64_t> ask_again_ns_;  // by peer: when it is asked again to take the new key
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // coroutines may outlive this object
};

}  // namespace sluice::node
