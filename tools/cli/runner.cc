// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <sstream>
#include <utility>

#include "control/identity/hex.h"
#include "control/proto/session_state.h"
#include "tools/cli/dry_run.h"
#include "tools/cli/follow.h"
#include "tools/cli/format.h"
#include "tools/cli/local_files.h"
#include "tools/cli/progress.h"
#include "tools/cli/remote_patterns.h"
#include "tools/cli/run_again.h"
#include "tools/cli/sync.h"
#include "tools/cli/teller.h"
#include "tools/cli/tree_name.h"

namespace sluice::cli {
namespace {

// So many are under way at a time: what a node remembers of sessions that ended, and lets wait, is limited.
constexpr size_t kUnderWayMax = 64;

std::string counted_kinds(const std::vector<ErrorCode>& codes) {
  std::vector<std::pair<ErrorCode, size_t>> counts;
  for (const ErrorCode code : codes) {
    const auto found = std::ranges::find(counts, code, [](const auto& one) { return one.first; });
    if (found == counts.end()) {
      counts.emplace_back(code, 1);
    } else {
      ++found->second;
    }
  }
  if (counts.size() == 1) return std::string(error_code_name(counts.front().first));
  std::string text;
  for (const auto& [code, count] : counts)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, error_code_name(code));
  return text;
}

}  // namespace

void Runner::begin(const RunTransfer& transfer) {
  if (under_way_.size() >= kUnderWayMax) follow_next();
  if (transfer.flags.sync) return sync(transfer);
  if (transfer.flags.dry_run) return preview(transfer);
  const Result<std::string> id = ask(transfer);
  if (!id) return fail(transfer, id.error());
  canceller_.started(client_, *id);
  under_way_.push_back({&transfer, *id});
}

void Runner::follow() {
  while (!under_way_.empty()) follow_next();
}

void Runner::not_begun(const RunTransfer& transfer) {
  fail(transfer, {ErrorCode::kCancelled, "was not begun, since the command was interrupted"});
}

Runner::Failed Runner::take_failed(const Transfers& of) {
  Failed again;
  std::vector<ErrorCode> codes;
  for (const RunTransfer* const transfer : of) {
    const auto failed = failed_.find(transfer);
    if (failed == failed_.end() || settled_.contains(transfer) ||
        !worth_another_try(static_cast<ErrorCode>(failed->second)))
      continue;
    again.transfers.push_back(transfer);
    codes.push_back(static_cast<ErrorCode>(failed->second));
    failed_.erase(failed);
  }
  again.kinds = counted_kinds(codes);
  return again;
}

api::Json Runner::json() const {
  return {{"schema", "sluice.run.v1"}, {"followed", followed_}, {"sessions", sessions_},
          {"previews", previews_},     {"syncs", syncs_},       {"errors", errors_}};
}

// From its beginning to its end: what it sends last depends on what it sent first.
void Runner::sync(const RunTransfer& transfer) {
  if (const Status over = end_earlier(transfer); !over) return fail(transfer, over.error());
  auto request =
      transfer_request(transfer.direction, transfer.flags, context_.environment.working_directory, nullptr);
  if (!request) return fail(transfer, request.error());
  TransferFlags flags = transfer.flags;
  flags.quiet = quiet_;
  const auto outcome = sync_directory(context_.environment, client_, canceller_, flags, *request,
                                      [&](const std::string& id) { memory_.began(transfer, id); });
  if (!outcome) return fail(transfer, outcome.error());
  if (std::ranges::all_of(outcome->ended, [](const api::Session& one) { return api::has_ended(one); }))
    memory_.ended(transfer);
  syncs_.push_back(outcome->object);
  for (const api::Session& session : outcome->ended) notify(transfer, session);
  if (!context_.json) context_.environment.out << outcome->text << std::flush;
  note(transfer, outcome->exit_code);
}

// What it sent counts when the directories are compared again.
Status Runner::end_earlier(const RunTransfer& transfer) {
  const auto known = memory_.take(transfer);
  const auto session = going_on(transfer, known);
  if (!session) return session.error();
  if (!*session) return {};
  if (const Status goes_on = go_on(transfer, *known, **session); !goes_on) return goes_on;
  canceller_.started(client_, known->id);
  const auto ended = watch_session(context_.environment, *client_, known->id, {.quiet = quiet_});
  canceller_.ended(known->id);
  return ended ? Status() : Status(ended.error());
}

void Runner::preview(const RunTransfer& transfer) {
  const Result<api::TransferRequest> request = request_of(transfer);
  if (!request) return fail(transfer, request.error());
  std::ostringstream object;
  Environment collecting{object, context_.environment.err};
  Context with_json{.environment = collecting, .json = true};
  const Result<int> code = dry_run(context_.json ? with_json : context_, *client_, *request);
  if (!code) return fail(transfer, code.error());
  if (context_.json) previews_.push_back(api::Json::parse(object.str(), nullptr, false));
  const bool lacks_some = *code == 0 && !left_out_[&transfer].empty();
  note(transfer, lacks_some ? static_cast<int>(ErrorCode::kPartial) : *code);
}

Result<api::TransferRequest> Runner::request_of(const RunTransfer& transfer) {
  const auto node = client_->node();
  if (!node) return node.error();
  const auto knows = [&node](const std::string& name) { return api::knows_peer(*node, name); };
  auto request = transfer_request(transfer.direction, transfer.flags, context_.environment.working_directory,
                                  nullptr, knows);
  if (!request) return request.error();
  auto left_out = replace_patterns(*client_, transfer.flags, *request, context_.environment.err);
  if (!left_out) return left_out.error();
  left_out_[&transfer] = std::move(*left_out);
  name_tree(*client_, &*request);
  return request;
}

// And its lists of digests.
Result<api::TransferRequest> Runner::prepare(const RunTransfer& transfer) {
  Result<api::TransferRequest> request = request_of(transfer);
  if (!request) return request;
  auto lists = TransferLists::of(transfer.flags, context_, nullptr, &*request);
  if (!lists) return lists.error();
  if (Status names = lists->check_names(context_, *client_, *request); !names) return names.error();
  lists_.insert_or_assign(&transfer, std::move(*lists));
  return request;
}

// The session's id is written down before the node hears of it, where this command may make it.
Result<std::string> Runner::begin_anew(const RunTransfer& transfer, api::TransferRequest request) {
  auto* const send = std::get_if<api::SendRequest>(&request);
  if (send != nullptr && send->from().empty()) {
    send->set_id(identity::random_hex(16));
    memory_.began(transfer, send->id());
  }
  Result<std::string> id = begin_transfer(context_, *client_, request);
  if (id) {
    memory_.began(transfer, *id);
  } else if (id.error().code != ErrorCode::kDaemonNotRunning) {
    memory_.ended(transfer);
  }
  return id;
}

Result<std::string> Runner::ask(const RunTransfer& transfer) {
  const auto known = memory_.take(transfer);
  const auto session = going_on(transfer, known);
  if (!session) return session.error();
  if (!*session || !lists_.contains(&transfer)) {
    Result<api::TransferRequest> request = prepare(transfer);
    if (!request) return request.error();
    if (!*session) return begin_anew(transfer, std::move(*request));
  }
  const Status goes_on = go_on(transfer, *known, **session);
  return goes_on ? Result<std::string>(known->id) : Result<std::string>(goes_on.error());
}

// Nothing: the transfer has no session, or one that has ended.
Result<std::optional<api::Session>> Runner::going_on(const RunTransfer& transfer,
                                                     const std::optional<Session>& known) {
  if (!known) return std::optional<api::Session>();
  auto session = client_->show(known->id);
  if (!session && session.error().code != ErrorCode::kUsage) return session.error();
  if (session && !api::has_ended(*session)) return std::optional(std::move(*session));
  memory_.ended(transfer);
  return std::optional<api::Session>();
}

// What somebody else has paused waits for somebody; what an error or the window of the command holds does
// not.
Status Runner::go_on(const RunTransfer& transfer, const Session& known, const api::Session& session) {
  const std::string short_id = known.id.substr(0, kShortIdBytes);
  const bool paused = session.state() == api::Session::PAUSED;
  const bool by_error = api::stands_still(session);
  const bool by_others = paused && !by_error && !known.held;
  if (known.earlier) followed_.push_back(known.id);
  if (known.earlier || by_others)
    say(transfer,
        fmt::format("session {}{} {}", short_id, known.earlier ? ", which an earlier run began," : "",
                    by_others  ? "is paused: 'sluice session continue " + short_id + "' goes on with it"
                    : by_error ? "was held up by an error, and is continued"
                    : paused   ? "was paused outside the window, and is continued"
                               : "goes on: it is followed to its end"));
  if (by_others) return {};
  if (const Status files = bring_back_files(context_, session); !files || !paused) return files;
  const auto continued = client_->go_on(known.id);
  if (!continued) return continued.error();
  memory_.hold(known.id, false);
  return {};
}

void Runner::follow_next() {
  const Begun each = under_way_.front();
  under_way_.pop_front();
  FollowOptions options;
  options.quiet = quiet_;
  const auto session = watch_session(context_.environment, *client_, each.id, options);
  canceller_.ended(each.id);
  if (session && api::has_ended(*session)) memory_.ended(*each.transfer);
  if (!session) return fail(*each.transfer, session.error());
  api::Json object = api::session_json(*session);
  int exit_code = exit_code_of(*session);
  if (const auto lists = lists_.find(each.transfer);
      lists != lists_.end() && session->state() == api::Session::SUCCEEDED)
    exit_code = tell_lists(context_.environment, *client_, lists->second, *session, &object);
  exit_code = tell_left_out(left_out_[each.transfer], exit_code, &object);
  if (exit_code == static_cast<int>(ErrorCode::kPartial) && exit_code_of(*session) == 0)
    settled_.insert(each.transfer);
  sessions_.push_back(std::move(object));
  notify(*each.transfer, *session);
  note(*each.transfer, exit_code);
  if (session->state() == api::Session::SUCCEEDED && !context_.json)
    context_.environment.out << summary_text(*session) << std::flush;
  tell_failure(context_.environment, *session, each.transfer->place + ": ");
}

void Runner::notify(const RunTransfer& transfer, const api::Session& session) {
  notify_end(context_.environment, context_.node_directory(), transfer.flags.notify, session);
}

void Runner::note(const RunTransfer& transfer, int exit_code) {
  if (exit_code != 0) failed_[&transfer] = exit_code;
}

void Runner::fail(const RunTransfer& transfer, const Error& error) {
  const Error placed{error.code, transfer.place + ": " + error.message};
  errors_.push_back(api::error_json(placed));
  note(transfer, static_cast<int>(error.code));
  context_.environment.err << "sluice: " << printable(placed.message) << "\n" << std::flush;
}

void Runner::say(const RunTransfer& transfer, const std::string& text) {
  context_.environment.err << "sluice: " << printable(transfer.place + ": " + text) << "\n" << std::flush;
}

}  // namespace sluice::cli
