// SPDX-License-Identifier: Apache-2.0
#include "control/node/manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>

#include "control/audit/lines.h"
#include "control/runtime/standing.h"
#include "dataplane/base/log.h"

namespace sluice::node {

Manager::Manager(asio::io_context& io, const config::Node& node, identity::Identity identity,
                 exports::Exports exports, std::unique_ptr<journal::Journal> journal)
    : services_(std::make_shared<runtime::Services>(io, node, std::move(identity), std::move(exports),
                                                    std::move(journal))) {}

Manager::~Manager() { *alive_ = false; }

Status Manager::start() {
  // Later a file that is wrong takes the trust of its own peer only; now somebody is there to hear of it.
  const Result<identity::Trust> trust = identity::Trust::load(services_->node);
  if (!trust) return trust.error();
  if (!trust->problems().empty()) return trust->problems().front();
  if (const Status status = restore(); !status) return status;
  const auto take = [this, alive = alive_](std::unique_ptr<peer::Connection> connection) {
    if (*alive) asio::co_spawn(services_->io, serve(alive, std::move(connection)), asio::detached);
  };
  if (!services_->node.calls_only()) {
    Result<std::unique_ptr<peer::Listener>> listener = peer::listen(
        services_->io, *services_->self, services_->node.listen, services_->frames,
        [services = services_] { return runtime::standing_now(services); }, take,
        [services = services_](identity::Offer offer) {
          runtime::remember_offer(*services, std::move(offer));
        });
    if (!listener) return listener.error();
    listener_ = std::move(*listener);
  }
  services_->board->start();
  asio::co_spawn(services_->io, watch_trust(alive_), asio::detached);
  asio::co_spawn(services_->io, watch_exports(alive_), asio::detached);
  return {};
}

void Manager::stop() {
  stopping_ = true;
  listener_.reset();
  trust_timer_->cancel();
  export_timer_->cancel();
  names_desk_->stop();
  for (const Task& task : std::vector<Task>(tasks_)) task->post(transfer::Detach{});
  if (tasks_.empty()) services_->board->stop();
}

Error Manager::no_dataplane() const {
  return {ErrorCode::kDaemonNotRunning,
          fmt::format("sluice-dataplane of this node does not run ({}): start it",
                      services_->node.dataplane_socket().string())};
}

// ---- transfers ---------------------------------------------------------------------------------

Manager::Task Manager::add(std::unique_ptr<transfer::Transfer> transfer, runtime::OpenSources sources) {
  const auto task =
      std::make_shared<runtime::TransferTask>(services_, std::move(transfer), std::move(sources),
                                              [this, alive = alive_](runtime::TransferTask& changed_one) {
                                                if (*alive) changed(changed_one);
                                              });
  tasks_.push_back(task);
  task->start();
  return task;
}

void Manager::changed(runtime::TransferTask& task) {
  if (task.transfer().ended()) {
    transfer::View view = task.view();
    const ErrorCode code = view.error ? view.error->code : ErrorCode::kOk;
    if (remember(std::move(view))) {
      ++ended_by_code_[static_cast<size_t>(code)];
      note(audit::session_ended(ended_.back(), control::unix_ns()));
    }
  }
  if (task.over()) std::erase_if(tasks_, [&task](const Task& each) { return each.get() == &task; });
  news_();
  if (stopping_ && tasks_.empty()) services_->board->stop();
}

void Manager::note(std::string line) {
  services_->pool.run_on(
      audit_queue_,
      [services = services_, line = std::move(line)] {
        services->audit.append(line);
        return 0;
      },
      [](int) {});
}

bool Manager::remember(transfer::View view) {
  const auto same = std::find_if(ended_.begin(), ended_.end(),
                                 [&view](const transfer::View& each) { return each.id == view.id; });
  if (same != ended_.end()) return false;
  ++ended_count_;
  ended_.push_back(std::move(view));
  if (ended_.size() > kEndedKept) ended_.pop_front();
  return true;
}

Manager::Task Manager::active(const std::string& id) const {
  for (const Task& task : tasks_) {
    if (task->transfer().id() == id && !task->transfer().ended()) return task;
  }
  return nullptr;
}

std::vector<transfer::View> Manager::list() const {
  std::vector<transfer::View> all(ended_.begin(), ended_.end());
  for (const Task& task : tasks_) {
    if (!task->transfer().ended()) all.push_back(task->view());
  }
  std::stable_sort(all.begin(), all.end(), [](const transfer::View& a, const transfer::View& b) {
    return a.started_unix_ns < b.started_unix_ns;
  });
  return all;
}

Result<transfer::View> Manager::find(const std::string& id) const {
  const auto matches = [&](const std::string& candidate) { return !id.empty() && candidate.starts_with(id); };
  std::vector<transfer::View> found;
  for (const transfer::View& view : ended_) {
    if (matches(view.id)) found.push_back(view);
  }
  for (const Task& task : tasks_) {
    if (matches(task->transfer().id()) && !task->transfer().ended()) found.push_back(task->view());
  }
  if (found.size() == 1) return std::move(found.front());
  if (found.empty())
    return Error{ErrorCode::kUsage, fmt::format("no session \"{}\": see 'sluice session list'", id)};
  return Error{ErrorCode::kUsage,
               fmt::format("\"{}\" begins {} session ids: give more of it", id, found.size())};
}

Result<transfer::View> Manager::show(const std::string& id) const { return find(id); }

Result<Manager::Task> Manager::find_active(const std::string& id) const {
  const Result<transfer::View> found = find(id);
  if (!found) return found.error();
  if (Task task = active(found->id)) return task;
  return Error{ErrorCode::kUsage, fmt::format("session {} has ended already", found->id)};
}

// What an operator wants of it; answered once the journal knows.
asio::awaitable<Result<transfer::View>> Manager::tell(Task task, transfer::Event wish) {
  task->post(std::move(wish));
  const Status written = co_await task->journal_settled();
  if (!written) co_return written.error();
  co_return task->view();
}

asio::awaitable<Result<transfer::View>> Manager::cancel(std::string id) {
  const Result<Task> task = find_active(id);
  if (!task) co_return task.error();
  co_return co_await tell(*task, transfer::Cancel{});
}

asio::awaitable<Result<transfer::View>> Manager::pause(std::string id) {
  const Result<Task> task = find_active(id);
  if (!task) co_return task.error();
  if (const Status status = (*task)->transfer().may_pause(); !status) co_return status.error();
  co_return co_await tell(*task, transfer::PauseAsked{});
}

asio::awaitable<Result<transfer::View>> Manager::go_on(std::string id) {
  const Result<Task> task = find_active(id);
  if (!task) co_return task.error();
  if (const Status status = (*task)->transfer().may_continue(); !status) co_return status.error();
  co_return co_await tell(*task, transfer::ContinueAsked{});
}

asio::awaitable<Result<transfer::View>> Manager::limit(std::string id, uint64_t limit_bps) {
  const Result<Task> task = find_active(id);
  if (!task) co_return task.error();
  if (const Status status = (*task)->transfer().may_limit(); !status) co_return status.error();
  co_return co_await tell(*task, transfer::LimitAsked{limit_bps});
}

asio::awaitable<Result<transfer::View>> Manager::prioritize(std::string id, int32_t priority) {
  if (const Status status = check_priority(priority); !status) co_return status.error();
  const Result<Task> task = find_active(id);
  if (!task) co_return task.error();
  if (const Status status = (*task)->transfer().may_prioritize(); !status) co_return status.error();
  co_return co_await tell(*task, transfer::PriorityAsked{priority});
}

}  // namespace sluice::node
