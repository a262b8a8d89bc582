// SPDX-License-Identifier: Apache-2.0
#include "control/node/sessions.h"

#include <fmt/format.h>

#include <algorithm>

#include "control/audit/lines.h"
#include "control/node/options.h"
#include "dataplane/base/check.h"
#include "dataplane/base/log.h"

namespace sluice::node {

Sessions::Sessions(std::shared_ptr<runtime::Services> services) : services_(std::move(services)) {}

Sessions::~Sessions() { *alive_ = false; }

// ---- which there are -----------------------------------------------------------------------------

Sessions::Task Sessions::active(const std::string& id) const {
  for (const Task& task : tasks_) {
    if (task->transfer().id() == id && !task->transfer().ended()) return task;
  }
  return nullptr;
}

std::vector<transfer::View> Sessions::list() const {
  std::vector<transfer::View> all(ended_.begin(), ended_.end());
  for (const Task& task : tasks_) {
    if (!task->transfer().ended()) all.push_back(task->view());
  }
  if (elsewhere_) std::ranges::move(elsewhere_->views(), std::back_inserter(all));
  std::stable_sort(all.begin(), all.end(), [](const transfer::View& a, const transfer::View& b) {
    return a.started_unix_ns < b.started_unix_ns;
  });
  return all;
}

std::vector<std::string> Sessions::ended() const {
  std::vector<std::string> ids;
  for (const transfer::View& view : ended_) ids.push_back(view.id);
  return ids;
}

std::vector<transfer::View> Sessions::overviews() const {
  std::vector<transfer::View> views;
  for (const Task& task : tasks_) {
    if (!task->transfer().ended()) views.push_back(task->transfer().overview(async::monotonic_ns()));
  }
  if (!elsewhere_) return views;
  for (transfer::View& view : elsewhere_->views()) {
    view.files.clear();
    views.push_back(std::move(view));
  }
  return views;
}

Result<transfer::View> Sessions::find(const std::string& id) const {
  const auto matches = [&](const std::string& candidate) { return !id.empty() && candidate.starts_with(id); };
  std::vector<transfer::View> found;
  for (const transfer::View& view : ended_) {
    if (matches(view.id)) found.push_back(view);
  }
  for (const Task& task : tasks_) {
    if (matches(task->transfer().id()) && !task->transfer().ended()) found.push_back(task->view());
  }
  if (elsewhere_)
    std::ranges::copy_if(elsewhere_->views(), std::back_inserter(found),
                         [&matches](const transfer::View& view) { return matches(view.id); });
  if (found.size() == 1) return std::move(found.front());
  if (found.empty())
    return Error{ErrorCode::kUsage, fmt::format("no session \"{}\": see 'sluice session list'", id)};
  return Error{ErrorCode::kUsage,
               fmt::format("\"{}\" begins {} session ids: give more of it", id, found.size())};
}

Result<Sessions::Task> Sessions::find_active(const std::string& id) const {
  const Result<transfer::View> found = find(id);
  if (!found) return found.error();
  if (Task task = active(found->id)) return task;
  if (found->state < transfer::ViewState::kSucceeded) {
    if (auto elsewhere = not_here(*found)) return *std::move(elsewhere);
  }
  return Error{ErrorCode::kUsage, fmt::format("session {} has ended already", found->id)};
}

transfer::UnderId Sessions::under_id(const std::string& id) const {
  transfer::UnderId known;
  for (const transfer::View& view : ended_) {
    if (view.id != id) continue;
    known.initiator = view.asker.of_this_node;
    for (const transfer::LegView& leg : view.legs) known.peers.push_back(leg.peer);
  }
  if (const Task task = active(id)) {
    known.active = true;
    known.initiator = task->transfer().initiator();
    known.peers = task->transfer().leg_peers();
  }
  known.ending = std::ranges::any_of(
      tasks_, [&id](const Task& task) { return task->transfer().id() == id && task->transfer().ended(); });
  return known;
}

exports::Exports Sessions::exports_of(const transfer::View& view) const {
  const transfer::AskerView& asker = view.asker;
  if (asker.mapped) return services_->exports_for(view.peer, asker.mapped->user, {});
  return asker.user || asker.local_files ? services_->exports_for(view.peer, asker.user, asker.local_files)
                                         : services_->exports;
}

// ---- how they come and go ------------------------------------------------------------------------

Sessions::Task Sessions::add(std::unique_ptr<transfer::Transfer> transfer, gather::OpenSources sources) {
  DCHECK(active(transfer->id()) == nullptr, "an id has one session");
  DCHECK(sources.open.size() == sources.files.size() || sources.files.empty(), "each file has its place");
  const auto task =
      std::make_shared<runtime::TransferTask>(services_, std::move(transfer), std::move(sources),
                                              [this, alive = alive_](runtime::TransferTask& changed_one) {
                                                if (*alive) changed(changed_one);
                                              });
  tasks_.push_back(task);
  task->start();
  return task;
}

void Sessions::note_end(transfer::View view) {
  const ErrorCode code = view.error ? view.error->code : ErrorCode::kOk;
  const std::string id = view.id;
  if (!remember(std::move(view))) return;
  DCHECK(code <= kErrorCodeLast, "an end has one of the codes");
  ++ended_by_code_[static_cast<size_t>(code)];
  DCHECK(ended_.back().id == id, "the newest of those that have ended");
  note(audit::session_ended(ended_.back(), async::unix_ns()));
  if (ended_count_ % kForgetEvery == 0) forget_old_soon();
}

Status Sessions::forget_old(journal::Journal& journal) {
  return journal.forget_ended(kEndedInJournal, async::unix_ns() - kInJournalNs);
}

void Sessions::forget_old_soon() {
  services_->pool.run_on(
      forget_queue_, [services = services_] { return forget_old(*services->journal); },
      [](const Status& status) {
        if (!status) log::of(log::kSession)->warn("{}", status.error().message);
      });
}

void Sessions::ended_elsewhere(transfer::View view) {
  note_end(std::move(view));
  news_();
}

void Sessions::changed(runtime::TransferTask& task) {
  if (task.transfer().ended()) note_end(task.view());
  if (task.over()) {
    const size_t let_go = std::erase_if(tasks_, [&task](const Task& each) { return each.get() == &task; });
    DCHECK(let_go == 1, "a task is let go of once");
  }
  news_();
  if (stopped_ && tasks_.empty()) std::exchange(stopped_, nullptr)();
}

void Sessions::note(std::string line) {
  services_->pool.run_on(
      audit_queue_,
      [services = services_, line = std::move(line)] {
        services->audit.append(line);
        return 0;
      },
      [](int) {});
}

bool Sessions::remember(transfer::View view) {
  const auto same = std::find_if(ended_.begin(), ended_.end(),
                                 [&view](const transfer::View& each) { return each.id == view.id; });
  if (same != ended_.end()) return false;
  DCHECK(view.state >= transfer::ViewState::kSucceeded, "only what has ended is remembered so");
  ++ended_count_;
  ended_.push_back(std::move(view));
  if (ended_.size() > kEndedKept) ended_.pop_front();
  DCHECK(ended_.size() <= kEndedKept, "so many are kept, and no more");
  return true;
}

void Sessions::forget_ended(const std::string& id) {
  DCHECK(active(id) == nullptr, "a session that goes on has not ended");
  std::erase_if(ended_, [&id](const transfer::View& view) { return view.id == id; });
}

// The order of the sessions is that of their starts, also where the clock is put back a little. Where it had
// been wrong, it counts again: else dates, deadlines and receipts would be wrong until it has caught up.
int64_t Sessions::next_start_ns() {
  const int64_t now_ns = async::unix_ns();
  const bool ahead = last_start_ns_ - now_ns > kClockPutBackNs;
  last_start_ns_ = ahead ? now_ns : std::max(now_ns, last_start_ns_ + 1);
  return last_start_ns_;
}

void Sessions::started_before(int64_t unix_ns) { last_start_ns_ = std::max(last_start_ns_, unix_ns); }

void Sessions::stop(std::function<void()> then) {
  DCHECK(!stopping_, "a node stops once");
  stopping_ = true;
  stopped_ = std::move(then);
  for (const Task& task : std::vector<Task>(tasks_)) task->post(transfer::Detach{});
  if (tasks_.empty() && stopped_) std::exchange(stopped_, nullptr)();
}

// ---- what an operator changes --------------------------------------------------------------------

// What an operator wants of it; answered once the journal knows.
asio::awaitable<Result<transfer::View>> Sessions::tell(Task task, transfer::Event wish) {
  DCHECK(task && !task->over(), "a wish is told to a session that goes on");
  task->post(std::move(wish));
  const Status written = co_await task->journal_settled();
  if (!written) co_return written.error();
  co_return task->view();
}

asio::awaitable<Result<transfer::View>> Sessions::cancel(std::string id, std::string by) {
  if (elsewhere_ && elsewhere_->has(id)) {
    const transfer::OrderWish wish{.kind = transfer::OrderWishKind::kCancel};
    co_return co_await elsewhere_->wish(id, wish);
  }
  const Result<Task> task = find_active(id);
  if (!task) co_return task.error();
  transfer::Cancel cancel;
  if (!by.empty())
    cancel.reason = Error{ErrorCode::kCancelled, "cancelled by node " + by + ", which ordered it"};
  co_return co_await tell(*task, std::move(cancel));
}

asio::awaitable<Result<transfer::View>> Sessions::pause(std::string id) {
  if (elsewhere_ && elsewhere_->has(id)) {
    const transfer::OrderWish wish{.kind = transfer::OrderWishKind::kPause};
    co_return co_await elsewhere_->wish(id, wish);
  }
  const Result<Task> task = find_active(id);
  if (!task) co_return task.error();
  if (const Status status = (*task)->transfer().may_pause(); !status) co_return status.error();
  co_return co_await tell(*task, transfer::PauseAsked{});
}

asio::awaitable<Result<transfer::View>> Sessions::go_on(std::string id) {
  if (elsewhere_ && elsewhere_->has(id)) {
    const transfer::OrderWish wish{.kind = transfer::OrderWishKind::kContinue};
    co_return co_await elsewhere_->wish(id, wish);
  }
  const Result<Task> task = find_active(id);
  if (!task) co_return task.error();
  if (const Status status = (*task)->transfer().may_continue(); !status) co_return status.error();
  co_return co_await tell(*task, transfer::ContinueAsked{});
}

asio::awaitable<Result<transfer::View>> Sessions::limit(std::string id, uint64_t limit_bps) {
  if (const Status status = check_limit(limit_bps); !status) co_return status.error();
  if (elsewhere_ && elsewhere_->has(id)) {
    const transfer::OrderWish wish{.kind = transfer::OrderWishKind::kLimit, .rate_bps = limit_bps};
    co_return co_await elsewhere_->wish(id, wish);
  }
  const Result<Task> task = find_active(id);
  if (!task) co_return task.error();
  if (const Status status = (*task)->transfer().may_limit(); !status) co_return status.error();
  co_return co_await tell(*task, transfer::LimitAsked{limit_bps});
}

asio::awaitable<Result<transfer::View>> Sessions::prioritize(std::string id, int32_t priority) {
  if (const Status status = check_priority(priority); !status) co_return status.error();
  if (elsewhere_ && elsewhere_->has(id))
    co_return Error{ErrorCode::kUsage,
                    "the session is in the queue of the node that sends: an operator there may"};
  const Result<Task> task = find_active(id);
  if (!task) co_return task.error();
  if (const Status status = (*task)->transfer().may_prioritize(); !status) co_return status.error();
  co_return co_await tell(*task, transfer::PriorityAsked{priority});
}

std::optional<Error> not_here(const transfer::View& view) {
  const std::string& source = view.asker.source_node;
  if (source.empty()) return std::nullopt;
  return Error{ErrorCode::kUsage,
               fmt::format("session {} is between {} and {}, and this node has only ordered it: ask there",
                           view.id, source, view.peer)};
}

}  // namespace sluice::node
