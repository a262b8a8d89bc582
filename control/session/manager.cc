// SPDX-License-Identifier: Apache-2.0
#include "control/session/manager.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <algorithm>
#include <asio/detached.hpp>
#include <random>

namespace sluice::control {
namespace {

std::string new_session_id() {
  static std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", static_cast<uint32_t>(random()));
  return id;
}

// A session may hold thousands of files open.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  if (::setrlimit(RLIMIT_NOFILE, &limit) != 0) spdlog::warn("cannot raise the limit of open files");
}

}  // namespace

Manager::Manager(asio::io_context& io, const config::Node& node, identity::Identity identity,
                 exports::Exports exports, std::unique_ptr<journal::Journal> journal)
    : context_(
          std::make_shared<Context>(io, node, std::move(identity), std::move(exports), std::move(journal))) {}

Manager::~Manager() { *alive_ = false; }

Status Manager::start() {
  raise_descriptor_limit();
  if (const Status status = restore(); !status) return status;
  const auto find = [context = context_](const std::string& fingerprint) -> std::optional<identity::Peer> {
    Result<std::vector<identity::Peer>> peers = identity::load_peers(context->node.directory);
    if (!peers) {
      spdlog::warn("{}", peers.error().message);
      return std::nullopt;
    }
    for (identity::Peer& peer : *peers) {
      if (peer.fingerprint == fingerprint) return std::move(peer);
    }
    return std::nullopt;
  };
  Result<std::unique_ptr<peer::Listener>> listener =
      peer::listen(context_->io, context_->identity, context_->node.listen, find,
                   [this, alive = alive_](std::unique_ptr<peer::Connection> connection) {
                     if (!*alive) return;
                     asio::co_spawn(context_->io, serve(alive, std::move(connection)), asio::detached);
                   });
  if (!listener) return listener.error();
  listener_ = std::move(*listener);
  context_->board->start();
  return {};
}

void Manager::stop() {
  stopping_ = true;
  listener_.reset();
  for (const auto& session : active_) session->detach();
  if (active_.empty()) context_->board->stop();
}

Status Manager::check_room() const {
  if (stopping_) return Error{ErrorCode::kDaemonNotRunning, "sluice-control is stopping"};
  if (!context_->board->attached()) {
    return Error{ErrorCode::kDaemonNotRunning,
                 fmt::format("sluice-dataplane of this node does not run ({}): start it",
                             context_->node.dataplane_socket().string())};
  }
  if (active_.size() >= context_->node.sessions_max) {
    return Error{
        ErrorCode::kResources,
        fmt::format("node {} has {} sessions already: wait for one to end, or raise control.sessions_max",
                    context_->node.name, active_.size())};
  }
  return {};
}

Result<identity::Peer> Manager::find_peer(const std::string& name) const {
  Result<std::vector<identity::Peer>> peers = identity::load_peers(context_->node.directory);
  if (!peers) return peers.error();
  for (const identity::Peer& peer : *peers) {
    if (peer.name != name) continue;
    if (!peer.address.empty()) return peer;
    return Error{
        ErrorCode::kConfiguration,
        fmt::format("node {} is trusted, but its address is not known: use 'sluice node trust' with one",
                    name)};
  }
  return Error{ErrorCode::kPeerUntrusted,
               fmt::format("node \"{}\" is not trusted here: use 'sluice node trust' first", name)};
}

Result<std::string> Manager::send(const api::SendRequest& request) {
  if (const Status status = check_room(); !status) return status.error();
  Result<identity::Peer> peer = find_peer(request.peer());
  if (!peer) return peer.error();
  if (request.destination().empty())
    return Error{ErrorCode::kUsage, "no destination: use NODE:PATH or NODE:null:"};
  Result<Options> options =
      parse_options(request.options(), context_->node, request.destination() == kNullDestination);
  if (!options) return options.error();
  SessionRequest session;
  session.send = true;
  session.source_paths.assign(request.sources().begin(), request.sources().end());
  Result<std::vector<SourceItem>> sources = open_sources(context_->exports, session.source_paths);
  if (!sources) return sources.error();
  session.peer = std::move(*peer);
  session.options = *options;
  session.sources = std::move(*sources);
  session.destination = request.destination();
  return begin(std::move(session));
}

Result<std::string> Manager::get(const api::GetRequest& request) {
  if (const Status status = check_room(); !status) return status.error();
  Result<identity::Peer> peer = find_peer(request.peer());
  if (!peer) return peer.error();
  if (request.destination().empty()) return Error{ErrorCode::kUsage, "no destination: name a path, or null:"};
  if (request.sources().empty())
    return Error{ErrorCode::kUsage, "no source given: name at least one file of the peer"};
  Result<Options> options =
      parse_options(request.options(), context_->node, request.destination() == kNullDestination);
  if (!options) return options.error();
  SessionRequest session;
  session.send = false;
  session.peer = std::move(*peer);
  session.options = *options;
  session.source_paths.assign(request.sources().begin(), request.sources().end());
  session.destination = request.destination();
  return begin(std::move(session));
}

std::string Manager::begin(SessionRequest request) {
  std::string id = new_session_id();
  spdlog::info("session {}: {} {} file(s) {} {}, asked for by an operator", id.substr(0, 8),
               request.send ? "send" : "get", request.source_paths.size(), request.send ? "to" : "from",
               request.peer.name);
  add(std::make_shared<Session>(context_, id, std::move(request)));
  return id;
}

void Manager::add(const std::shared_ptr<Session>& session) {
  active_.push_back(session);
  session->start([this, alive = alive_](const std::shared_ptr<Session>& over) {
    if (*alive) ended(over);
  });
}

void Manager::ended(const std::shared_ptr<Session>& session) {
  ended_.push_back(session->snapshot());
  if (ended_.size() > kEndedKept) ended_.pop_front();
  std::erase(active_, session);
  if (const auto peer = session->unaware_peer(); peer && !stopping_) {
    asio::co_spawn(context_->io, tell_unaware(session->id(), *peer, *session->error()), asio::detached);
  }
  news_();
  if (stopping_ && active_.empty()) context_->board->stop();
}

std::vector<api::Session> Manager::list() const {
  std::vector<api::Session> all(ended_.begin(), ended_.end());
  for (const auto& session : active_) {
    all.push_back(session->snapshot());
  }
  std::stable_sort(all.begin(), all.end(), [](const api::Session& a, const api::Session& b) {
    return a.started_unix_ns() < b.started_unix_ns();
  });
  return all;
}

Result<api::Session> Manager::find(const std::string& id) const {
  const auto matches = [&](const std::string& candidate) { return !id.empty() && candidate.starts_with(id); };
  std::vector<api::Session> found;
  for (const api::Session& session : ended_) {
    if (matches(session.id())) found.push_back(session);
  }
  for (const auto& session : active_) {
    if (matches(session->id())) found.push_back(session->snapshot());
  }
  if (found.size() == 1) return std::move(found.front());
  if (found.empty())
    return Error{ErrorCode::kUsage, fmt::format("no session \"{}\": see 'sluice session list'", id)};
  return Error{ErrorCode::kUsage,
               fmt::format("\"{}\" begins {} session ids: give more of it", id, found.size())};
}

Result<api::Session> Manager::show(const std::string& id) const { return find(id); }

Result<std::shared_ptr<Session>> Manager::find_active(const std::string& id) const {
  const Result<api::Session> found = find(id);
  if (!found) return found.error();
  const auto session = std::find_if(active_.begin(), active_.end(),
                                    [&](const auto& candidate) { return candidate->id() == found->id(); });
  if (session != active_.end()) return *session;
  return Error{ErrorCode::kUsage, fmt::format("session {} has ended already", found->id())};
}

Result<api::Session> Manager::cancel(const std::string& id) {
  Result<std::shared_ptr<Session>> session = find_active(id);
  if (!session) return session.error();
  (*session)->cancel();
  return (*session)->snapshot();
}

Result<api::Session> Manager::pause(const std::string& id) {
  Result<std::shared_ptr<Session>> session = find_active(id);
  if (!session) return session.error();
  if (const Status status = (*session)->pause(); !status) return status.error();
  return (*session)->snapshot();
}

Result<api::Session> Manager::go_on(const std::string& id) {
  Result<std::shared_ptr<Session>> session = find_active(id);
  if (!session) return session.error();
  if (const Status status = (*session)->go_on(); !status) return status.error();
  return (*session)->snapshot();
}

}  // namespace sluice::control
