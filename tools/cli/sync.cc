// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/sync.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <ostream>
#include <set>
#include <utility>
#include <variant>

#include "control/selection/filter.h"
#include "dataplane/base/counted.h"
#include "dataplane/base/file_time.h"
#include "dataplane/base/path.h"
#include "tools/cli/follow.h"
#include "tools/cli/format.h"
#include "tools/cli/names_format.h"
#include "tools/cli/sync_plan.h"
#include "tools/cli/sync_sides.h"

namespace sluice::cli {
namespace {

constexpr size_t kDifferencesMax = 10'000'000;  // some GiB of this command's memory
constexpr size_t kProblemsShown = 1000;

class Sync {
 public:
  Sync(Environment& environment, std::shared_ptr<api::Client> client, Canceller& canceller,
       const TransferFlags& flags, const api::TransferRequest& request, SessionBegan began)
      : environment_(environment),
        client_(std::move(client)),
        canceller_(canceller),
        flags_(flags),
        request_(request),
        began_(std::move(began)),
        sides_(request),
        plan_(flags.removes) {}

  Result<SyncOutcome> perform() {
    if (Status status = compare(); !status) return status.error();
    tell_refusals();
    if (flags_.dry_run) return preview();
    if (Status status = check_right(); !status) return status.error();
    if (send_all()) {
      const bool all = sent_ + plan_.directories_after_removal().size() == plan_.names();
      remove_extra();
      if (send(plan_.lists_after_removal(), true)) {
        sent_ += plan_.directories_after_removal().size();
        send_top();
      }
      if (all) bytes_ = plan_.bytes();  // a session counts what its packs add
    }
    return outcome();
  }

 private:
  Status compare() {
    const auto& options = std::visit(
        [](const auto& one) -> const auto& { return one.options(); }, request_);
    api::CompareRequest asked;
    asked.set_peer(sides_.peer);
    asked.set_own_node(sides_.own);
    asked.set_own_path(sides_.from_peer ? sides_.destination : sides_.source);
    asked.set_peer_path(sides_.from_peer ? sides_.source : sides_.destination);
    asked.set_from_peer(sides_.from_peer);
    asked.set_digests(flags_.checksum);
    *asked.mutable_rules() = options.rules();
    if (!sides_.name.empty()) asked.set_top(sides_.name + "/");
    if (const Status status = check_top(options); !status) return status;
    bool too_many = false;
    const Status status = client_->compare(asked, [&](const api::CompareReply& part) {
      for (const api::NameDifference& each : part.differences()) take(each);
      if (part.has_totals()) totals_ = part.totals();
      too_many = plan_.differences() > kDifferencesMax;
      return !too_many && !canceller_.interrupted();
    });
    if (!status) return status;
    if (too_many)
      return Error{ErrorCode::kResources,
                   fmt::format("more than {} names differ: sync parts of {} by themselves", kDifferencesMax,
                               printable(sides_.source))};
    if (canceller_.interrupted()) return Error{ErrorCode::kCancelled, "interrupted while it compared"};
    return {};
  }

  // What is in a directory that the rules leave out is no part of the transfer.
  Status check_top(const api::TransferOptions& options) const {
    const Result<selection::Filter> filter = selection::Filter::make(selection::rules_of(options));
    if (!filter) return filter.error();
    if (filter->takes(sides_.name, true)) return {};
    return Error{ErrorCode::kUsage,
                 printable(sides_.name) +
                     ": the rules leave out the directory itself; write it with a slash behind it"};
  }

  void take(const api::NameDifference& difference) {
    const bool at_source = difference.kind() == api::NameDifference::SOURCE_PROBLEM;
    if (!at_source && difference.kind() != api::NameDifference::DESTINATION_PROBLEM)
      return plan_.add(difference);
    problem(difference.path(), (at_source ? "" : "at the destination: ") + difference.error());
    if (at_source) fail_with(ErrorCode::kPartial);
  }

  void tell_refusals() {
    for (const SyncPlan::Refusal& each : plan_.refusals())
      problem(each.path, each.reason, flags_.dry_run ? "would fail: " : "");
    failed_ += plan_.refusals().size();
    if (failed_ != 0) fail_with(ErrorCode::kPartial);
  }

  // Whether the peer lets anything be removed there is asked before anything is sent. To make a directory
  // that stands is a change that changes nothing.
  Status check_right() {
    if (sides_.from_peer || plan_.removals().empty()) return {};
    api::MakeDirectoryRequest asked;
    asked.set_peer(sides_.peer);
    asked.set_path(sides_.destination);
    asked.set_parents(true);
    const auto made = client_->make_directory(asked);
    if (made) return {};
    return Error{made.error().code, "--delete: " + made.error().message};
  }

  // ---- what is sent ------------------------------------------------------------------------------

  // False: a session failed as a whole, and there is no use in going on.
  bool send_all() {
    const bool whole = !totals_.destination_found() ? plan_.names() != 0 || !sides_.name.empty()
                                                    : totals_.destination() == 0 && totals_.kept() == 0 &&
                                                          plan_.names() != 0 && plan_.removals().empty();
    return whole ? send_one(nullptr, plan_.names()) : send(plan_.lists());
  }

  bool send(const std::vector<SyncPlan::List>& lists, bool for_times = false) {
    return std::ranges::all_of(lists, [this, for_times](const SyncPlan::List& list) {
      return send_one(&list, for_times ? 0 : list.size());
    });
  }

  // `differ`: so many of the names. A session has the directories above them as well.
  bool send_one(const SyncPlan::List* names, uint64_t differ) {
    if (canceller_.interrupted()) return fail(Error{ErrorCode::kCancelled, "interrupted"});
    const Result<std::string> id = client_->begin(sides_.request_of(request_, names));
    if (!id) return fail(id.error());
    if (began_) began_(*id);
    canceller_.started(client_, *id);
    FollowOptions options;
    options.quiet = flags_.quiet;
    const auto session = watch_session(environment_, *client_, *id, options);
    canceller_.ended(*id);
    if (!session) return fail(session.error());
    return note(*session, differ);
  }

  // Mode and time of the directory itself, which what was made and removed in it has changed. What cannot be
  // looked at stays as it is. The root of a peer's export is its operator's.
  void send_top() {
    if (exit_code_ != 0 || (!sides_.from_peer && sides_.destination.find('/') == std::string::npos)) return;
    const std::string& path = sides_.from_peer ? sides_.destination : sides_.source;
    const std::optional<Top> own = sides_.own.empty() ? own_top(path) : peers_top(sides_.own, path);
    const std::optional<Top> theirs =
        peers_top(sides_.peer, sides_.from_peer ? sides_.source : sides_.destination);
    if (!own || !theirs) return;
    Top there = sides_.from_peer ? *own : *theirs;
    const Top& wanted = sides_.from_peer ? *theirs : *own;
    if ((wanted.mode & S_ISVTX) == 0) there.mode &= ~static_cast<uint32_t>(S_ISVTX);  // it stays
    if (there == wanted) return;
    const SyncPlan::List nothing_in_it;
    // Where nothing else is sent it is the name that differs; else what came into it has changed its time.
    send_one(&nothing_in_it, sessions_.empty() ? 1 : 0);
  }

  struct Top {
    uint32_t mode = 0;
    base::FileTimeNs mtime_ns = 0;
    bool operator==(const Top&) const = default;
  };
  static std::optional<Top> own_top(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0) return std::nullopt;
    return Top{.mode = info.st_mode & 01777,
               .mtime_ns = base::file_time_ns(info.st_mtim.tv_sec, info.st_mtim.tv_nsec)};
  }
  std::optional<Top> peers_top(const std::string& node, const std::string& path) {
    const auto found = client_->look_at(node, path);
    if (!found || !found->has_value()) return std::nullopt;
    return Top{.mode = (*found)->mode() & 01777, .mtime_ns = base::file_time_of(**found)};
  }

  bool note(const api::Session& session, uint64_t differ) {
    sessions_.push_back(api::session_json(session));
    api::Session& ended = ended_.emplace_back(session);
    ended.clear_files();
    ended.clear_history();
    for (const api::MissingName& name : session.names().missing()) problem(name.path(), name.reason());
    sent_ += std::min(session.names().done(), differ - std::min(differ, session.names().failed()));
    failed_ += session.names().failed();
    bytes_ += session.bytes_total();
    tell_failure(environment_, session);
    const int code = exit_code_of(session);
    if (code != 0) fail_with(static_cast<ErrorCode>(code));
    return session.state() == api::Session::SUCCEEDED;
  }

  // ---- what is removed ---------------------------------------------------------------------------

  void remove_extra() {
    if (plan_.removals().empty()) return;
    if (exit_code_ != 0) {
      say("nothing was removed, since not all was sent, or not all of the source is known");
      return;
    }
    if (!listed_as_sent()) return;
    for (const SyncPlan::Removal& each : plan_.removals()) {
      if (canceller_.interrupted()) {
        (void)fail(Error{ErrorCode::kCancelled, "interrupted; what is left was not removed"});
        return;
      }
      if (!remove(each)) return;
    }
  }

  // Where a file system lists names otherwise than they were given (in small letters, in another form of
  // Unicode), what the source seems to lack may be what was just sent.
  bool listed_as_sent() {
    for (const auto& [directory, names] : plan_.made_beside_removals()) {
      std::set<std::string> unlisted = names;
      const Status status = take_out_listed(
          directory.empty() ? sides_.destination : path_beneath(sides_.destination, directory), &unlisted);
      if (status && unlisted.empty()) continue;
      const std::string reason =
          status ? "the destination's file system lists it under another name, which the source seems to lack"
                 : status.error().message;
      ++failed_;
      problem(path_beneath(directory, unlisted.empty() ? "" : *unlisted.begin()), reason);
      fail_with(ErrorCode::kPartial);
      say("nothing was removed, since names are not listed at the destination as they were sent");
      return false;
    }
    return true;
  }

  // Of a directory of the destination, as its file system lists it: this host's is looked at directly.
  Status take_out_listed(const std::string& directory, std::set<std::string>* names) {
    if (sides_.from_peer) {
      std::error_code problem;
      std::filesystem::directory_iterator at(directory, problem);
      for (; !problem && at != std::filesystem::directory_iterator(); at.increment(problem))
        names->erase(at->path().filename().string());
      if (problem) return Error{ErrorCode::kStorage, directory + ": cannot be listed: " + problem.message()};
      return {};
    }
    api::ListNamesRequest asked;
    asked.set_peer(sides_.peer);
    asked.set_path(directory);
    return client_->list_names(asked, [names](const api::ListNamesReply& part) {
      for (const api::NameEntry& each : part.entries()) names->erase(each.path());
      return true;
    });
  }

  bool remove(const SyncPlan::Removal& removal) {
    api::RemoveNameRequest asked;
    if (!sides_.from_peer) asked.set_peer(sides_.peer);
    asked.set_path(path_beneath(sides_.destination, removal.path));
    asked.set_recursive(removal.is_directory);
    const auto done = client_->remove_name(asked);
    if (!done) {
      ++failed_;
      problem(removal.path, done.error().message);
      fail_with(done.error().code);
      // The others would not go either.
      return done.error().code != ErrorCode::kOutsideExports &&
             done.error().code != ErrorCode::kPeerUnreachable &&
             done.error().code != ErrorCode::kDaemonNotRunning;
    }
    removed_ += done->entries();
    failed_ += done->failed();
    for (const api::NameEntry& each : done->problems())
      problem(path_beneath(removal.path, each.path()), each.error());
    if (done->failed() != 0) fail_with(ErrorCode::kPartial);
    return true;
  }

  // ---- what is told ------------------------------------------------------------------------------

  void say(const std::string& message) {
    environment_.err << "sluice: " << printable(message) << "\n" << std::flush;
  }
  // The first decides how the command ends.
  void fail_with(ErrorCode code) {
    if (exit_code_ == 0) exit_code_ = static_cast<int>(code);
  }
  bool fail(const Error& error) {
    say(error.message);
    fail_with(error.code);
    return false;
  }
  void problem(const std::string& path, const std::string& reason, const std::string& before = "") {
    if (problems_.size() >= kProblemsShown) return;
    problems_.push_back({{"path", escaped(path)}, {"reason", reason}});
    say(before + escaped(path) + ": " + reason);
  }

  api::Json counts() const {
    return {{"schema", "sluice.sync.v1"},
            {"node", sides_.peer},
            {"from", sides_.own},
            {"source", sides_.source},
            {"destination", sides_.destination},
            {"dry_run", flags_.dry_run},
            {"same", totals_.same()},
            {"sent", sent_},
            {"bytes", bytes_},
            {"removed", removed_},
            {"failed", failed_ + totals_.source_problems()},
            {"left_out", totals_.left_out()},
            {"kept", totals_.kept()},
            {"problems", problems_},
            {"sessions", sessions_}};
  }

  std::string same_text() const { return base::counted(totals_.same(), "name is", "names are"); }

  SyncOutcome outcome() const {
    const api::Json object = counts();
    const uint64_t failed = object["failed"];
    std::string text;
    if (sessions_.empty() && removed_ == 0 && failed == 0) {
      text = exit_code_ == 0 ? fmt::format("nothing to do: {} the same\n", same_text()) : "";
    } else {
      text = fmt::format("{} the same, {} sent ({}), {} removed, {} failed\n", same_text(), sent_,
                         format_bytes(bytes_), removed_, failed);
    }
    return {.exit_code = exit_code_, .object = object, .text = text, .ended = ended_};
  }

  SyncOutcome preview() {
    api::Json object = counts();
    std::string text;
    api::Json send = api::Json::array();
    api::Json remove = api::Json::array();
    std::vector<SyncPlan::List> lists = plan_.lists();
    lists.push_back(plan_.directories_after_removal());
    for (const SyncPlan::List& list : lists) {
      for (const std::string& path : list) {
        send.push_back(escaped(path));
        text += "send " + escaped(path) + "\n";
      }
    }
    if (exit_code_ != 0 && !plan_.removals().empty())
      say("nothing would be removed, since not all would be sent, or not all of the source is known");
    for (const SyncPlan::Removal& each : plan_.removals()) {
      if (exit_code_ != 0) break;
      remove.push_back(escaped(each.path));
      text += "remove " + escaped(each.path) + (each.is_directory ? "/\n" : "\n");
    }
    object["would_send"] = send;
    object["would_remove"] = remove;
    text += fmt::format("{} the same, {} would be sent ({}), {} would be removed", same_text(), send.size(),
                        format_bytes(plan_.bytes()), remove.size());
    if (const uint64_t failed = object["failed"]; failed != 0) text += fmt::format(", {} would fail", failed);
    text += "\n";
    return {.exit_code = exit_code_, .object = object, .text = text};
  }

  Environment& environment_;
  const std::shared_ptr<api::Client> client_;
  Canceller& canceller_;
  const TransferFlags& flags_;
  const api::TransferRequest& request_;
  const SessionBegan began_;
  const Sides sides_;
  SyncPlan plan_;
  api::CompareTotals totals_;
  api::Json sessions_ = api::Json::array();
  std::vector<api::Session> ended_;
  api::Json problems_ = api::Json::array();
  uint64_t sent_ = 0;
  uint64_t bytes_ = 0;
  uint64_t removed_ = 0;
  uint64_t failed_ = 0;
  int exit_code_ = 0;
};

}  // namespace

Result<SyncOutcome> sync_directory(Environment& environment, const std::shared_ptr<api::Client>& client,
                                   Canceller& canceller, const TransferFlags& flags,
                                   const api::TransferRequest& request, SessionBegan began) {
  return Sync(environment, client, canceller, flags, request, std::move(began)).perform();
}

}  // namespace sluice::cli
