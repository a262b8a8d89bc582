// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/folder_sender.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

#include "control/identity/hex.h"
#include "control/identity/node_files.h"
#include "control/proto/session_state.h"
#include "control/receipt/receipt.h"
#include "dataplane/base/counted.h"
#include "tools/cli/connect.h"
#include "tools/cli/follow.h"
#include "tools/cli/format.h"
#include "tools/cli/local_files.h"
#include "tools/cli/progress.h"
#include "tools/cli/when.h"

namespace sluice::cli {
namespace {

using unattended::kNever;
using unattended::kOneSecondNs;
using Numbers = std::vector<std::pair<uint64_t, std::string>>;

constexpr int64_t kFollowNs = 15 * kOneSecondNs;  // an event says more, and sooner
constexpr int64_t kSilenceNs = 2 * kOneSecondNs;  // between calls to a node that does not answer
constexpr int64_t kDoubtNs = 5 * kOneSecondNs;    // within which a call of before may still begin a session

std::string short_id(const std::string& id) { return printable(id.substr(0, kShortIdBytes)); }

std::string counted_files(size_t count) { return base::counted(count, "file", "files"); }

// Of the names that did not arrive, as they are in the batch. Nothing: the session does not name them all, or
// one that is none of the batch. Several that are shown alike count as missing together: none is removed.
std::optional<std::set<std::string>> missing_of(const api::Session& session,
                                                const std::vector<std::string>& names) {
  std::multimap<std::string, std::string> by_shown;
  for (const std::string& name : names) by_shown.emplace(printable(name), name);
  std::set<std::string> missing;
  uint64_t failed = 0;
  for (const api::MissingName& one : session.names().missing()) {
    if (one.arrived()) continue;
    ++failed;
    const auto [first, last] = by_shown.equal_range(one.path());
    if (first == last) return std::nullopt;
    for (auto found = first; found != last; ++found) missing.insert(found->second);
  }
  if (failed < session.names().failed() + session.names().left_out()) return std::nullopt;
  return missing;
}

}  // namespace

void FolderSender::say(const std::string& text) const {
  context_.environment.err << "sluice: " << printable(text) << "\n" << std::flush;
}

api::Client* FolderSender::client() {
  if (client_ != nullptr) return client_.get();
  auto connected = connect_to_node(context_.node_directory());
  if (!connected) {
    if (!std::exchange(said_silent_, true))
      say(connected.error().message + "; it is asked again until it answers");
    return nullptr;
  }
  said_silent_ = false;
  client_ = std::move(*connected);
  return client_.get();
}

bool FolderSender::follows(const std::string& session) const {
  return std::any_of(files_.batches().begin(), files_.batches().end(),
                     [&session](const auto& one) { return one.second.session == session; });
}

Status FolderSender::begin(const unattended::SentFiles::Files& files, int64_t now_ns) {
  api::Client* const node = client();
  if (node == nullptr) return Error{ErrorCode::kDaemonNotRunning, "the node does not answer"};
  api::SendRequest request = options_.request;
  for (const auto& [name, id] : files) request.mutable_options()->add_names(name);
  request.set_id(identity::random_hex(16));
  const uint64_t number = files_.begin(files, unix_now_ns());
  files_.runs_as(number, request.id());
  if (Status status = remember_(); !status) return status;
  const Result<std::string> id = begin_transfer(context_, *node, api::TransferRequest(std::move(request)));
  if (!id && id.error().code == ErrorCode::kDaemonNotRunning) {
    lose_client();  // whether it has begun it, look() finds out
    next_ns_ = std::min(next_ns_, now_ns + kSilenceNs);
    return {};
  }
  if (id) {
    files_.runs_as(number, *id);  // a node of before goes by an id of its own
    followed_[number].known = true;
    next_ns_ = std::min(next_ns_, now_ns + kFollowNs);
  } else {
    (void)files_.failed(number);
  }
  if (Status status = remember_(); !status) return status;
  return id ? Status() : Status(id.error());
}

Result<FolderSender::Ended> FolderSender::look(int64_t now_ns) {
  Ended ended;
  next_ns_ = kNever;
  Numbers numbers;
  for (const auto& [number, batch] : files_.batches()) numbers.emplace_back(number, batch.session);
  for (const auto& [number, session] : numbers) {
    next_ns_ = std::min(next_ns_, now_ns + kFollowNs);
    if (client() == nullptr) {
      next_ns_ = now_ns + kSilenceNs;
      break;
    }
    if (const Status status = look_at(number, session, now_ns, &ended); !status) return status.error();
  }
  if (Status status = remember_(); !status) return status.error();
  return ended;
}

Status FolderSender::look_at(uint64_t number, const std::string& session, int64_t now_ns, Ended* ended) {
  const auto shown = client()->show(session);
  if (!shown && shown.error().code == ErrorCode::kUsage) {
    // A call of before may still begin it.
    Followed& followed = followed_[number];
    if (!followed.unknown_since_ns) followed.unknown_since_ns = now_ns;
    if (!followed.known && now_ns - *followed.unknown_since_ns < kDoubtNs) {
      next_ns_ = std::min(next_ns_, now_ns + kOneSecondNs);
      return {};
    }
    say(fmt::format(
        "session {} is not known to the node: its {} are sent again; what has arrived is compared there, "
        "not replaced",
        short_id(session), counted_files(files_.batches().at(number).names.size())));
    release(number, ended);
    return {};
  }
  if (!shown) {
    lose_client();
    next_ns_ = std::min(next_ns_, now_ns + kSilenceNs);
    return {};
  }
  followed_[number].known = true;
  if (api::has_ended(*shown)) return end(number, *shown, ended);
  if (api::stands_still(*shown)) {
    go_on(number, *shown, now_ns);
  } else if (shown->state() == api::Session::TRANSFERRING) {
    followed_[number].hold = {};
  }
  return {};
}

void FolderSender::release(uint64_t number, Ended* ended) {
  for (std::string& name : files_.failed(number)) ended->failed.push_back(std::move(name));
  followed_.erase(number);
}

void FolderSender::go_on(uint64_t number, const api::Session& session, int64_t now_ns) {
  Hold& hold = followed_[number].hold;
  if (hold.due_ns == 0) {
    const int64_t wait_ns = waits_.after_ns(++hold.failures);
    hold.due_ns = now_ns + wait_ns;
    say(fmt::format("session {} is held up: {}; it is continued in {} s", short_id(session.id()),
                    session.error(), wait_ns / kOneSecondNs));
  } else if (now_ns >= hold.due_ns) {
    hold.due_ns = 0;
    if (const auto continued = client()->go_on(session.id()); !continued)
      say(fmt::format("session {} cannot be continued: {}", short_id(session.id()),
                      continued.error().message));
    next_ns_ = std::min(next_ns_, now_ns + kSilenceNs);
    return;
  }
  next_ns_ = std::min(next_ns_, hold.due_ns);
}

Status FolderSender::end(uint64_t number, const api::Session& session, Ended* ended) {
  Ended now;
  bool receipt = false;
  const bool came = session.state() == api::Session::SUCCEEDED;
  const bool whole = came && exit_code_of(session) != static_cast<int>(ErrorCode::kPartial);
  const auto missing =
      whole ? std::set<std::string>() : missing_of(session, files_.batches().at(number).names);
  if (came && missing) {
    receipt = keep_receipt(session);
    now.failed.assign(missing->begin(), missing->end());
    now.arrived = files_.arrived(number, *missing, receipt);
    followed_.erase(number);
  } else {
    release(number, &now);
  }
  // Nothing is removed before this is on the disk.
  if (Status status = remember_(); !status) return status;
  tell(session, now, receipt);
  ended->arrived.insert(ended->arrived.end(), now.arrived.begin(), now.arrived.end());
  ended->failed.insert(ended->failed.end(), now.failed.begin(), now.failed.end());
  return {};
}

bool FolderSender::keep_receipt(const api::Session& session) const {
  if (options_.receipts.empty()) return true;
  const auto receipt = receipt::make_receipt(context_.node_directory(), session, receipt::Covers::kArrived);
  Status kept = receipt ? identity::write_small_file(options_.receipts / (session.id() + ".json"),
                                                     api::to_line(*receipt), 0644, identity::Replace::kYes)
                        : Status(receipt.error());
  if (!kept)
    say(fmt::format("no receipt of session {}, so its files stay: {}", short_id(session.id()),
                    kept.error().message));
  return static_cast<bool>(kept);
}

void FolderSender::tell(const api::Session& session, const Ended& ended, bool receipt) const {
  tell_failure(context_.environment, session, "session " + short_id(session.id()) + ": ");
  size_t shown = 0;
  for (const api::MissingName& name : session.names().missing()) {
    if (!name.arrived() && ++shown <= 10) say(name.path() + ": " + name.reason());
  }
  if (options_.quiet) return;
  const api::Json object = {{"schema", "sluice.watch.v1"},
                            {"session", session.id()},
                            {"state", api::state_name(session)},
                            {"bytes", session.bytes_done()},
                            {"arrived", ended.arrived.size()},
                            {"failed", ended.failed.size()},
                            {"receipt", receipt},
                            {"elapsed_s", session.elapsed_s()}};
  context_.print(object, fmt::format("{} arrived ({}), {} failed, in {:.1f} s: session {}\n",
                                     counted_files(ended.arrived.size()), format_bytes(session.bytes_done()),
                                     ended.failed.size(), session.elapsed_s(), short_id(session.id())));
  context_.environment.out << std::flush;
}

}  // namespace sluice::cli
