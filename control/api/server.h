// The operator's API: gRPC on the node's unix socket, in front of a SessionManager and a
// NamesManager.
//
// gRPC calls the handlers on its own threads. Each posts its work to control's io_context, where these
// live, and waits for the result. Only what walks directories of this node for its caller (a comparison, a
// preview) does so on the call's own thread. The io_context must be running whenever a call may arrive, until
// stop() has returned.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <filesystem>
#include <memory>

#include "control/api/names_manager.h"
#include "control/api/session_manager.h"
#include "dataplane/base/error.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::service {

inline constexpr std::chrono::milliseconds kWatchInterval{100};

class Server {
 public:
  virtual ~Server() = default;  // stops
  // Ends the streams, answers what was begun and removes the socket; blocks meanwhile. Not on the
  // io_context's thread, which has to serve the last calls.
  virtual void stop() = 0;
  // One more caller, on a socket that is connected already and does not block.
  virtual void take(UniqueFd connection) = 0;
};

// Removes what a killed predecessor left behind, and nothing that is alive or no socket. kConfiguration also
// for a path that no socket can have.
Status clear_stale_socket(const std::filesystem::path& socket);

// Serves on `socket` (mode 0600). A socket file on which nobody answers is replaced; kConfiguration when
// somebody does, or when the path cannot be bound. Watchers hear of a session's end at once, and of its
// progress every `watch_interval`.
Result<std::unique_ptr<Server>> start_server(asio::io_context& io, SessionManager& sessions,
                                             NamesManager& names, const std::filesystem::path& socket,
                                             std::chrono::milliseconds watch_interval = kWatchInterval);
// Listens nowhere: its callers are given to it. Each watcher holds a thread.
Result<std::unique_ptr<Server>> start_server(asio::io_context& io, SessionManager& sessions,
                                             NamesManager& names, int threads_max);

}  // namespace sluice::service
