// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/probe_sessions.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ostream>

#include "control/proto/session_state.h"
#include "tools/cli/connect.h"
#include "tools/cli/follow.h"
#include "tools/cli/local_files.h"

namespace sluice::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kEndsWithinS = 30;  // a session that was cancelled
constexpr double kLongestWaitS = 60;

double seconds_since(Clock::time_point then) {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

// It may be another way in a while.
bool passes(ErrorCode code) {
  return code == ErrorCode::kDaemonNotRunning || code == ErrorCode::kPeerUnreachable ||
         code == ErrorCode::kStalled || code == ErrorCode::kResources;
}

}  // namespace

Result<api::Session> ProbeSessions::run(const api::TransferRequest& request, const OnChange& on_change) {
  const Clock::time_point began = Clock::now();
  double wait_s = 1;
  while (true) {
    Error error;
    if (auto session = once(request, on_change); !session) {
      error = session.error();
    } else if (const auto code = static_cast<ErrorCode>(exit_code_of(*session)); !passes(code)) {
      one_has_ended_ = true;
      return session;
    } else {
      error = {code, session->error()};
    }
    if (interrupted()) return Error{ErrorCode::kCancelled, "interrupted"};
    if (!passes(error.code) || !one_has_ended_ || seconds_since(began) + wait_s > patience_s_) return error;
    context_.environment.err << fmt::format("sluice: {}; trying again in {:.0f} s\n",
                                            printable(error.message), wait_s)
                             << std::flush;
    ++tried_again_;
    if (error.code == ErrorCode::kDaemonNotRunning) client_ = nullptr;
    if (!canceller_.wait(std::chrono::nanoseconds(static_cast<int64_t>(wait_s * 1e9))))
      return Error{ErrorCode::kCancelled, "interrupted"};
    wait_s = std::min(2 * wait_s, kLongestWaitS);
  }
}

Result<api::Session> ProbeSessions::once(const api::TransferRequest& request, const OnChange& on_change) {
  if (interrupted()) return Error{ErrorCode::kCancelled, "interrupted"};
  if (const Status connected = connect(); !connected) return connected.error();
  const Result<std::string> id = begin_transfer(context_, *client_, request);
  if (!id) return id.error();
  canceller_.started(client_, *id);
  auto session = follow(*id, on_change);
  canceller_.ended(*id);
  return session;
}

// A session outlives a restart of control, and a connection to it does not.
Result<api::Session> ProbeSessions::follow(const std::string& id, const OnChange& on_change) {
  const Clock::time_point began = Clock::now();
  while (true) {
    auto session = client_->watch(id, std::nullopt, [&on_change](const api::Session& now) {
      if (on_change) on_change(now);
      return true;
    });
    if (session && !api::has_ended(*session)) {
      // An error that an operator would have to look at holds it. Nothing of it is worth keeping.
      const Error error{static_cast<ErrorCode>(exit_code_of(*session)), session->error()};
      (void)client_->cancel(id);
      (void)client_->watch(id, kEndsWithinS, [](const api::Session&) { return true; });
      return error;
    }
    if (session || session.error().code != ErrorCode::kDaemonNotRunning) return session;
    do {
      if (seconds_since(began) > patience_s_ || !canceller_.wait(std::chrono::seconds(1))) return session;
    } while (!connect_anew());
    canceller_.started(client_, id);
  }
}

bool ProbeSessions::connect_anew() {
  client_ = nullptr;
  return static_cast<bool>(connect());
}

Status ProbeSessions::connect() {
  if (client_) return {};
  auto connected = connect_to_node(context_.node_directory());
  if (!connected) return connected.error();
  client_ = std::move(*connected);
  return {};
}

}  // namespace sluice::cli
