// SPDX-License-Identifier: Apache-2.0
#include "control/node/manager.h"

#include <fmt/format.h>

#include <algorithm>
#include <asio/co_spawn.hpp>
#include <asio/detached.hpp>
#include <random>

#include "control/audit/lines.h"
#include "control/runtime/export_key.h"
#include "control/runtime/standing.h"
#include "dataplane/base/log.h"

namespace sluice::node {
namespace {

std::string new_session_id() {
  static std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", static_cast<uint32_t>(random()));
  return id;
}

// May this node begin something with it?
Result<identity::Peer> check_peer(const config::Node& node, const std::string& name) {
  Result<identity::Peer> peer = identity::find_peer(node, name);
  if (!peer || !peer->address.empty()) return peer;
  return Error{
      ErrorCode::kConfiguration,
      fmt::format(
          "node {} is trusted, but its address is not known: use 'sluice node trust' with one; a node "
          "that does not listen has none, and begins transfers itself",
          name)};
}

// May he send and get as himself, and is somebody there who opens files for him?
asio::awaitable<Status> check_user(std::shared_ptr<runtime::Services> services,
                                   std::optional<transfer::User> user) {
  if (!user) co_return Status();
  auto there = [services, uid = user->uid] { return services->users.of(uid)->there(); };
  const control::KeyedPart threads = services->part_of_user(user->uid);
  co_return co_await threads.wait_for(std::move(there));
}

uint64_t bytes_of(const runtime::OpenSources& sources) {
  uint64_t bytes = 0;
  for (const catalog::File& file : sources.files) bytes += file.size_bytes;
  return bytes;
}

}  // namespace

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

// ---- what an operator asks for -----------------------------------------------------------------

Error Manager::no_dataplane() const {
  return {ErrorCode::kDaemonNotRunning,
          fmt::format("sluice-dataplane of this node does not run ({}): start it",
                      services_->node.dataplane_socket().string())};
}

asio::awaitable<Result<std::string>> Manager::send(Wishes wishes) {
  return begin(transfer::Role::kSource, std::move(wishes));
}

asio::awaitable<Result<std::string>> Manager::get(Wishes wishes) {
  return begin(transfer::Role::kDestination, std::move(wishes));
}

asio::awaitable<Result<std::string>> Manager::begin(transfer::Role role, Wishes wishes) {
  const std::shared_ptr<bool> alive = alive_;
  const std::shared_ptr<runtime::Services> services = services_;
  if (const Status status = check_room(wishes.user); !status) co_return status.error();
  auto known = [services, peer = wishes.peer] { return check_peer(services->node, peer); };
  const Result<identity::Peer> trusted = co_await services->pool.wait_for(std::move(known));
  if (!trusted) co_return trusted.error();
  if (const Status status = check_wishes(role, wishes); !status) co_return status.error();
  const Result<transfer::Options> options = parse_options(wishes, services->node);
  if (!options) co_return options.error();
  if (const Status status = co_await check_user(services, wishes.user); !status) co_return status.error();
  // Of a list only what is in the directory arrives: that is what a path with a slash behind it means.
  if (!wishes.selection.names.empty() && !wishes.sources.front().ends_with('/'))
    wishes.sources.front() += '/';
  runtime::OpenSources sources;
  if (role == transfer::Role::kSource) {
    runtime::ListReader::What what{
        .exports = std::make_shared<const exports::Exports>(services->exports_for(wishes.peer, wishes.user)),
        .paths = wishes.sources,
        .selection = wishes.selection,
        .known = {},
        .kept_open = services->kept_open};
    // What is to have a deadline is judged by its size: then all of it is looked for first.
    const bool whole = options->deadline_unix_ns != 0;
    control::KeyedPart part = services->part(services->lists_pool, *what.exports,
                                             runtime::export_key(*what.exports, wishes.sources));
    Result<runtime::OpenSources> opened =
        co_await runtime::begin_list(services->io, std::move(part), std::move(what), whole);
    if (!opened) co_return opened.error();
    sources = std::move(*opened);
  }
  if (!*alive) co_return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
  if (const Status status = check_room(wishes.user); !status) co_return status.error();
  transfer::Request request{.options = *options,
                            .source_paths = std::move(wishes.sources),
                            .selection = std::move(wishes.selection),
                            .destination = std::move(wishes.destination),
                            .source_bytes = sources.rest ? 0 : bytes_of(sources),
                            .user = std::move(wishes.user)};
  if (const Status status = check_deadline(role, wishes.peer, request); !status) co_return status.error();
  const board::LogLevel log_level =
      control::log_level_of(wishes.log_level).value_or(board::LogLevel::kEvents);
  const Task task =
      begin_now(role, std::move(wishes.peer), std::move(request), std::move(sources), log_level);
  // Whoever was told its id finds it after the death of anything.
  const Status written = co_await task->journal_settled();
  if (!written) co_return written.error();
  co_return task->transfer().id();
}

// Refuses what send() would refuse before it looks at the sources.
asio::awaitable<Result<Preview>> Manager::preview(Wishes wishes) {
  const std::shared_ptr<runtime::Services> services = services_;
  auto known = [services, peer = wishes.peer] { return check_peer(services->node, peer); };
  const Result<identity::Peer> trusted = co_await services->pool.wait_for(std::move(known));
  if (!trusted) co_return trusted.error();
  if (const Status status = check_wishes(transfer::Role::kSource, wishes); !status) co_return status.error();
  if (const auto options = parse_options(wishes, services->node); !options) co_return options.error();
  co_return Preview([services, wishes = std::move(wishes)](const runtime::TakePreview& take) {
    return runtime::preview_sources(services->exports_for(wishes.peer, wishes.user), wishes.sources,
                                    wishes.selection, take);
  });
}

asio::awaitable<Result<std::shared_ptr<NamesAsker>>> Manager::ask(std::string peer, names::Request request) {
  const std::shared_ptr<runtime::Services> services = services_;
  if (stopping_) co_return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
  auto known = [services, peer] { return check_peer(services->node, peer); };
  const Result<identity::Peer> found = co_await services->pool.wait_for(std::move(known));
  if (!found) co_return found.error();
  co_return co_await NamesAsker::ask(services, *found, std::move(request));
}

Manager::Task Manager::begin_now(transfer::Role role, std::string peer, transfer::Request request,
                                 runtime::OpenSources sources, board::LogLevel log_level) {
  const std::string id = new_session_id();
  services_->logs.begin(id, log_level);
  const bool sends = role == transfer::Role::kSource;
  log::of(log::kSession)
      ->info("session {}: {} {} file(s) {} {}, asked for by {}", id.substr(0, 8), sends ? "send" : "get",
             request.source_paths.size(), sends ? "to" : "from", peer,
             request.user ? "user " + request.user->name : "an operator");
  note(audit::session_begun(id, role, true, peer, request.user, control::unix_ns()));
  // Who has to wait holds no files open meanwhile: they are opened again when its turn has come.
  if (services_->places.queue().waiting() != 0) close_sources(peer, request, std::exchange(sources, {}).open);
  std::optional<std::vector<catalog::File>> files;
  if (!sources.open.empty()) files = std::move(sources.files);
  return add(
      std::make_unique<transfer::Transfer>(services_->settings, id, std::move(peer), role, std::move(request),
                                           std::move(files), next_start_ns(), control::monotonic_ns()),
      std::move(sources));
}

// What can be known of a deadline before anything is begun. A session that passes looks again itself, when it
// knows more (transfer/pace.h).
Status Manager::check_deadline(transfer::Role role, const std::string& peer,
                               const transfer::Request& request) const {
  const transfer::Options& options = request.options;
  if (options.deadline_unix_ns == 0) return {};
  const int64_t now_unix_ns = control::unix_ns();
  const deadline::Load load = transfer::load_of(request, peer, role);
  const deadline::Question question = transfer::foresee(
      *services_->settings.ledger, load, options.deadline_unix_ns - now_unix_ns, control::monotonic_ns());
  const deadline::Verdict verdict = deadline::judge(question);
  if (verdict.answer != deadline::Verdict::Answer::kRefused) return {};
  const bool over = question.seconds_left <= 0;
  if (options.deadline_policy == deadline::Policy::kWarn && !over) return {};
  return deadline::refusal(verdict, question, options.deadline_unix_ns, now_unix_ns);
}

// The order of the sessions is that of their starts, whatever becomes of the clock.
int64_t Manager::next_start_ns() {
  last_start_ns_ = std::max(control::unix_ns(), last_start_ns_ + 1);
  return last_start_ns_;
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
