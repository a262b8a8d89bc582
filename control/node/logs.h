// The logs of this node, as an operator reads them and says how much is noted: the network log of a session,
// and the daemons' own.
//
// On control's one io_context thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "control/node/sessions.h"

namespace sluice::node {

// A session's network log as it is now; on the loop, within one turn.
struct LogView {
  std::string id;
  int64_t started_unix_ns = 0;
  bool ended = false;
  const board::SessionLog* log = nullptr;
};

// Of the log of a part of the daemons (dataplane/base/log.h).
struct ComponentLevel {
  std::string component;
  std::string level;  // empty: the dataplane is not there to say
};

class Logs {
 public:
  // `sessions` outlives it.
  Logs(std::shared_ptr<runtime::Services> services, const Sessions& sessions)
      : services_(std::move(services)), sessions_(sessions) {}

  // ---- the network log of a session ----
  Result<LogView> log(const std::string& id) const;
  Result<std::string> set_level(const std::string& id, const std::string& name) const;  // -> the whole id
  // ---- the daemons' own: how much each component tells. A restart goes back to the configuration ----
  asio::awaitable<std::vector<ComponentLevel>> component_levels() const;
  asio::awaitable<Status> set_component_level(std::string component, std::string level) const;  // "": of all

 private:
  const std::shared_ptr<runtime::Services> services_;
  const Sessions& sessions_;
};

}  // namespace sluice::node
