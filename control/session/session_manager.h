// The sessions of this node: what an operator asked for here, and what peers asked for.
//
// All methods run on control's one io_context thread. Outcomes are read with `show` or `watch`; a
// session always ends in success, failure with a reason, or a visible named wait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/exports/exports.h"
#include "control/identity/identity.h"
#include "control/proto/api.pb.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/error.h"

namespace sluice::journal {
class Journal;
}

namespace sluice::control {

// Told about each file now and then, and once with `done`; returns false to stop.
using VerifyReport = std::function<bool(const api::VerifyProgress&)>;
using Verification = std::function<void(const VerifyReport&)>;

class SessionManager {
 public:
  virtual ~SessionManager() = default;

  // Listens for peers, looks for the dataplane. An error (address in use, ...) is final.
  virtual Status start() { return {}; }
  // Lets go of every session (flows and files stay for the next control), then leaves the loop without work,
  // so that its run() returns. The caller may stop the loop earlier if that takes too long.
  virtual void stop() {}

  // Checks what can be checked at once (peer known, sources readable, options valid); the rest is
  // reported by the session. Returns its id.
  virtual Result<std::string> send(const api::SendRequest& request) = 0;
  virtual Result<std::string> get(const api::GetRequest& request) = 0;
  virtual std::vector<api::Session> list() const = 0;  // newest last; ended ones are kept (256)
  virtual Result<api::Session> show(const std::string& id) const = 0;
  virtual Result<api::Session> cancel(const std::string& id) = 0;
  virtual Result<api::Session> pause(const std::string& id) = 0;
  virtual Result<api::Session> go_on(const std::string& id) = 0;
  // Reads the session's files at this node back. What is returned blocks: it is for a thread of the caller's.
  virtual Result<Verification> verification(const std::string& id) = 0;
  // `news` is called whenever a session has ended; one listener.
  virtual void when_ended(std::function<void()> news) = 0;
  virtual api::NodeReply node() const = 0;
  virtual api::CountersReply counters() const = 0;
};

// The manager must go before `io`.
std::unique_ptr<SessionManager> make_session_manager(asio::io_context& io, const config::Node& node,
                                                     identity::Identity identity, exports::Exports exports,
                                                     std::unique_ptr<journal::Journal> journal);

}  // namespace sluice::control
