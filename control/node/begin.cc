// SPDX-License-Identifier: Apache-2.0
#include "control/node/begin.h"

#include <fmt/format.h>

#include <algorithm>
#include <asio/awaitable.hpp>

#include "control/audit/lines.h"
#include "control/identity/hex.h"
#include "control/node/mapping.h"
#include "control/runtime/export_key.h"
#include "dataplane/base/check.h"
#include "dataplane/base/counted.h"
#include "dataplane/base/log.h"
#include "dataplane/base/text.h"

namespace sluice::node {
namespace {

// The local paths of a wish all lie in exports, or all lie outside, and then a process waits that opens them.
Status check_places(const runtime::Services& services, transfer::Role role, Wishes* wishes) {
  std::vector<std::string> paths;
  for (const std::string& path :
       role == transfer::Role::kSource ? wishes->sources : std::vector{wishes->destination}) {
    if (!path.starts_with(transfer::kMemoryPrefix) && path != transfer::kNullDestination)
      paths.push_back(path);
  }
  const exports::Exports open = services.exports_for(wishes->peer, wishes->user, {});
  if (!wishes->local_files) {
    // Whoever opens a source says more of what is wrong with it.
    if (role == transfer::Role::kSource || paths.empty()) return {};
    return open.check_within(paths.front());
  }
  const auto lies_within = [&services](const std::string& path) {
    return !services.exports.export_of(path).empty();
  };
  const auto within = std::ranges::find_if(paths, lies_within);
  if (within != paths.end()) {
    if (Status status = open.check_within(*within); !status) return status;
    if (!std::ranges::all_of(paths, lies_within))
      return Error{ErrorCode::kUsage,
                   base::printable(*within) +
                       ": lies in an export, and something else that is named does not: name them in "
                       "commands of their own"};
    wishes->local_files.reset();  // nothing needs the process
    return {};
  }
  const std::optional<uint32_t> uid = services.callers.waiting(wishes->local_files->token);
  if (!uid)
    return Error{ErrorCode::kUsage,
                 "no process waits that could open files outside the exports: 'sluice send' and 'sluice get' "
                 "start one"};
  if (wishes->user && wishes->user->uid != *uid)
    return Error{ErrorCode::kUsage, "the process that waits to open files is of another user"};
  wishes->local_files->uid = *uid;
  return {};
}

// Whose rights count: those of who ordered it, if that is another node.
exports::Exports exports_of(const runtime::Services& services, const Wishes& wishes) {
  if (wishes.order) return services.exports_for(wishes.order->granted.issuer, {}, {});
  return services.exports_for(wishes.peer, wishes.user, wishes.local_files);
}

runtime::ListReader::What what_to_read(const runtime::Services& services, const Wishes& wishes) {
  return {.exports = std::make_shared<const exports::Exports>(exports_of(services, wishes)),
          .paths = wishes.sources,
          .selection = wishes.selection,
          .known = {},
          .kept_open = services.kept_open,
          .expected = wishes.expected};
}

uint64_t bytes_of(const gather::OpenSources& sources) {
  uint64_t bytes = 0;
  for (const catalog::File& file : sources.files) bytes += file.size_bytes;
  return bytes;
}

Error begun_already(const std::string& id) {
  return {ErrorCode::kUsage, fmt::format("session {} has been begun already: see 'sluice session show'", id)};
}

// The journal knows of more sessions than are shown.
asio::awaitable<Status> check_unused(std::shared_ptr<runtime::Services> services, std::string id) {
  if (id.empty()) co_return Status();
  auto look = [services, id]() -> Status {
    const Result<std::optional<transfer::Saved>> found = services->journal->saved(id, false);
    if (!found) return found.error();
    return found->has_value() ? Status(begun_already(id)) : Status();
  };
  co_return co_await services->pool.wait_for(std::move(look));
}

}  // namespace

std::string new_session_id() { return identity::random_hex(16); }

Result<identity::Peer> check_peer(const config::Node& node, const std::string& name) {
  Result<identity::Peer> peer = identity::find_peer(node, name);
  if (!peer || !peer->address.empty()) return peer;
  return Error{ErrorCode::kConfiguration,
               fmt::format("node {0} is trusted, but its address is not known: 'sluice node trust {0} "
                           "--address HOST:PORT' says "
                           "it; a node that does not listen has none, and begins transfers itself",
                           name)};
}

// Each of them.
Status check_peers(const config::Node& node, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (const auto peer = check_peer(node, name); !peer) return peer.error();
  }
  return {};
}

Starter::Starter(std::shared_ptr<runtime::Services> services, Sessions& sessions)
    : services_(std::move(services)), sessions_(sessions) {}

Starter::~Starter() { *alive_ = false; }

asio::awaitable<Result<std::string>> Starter::send(Wishes wishes) {
  return begin(transfer::Role::kSource, std::move(wishes));
}

asio::awaitable<Result<std::string>> Starter::get(Wishes wishes) {
  return begin(transfer::Role::kDestination, std::move(wishes));
}

// Nothing is done under it before this node keeps to it.
asio::awaitable<Status> Starter::take_lease(std::optional<transfer::Lease> lease) {
  if (!lease) co_return Status();
  LeaseDesk::Claim claim{.lease = std::move(*lease)};
  co_return co_await sessions_.leases().claim_and_wait(std::move(claim));
}

asio::awaitable<Result<std::string>> Starter::begin(transfer::Role role, Wishes wishes) {
  const std::shared_ptr<bool> alive = alive_;
  const std::shared_ptr<runtime::Services> services = services_;
  if (const Status status = sessions_.check_room(wishes.user); !status) co_return status.error();
  if (!wishes.source_node.empty())
    co_return Error{ErrorCode::kInternal, "what another node is to send is ordered, not begun"};
  std::vector<std::string> peers = wishes.more_peers;
  peers.insert(peers.begin(), wishes.peer);
  auto known = [services, peers] { return check_peers(services->node, peers); };
  if (const Status status = co_await services->pool.wait_for(std::move(known)); !status)
    co_return status.error();
  if (const Status status = check_wishes(role, wishes); !status) co_return status.error();
  const Result<transfer::Options> options = parse_options(wishes, services->node);
  if (!options) co_return options.error();
  if (const Status status = check_places(*services, role, &wishes); !status) co_return status.error();
  const Status unused = co_await check_unused(services, wishes.id);
  if (!*alive) co_return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
  if (!unused) co_return unused.error();
  const bool outside_exports = wishes.local_files.has_value();
  // Until the session has it.
  const std::shared_ptr<exports::UserFiles> opener =
      outside_exports ? services->callers.of(wishes.local_files->uid, wishes.local_files->token) : nullptr;
  const std::optional<transfer::User> opens = outside_exports ? std::nullopt : wishes.user;
  if (const Status status = co_await check_user(services, opens); !status) co_return status.error();
  // Of a list only what is in the directory arrives: that is what a path with a slash behind it means.
  if (!wishes.selection.names.empty() && !wishes.sources.front().ends_with('/'))
    wishes.sources.front() += '/';
  gather::OpenSources sources;
  if (role == transfer::Role::kSource) {
    runtime::ListReader::What what = what_to_read(*services, wishes);
    // What is to have a deadline is judged by its size: then all of it is looked for first.
    const bool whole = options->deadline_unix_ns != 0 && options->deadline_policy != deadline::Policy::kEnd;
    async::KeyedPart part = services->part(services->lists_pool, *what.exports,
                                           runtime::export_key(*what.exports, wishes.sources));
    Result<gather::OpenSources> opened =
        co_await runtime::begin_list(services->io, std::move(part), std::move(what), whole);
    if (!opened) co_return opened.error();
    sources = std::move(*opened);
  }
  if (!*alive) co_return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
  const Status held = co_await take_lease(wishes.lease);
  if (!*alive) co_return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
  if (!held) co_return held.error();
  if (const Status status = sessions_.check_room(wishes.user); !status) co_return status.error();
  transfer::Request request{.options = *options,
                            .source_paths = std::move(wishes.sources),
                            .selection = std::move(wishes.selection),
                            .destination = std::move(wishes.destination),
                            .source_bytes = sources.rest ? 0 : bytes_of(sources),
                            .user = std::move(wishes.user),
                            .local_files = std::move(wishes.local_files),
                            .expected = std::move(wishes.expected)};
  if (const Status status = check_deadline(role, wishes.peer, request); !status) co_return status.error();
  // Meanwhile somebody may have called under this id. Whose that is is found when the order is given again.
  if (wishes.order && sessions_.active(wishes.order->id))
    co_return Error{ErrorCode::kResources, "a session with this id has begun meanwhile: ask again"};
  if (!wishes.id.empty() && sessions_.find(wishes.id)) co_return begun_already(wishes.id);
  const auto log_level = static_cast<board::LogLevel>(options->log_level);  // numbered alike (session_log.cc)
  const Sessions::Task task = begin_now(role,
                                        {.id = wishes.order ? wishes.order->id : wishes.id,
                                         .names = std::move(peers),
                                         .limit_bps = wishes.options.rate_bps.value_or(0),
                                         .order = std::move(wishes.order),
                                         .lease = std::move(wishes.lease)},
                                        std::move(request), std::move(sources), log_level);
  // Whoever was told its id finds it after the death of anything.
  const Status written = co_await task->journal_settled();
  if (!written) co_return written.error();
  co_return task->transfer().id();
}

// Refuses what send() would refuse before it looks at the sources.
asio::awaitable<Result<Preview>> Starter::preview(Wishes wishes) {
  const std::shared_ptr<runtime::Services> services = services_;
  auto known = [services, peer = wishes.peer] { return check_peer(services->node, peer); };
  const Result<identity::Peer> trusted = co_await services->pool.wait_for(std::move(known));
  if (!trusted) co_return trusted.error();
  if (const Status status = check_wishes(transfer::Role::kSource, wishes); !status) co_return status.error();
  if (const auto options = parse_options(wishes, services->node); !options) co_return options.error();
  if (const Status status = check_places(*services, transfer::Role::kSource, &wishes); !status)
    co_return status.error();
  co_return Preview([services, wishes = std::move(wishes)](const gather::TakePreview& take) {
    return gather::preview_sources(services->exports_for(wishes.peer, wishes.user, wishes.local_files),
                                   wishes.sources, wishes.selection, take);
  });
}

Sessions::Task Starter::begin_now(transfer::Role role, Peers peers, transfer::Request request,
                                  gather::OpenSources sources, board::LogLevel log_level) {
  const std::string id = peers.id.empty() ? new_session_id() : peers.id;
  DCHECK(id.size() == 32, "16 bytes, in hex");
  DCHECK(sources.open.empty() || sources.open.size() == sources.files.size(), "each file has its place");
  services_->logs.begin(id, log_level);
  const bool sends = role == transfer::Role::kSource;
  log::of(log::kSession)
      ->info("session {}: {} {} {} {}, asked for by {}", id.substr(0, 8), sends ? "send" : "get",
             base::counted(request.source_paths.size(), "file"), sends ? "to" : "from",
             fmt::join(peers.names, ", "),
             peers.order    ? "node " + peers.order->granted.issuer
             : request.user ? "user " + request.user->name
                            : "an operator");
  for (const std::string& peer : peers.names)
    sessions_.note(audit::session_begun(id, role, true, peer, request.user, async::unix_ns(),
                                        peers.order ? peers.order->granted.issuer : ""));
  // Who has to wait holds no files open meanwhile: they are opened again when its turn has come.
  // So they are for another node, whose quotas are looked at then.
  std::vector<catalog::File> foreseen;
  if (services_->places.queue().waiting() != 0 || peers.order) {
    foreseen = std::move(sources.files);
    close_sources(peers.names.front(), request, std::exchange(sources, {}).open);
  }
  std::optional<std::vector<catalog::File>> files;
  if (!sources.open.empty()) files = std::move(sources.files);
  auto transfer = std::make_unique<transfer::Transfer>(services_->settings, id, peers.names.front(), role,
                                                       std::move(request), std::move(files),
                                                       sessions_.next_start_ns(), async::monotonic_ns());
  for (auto peer = peers.names.begin() + 1; peer != peers.names.end(); ++peer)
    transfer->add_leg(std::move(*peer));
  if (peers.names.size() > 1) transfer->begin_limited(peers.limit_bps);
  transfer->begin_foreseen(foreseen);
  transfer->begin_leased(std::move(peers.lease));
  if (peers.order) transfer->begin_granted(std::move(peers.order->granted));
  return sessions_.add(std::move(transfer), std::move(sources));
}

// Not on the loop: closing a file may wait for its file system.
void Starter::close_sources(const std::string& peer, const transfer::Request& request,
                            decltype(gather::OpenSources::open) open) {
  const exports::Exports exports = services_->exports_for(peer, request.user, request.local_files);
  services_->part(services_->files_pool, exports, runtime::export_key(exports, request.source_paths))
      .run(
          [open = std::move(open)]() mutable {
            open.clear();
            return 0;
          },
          [](int) {});
}

// What can be known of a deadline before anything is begun. A session that passes looks again itself, when it
// knows more (control/transfer/pace.h).
Status Starter::check_deadline(transfer::Role role, const std::string& peer,
                               const transfer::Request& request) const {
  const transfer::Options& options = request.options;
  if (options.deadline_unix_ns == 0 || options.deadline_policy == deadline::Policy::kEnd) return {};
  const int64_t now_unix_ns = async::unix_ns();
  const deadline::Load load = transfer::load_of(request, peer, role);
  const deadline::Question question = transfer::foresee(
      *services_->settings.outlook, load, options.deadline_unix_ns - now_unix_ns, async::monotonic_ns());
  const deadline::Forecast forecast = deadline::judge(question);
  if (forecast.answer != deadline::Forecast::Answer::kRefused) return {};
  const bool over = question.seconds_left <= 0;
  if (options.deadline_policy == deadline::Policy::kWarn && !over) return {};
  return deadline::refusal(forecast, question, options.deadline_unix_ns, now_unix_ns);
}

}  // namespace sluice::node
