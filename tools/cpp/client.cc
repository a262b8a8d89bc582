// SPDX-License-Identifier: Apache-2.0
#include "tools/cpp/include/sluice/client.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <utility>

#include "control/client/bundle.h"
#include "control/client/requests.h"
#include "control/client/watch.h"
#include "control/client/way.h"
#include "tools/cpp/connection.h"
#include "tools/cpp/errors.h"
#include "tools/cpp/messages.h"

namespace sluice::client {
namespace {

using Stub = api::Control::Stub;

// A slash at the end stays: it says that a directory is meant.
std::string local(const std::string& path) {
  if (path.empty() || api::is_memory_source(path) || api::is_null_destination(path)) return path;
  return (std::filesystem::current_path() / path).string();
}

std::filesystem::path directory_of(const std::string& given) {
  return given.empty() ? api::usual_node() : std::filesystem::path(given);
}

// Nothing when the time is over before it ended.
std::optional<Status> wait_until(const Connection& connection, const std::string& id,
                                 std::optional<double> timeout_s, const OnProgress& on_progress) {
  const api::Watched watched =
      api::watch_session(connection.stub(), id, timeout_s, [&on_progress](const api::Session& now) {
        if (on_progress) on_progress(status_of(now));
        return true;
      });
  if (watched.end == api::Watched::End::kTimeOver) return std::nullopt;
  if (watched.failure) throw error_of(*watched.failure, connection.socket());
  if (watched.end == api::Watched::End::kBroken)
    throw error(ErrorCode::kInternal, "session " + id + ": its node ended the stream before its end");
  Status last = status_of(watched.last);
  if (last.error_code != 0) throw Error(last.error_code, last.error_name, last.error);
  if (last.state != State::kSucceeded) throw error(ErrorCode::kCancelled, "session " + id + " was cancelled");
  return last;
}

std::string exported(const Connection& connection, const api::ExportRequest& request) {
  std::string bundle;
  if (const auto failure = api::export_bundle(connection.stub(), request, &bundle))
    throw error_of(*failure, connection.socket());
  return bundle;
}

}  // namespace

Error::Error(int code, std::string name, const std::string& message)
    : std::runtime_error(message), code_(code), name_(std::move(name)) {}
Error::~Error() = default;

// ---- sessions ----------------------------------------------------------------------------------

Session::Session(std::shared_ptr<const Connection> connection, std::string id)
    : connection_(std::move(connection)), id_(std::move(id)) {}

Status Session::show() const { return status_of(connection_->call(&Stub::ShowSession, api::reference(id_))); }

Status Session::wait(const OnProgress& on_progress) const {
  return *wait_until(*connection_, id_, std::nullopt, on_progress);
}

std::optional<Status> Session::wait_for(std::chrono::nanoseconds time, const OnProgress& on_progress) const {
  return wait_until(*connection_, id_, std::chrono::duration<double>(time).count(), on_progress);
}

Status Session::cancel() const {
  return status_of(connection_->call(&Stub::CancelSession, api::reference(id_)));
}

Status Session::pause() const {
  return status_of(connection_->call(&Stub::PauseSession, api::reference(id_)));
}

Status Session::go_on() const {
  return status_of(connection_->call(&Stub::ContinueSession, api::reference(id_)));
}

Status Session::limit(uint64_t rate_bps) const {
  return status_of(connection_->call(&Stub::LimitSession, api::limit_of(id_, rate_bps)));
}

Status Session::prioritize(int32_t priority) const {
  return status_of(connection_->call(&Stub::PrioritizeSession, api::priority_of(id_, priority)));
}

std::string Session::export_to(const std::string& node, std::chrono::seconds within) const {
  api::ExportRequest request;
  request.set_id(id_);
  request.set_to(node);
  request.set_within_s(static_cast<uint32_t>(std::clamp<int64_t>(within.count(), 0, UINT32_MAX)));
  return exported(*connection_, request);
}

Status Session::withdraw() const {
  api::ExportRequest request;
  request.set_id(id_);
  request.set_withdraw(true);
  (void)exported(*connection_, request);
  return show();
}

// ---- a node ------------------------------------------------------------------------------------

Node::Node(const std::string& directory)
    : connection_(std::make_shared<const Connection>(directory_of(directory))) {}

Session Node::send(const std::vector<std::string>& sources, const std::string& peer,
                   const std::string& destination, const Options& options,
                   const std::string& source_node) const {
  api::SendRequest request;
  request.set_from(source_node);
  for (const std::string& source : sources) request.add_sources(source_node.empty() ? local(source) : source);
  request.set_peer(peer);
  request.set_destination(destination);
  *request.mutable_options() = message_of(options);
  return {connection_, connection_->call(&Stub::Send, request).id()};
}

Session Node::get(const std::string& peer, const std::vector<std::string>& sources,
                  const std::string& destination, const Options& options,
                  const std::vector<std::string>& more_peers) const {
  api::GetRequest request;
  request.set_peer(peer);
  for (const std::string& each : more_peers) request.add_more_peers(each);
  for (const std::string& source : sources) request.add_sources(source);
  request.set_destination(local(destination));
  *request.mutable_options() = message_of(options);
  return {connection_, connection_->call(&Stub::Get, request).id()};
}

std::vector<Status> Node::sessions() const {
  const api::ListSessionsReply reply = connection_->call(&Stub::ListSessions, api::ListSessionsRequest());
  std::vector<Status> sessions;
  for (const api::Session& session : reply.sessions()) sessions.push_back(status_of(session));
  return sessions;
}

Session Node::session(const std::string& id) const {
  return {connection_, connection_->call(&Stub::ShowSession, api::reference(id)).id()};
}

NodeStatus Node::show() const { return status_of(connection_->call(&Stub::Node, api::NodeRequest())); }

Session Node::import_session(const std::string& bundle) const {
  api::Session session;
  if (const auto failure = api::import_bundle(connection_->stub(), bundle, &session))
    throw error_of(*failure, connection_->socket());
  return {connection_, session.id()};
}

}  // namespace sluice::client
