// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/follow.h"

#include <fmt/format.h>

#include <chrono>
#include <ostream>

#include "control/proto/session_state.h"
#include "tools/cli/format.h"
#include "tools/cli/progress.h"
#include "tools/cli/teller.h"
#include "tools/cli/transfer_lists.h"

namespace sluice::cli {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

constexpr char kClearLine[] = "\r\x1b[K";

// The object says what the exit status says, also where the session has no error.
int say_code(int exit_code, const std::string& error, api::Json* object) {
  object->update({{"error_code", exit_code},
                  {"error_name", error_code_name(static_cast<ErrorCode>(exit_code))},
                  {"error", printable(error)}});
  return exit_code;
}

}  // namespace

int exit_code_of(const api::Session& session) {
  if (session.error_code() != 0) return static_cast<int>(session.error_code());
  if (session.state() == api::Session::SUCCEEDED) return 0;
  const bool cancelled = session.state() == api::Session::CANCELLED;
  return static_cast<int>(cancelled ? ErrorCode::kCancelled : ErrorCode::kInternal);
}

Result<api::Session> watch_session(Environment& environment, api::Client& client, const std::string& id,
                                   const FollowOptions& options) {
  const bool terminal = environment.err_is_terminal;
  ProgressPace pace(terminal);
  const auto show = [&](const api::Session& session) {
    if (options.quiet || api::stands_still(session) || !pace.due(session, now_ns())) return true;
    if (terminal) {
      environment.err << kClearLine << progress_line(session, environment.err_columns() - 1) << std::flush;
    } else {
      environment.err << progress_text(session) << "\n" << std::flush;
    }
    return true;
  };
  auto session = client.watch(id, options.timeout_s, show);
  if (terminal && !options.quiet) environment.err << kClearLine << std::flush;
  return session;
}

void tell_failure(Environment& environment, const api::Session& session, const std::string& where) {
  if (exit_code_of(session) == 0) return;  // that it came too late is told as well
  const std::string reason = session.error().empty() ? api::state_name(session) : session.error();
  environment.err << "sluice: " << printable(where + reason) << "\n" << std::flush;
}

int tell_lists(Environment& environment, api::Client& client, const TransferLists& lists,
               const api::Session& session, api::Json* object) {
  const int exit_code = exit_code_of(session);
  if (!lists.any()) return exit_code;
  const Result<TransferLists::Outcome> outcome = lists.finish(client, session);
  if (!outcome) {
    environment.err << "sluice: " << printable(outcome.error().message) << "\n" << std::flush;
    return exit_code != 0 ? exit_code
                          : say_code(static_cast<int>(outcome.error().code), outcome.error().message, object);
  }
  environment.err << outcome->text << std::flush;
  object->update(outcome->object);
  if (exit_code != 0 || outcome->exit_code == 0) return exit_code;
  return say_code(outcome->exit_code, "the list and what has arrived differ", object);
}

int tell_left_out(const std::vector<std::string>& names, int exit_code, api::Json* object) {
  if (names.empty()) return exit_code;
  (*object)["left_out"] = names;
  if (exit_code != 0) return exit_code;
  return say_code(static_cast<int>(ErrorCode::kPartial), names.front() + ": was left out", object);
}

Result<int> follow_session(const Context& context, api::Client& client, const std::string& id,
                           const FollowOptions& options) {
  Environment& environment = context.environment;
  const auto session = watch_session(environment, client, id, options);
  if (!session) return session.error();
  const bool succeeded = session->state() == api::Session::SUCCEEDED;
  api::Json object = api::session_json(*session);
  int exit_code = exit_code_of(*session);
  if (options.lists != nullptr && succeeded)
    exit_code = tell_lists(environment, client, *options.lists, *session, &object);
  exit_code = tell_left_out(options.left_out, exit_code, &object);
  const bool list_has_stdout = options.lists != nullptr && options.lists->to_stdout();
  const std::string summary = succeeded ? summary_text(*session) : "";
  if (list_has_stdout) environment.err << summary << std::flush;
  context.print(object, list_has_stdout ? "" : summary);
  if (!api::stands_still(*session)) {
    environment.err << fmt::format("sluice: session {} has not ended within {} s ({})\n", printable(id),
                                   *options.timeout_s, api::state_name(*session));
    return options.timeout_exit_code;
  }
  tell_failure(environment, *session);
  notify_end(environment, context.node_directory(), options.notify, *session);
  return exit_code;
}

}  // namespace sluice::cli
