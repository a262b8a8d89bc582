// The sessions of this node: what an operator asked for here, and what peers asked for.
//
// All methods run on control's one io_context thread. Outcomes are read with `show` or `watch`; a
// session always ends in success, failure with a reason, or a visible named wait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/proto/api.pb.h"
#include "dataplane/core/error.h"

namespace sluice::control {

class SessionManager {
 public:
  virtual ~SessionManager() = default;

  // Checks what can be checked at once (peer known, sources readable, options valid); the rest is
  // reported by the session. Returns its id.
  virtual Result<std::string> send(const api::SendRequest& request) = 0;
  virtual Result<std::string> get(const api::GetRequest& request) = 0;
  virtual std::vector<api::Session> list() const = 0;           // newest last; ended ones are kept (256)
  virtual Result<api::Session> show(const std::string& id) const = 0;
  virtual Result<api::Session> cancel(const std::string& id) = 0;
  virtual api::NodeReply node() const = 0;
  virtual api::CountersReply counters() const = 0;
};

}  // namespace sluice::control
