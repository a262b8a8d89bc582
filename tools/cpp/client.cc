// SPDX-License-Identifier: Apache-2.0
#include "tools/cpp/include/sluice/client.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "tools/cpp/connection.h"
#include "tools/cpp/errors.h"
#include "tools/cpp/messages.h"

namespace sluice::client {
namespace {

using Stub = api::Control::Stub;

// A slash at the end stays: it says that a directory is meant.
std::string local(const std::string& path) {
  if (path.empty() || path.rfind("memory:", 0) == 0 || path == "null:") return path;
  return (std::filesystem::current_path() / path).string();
}

api::SessionRef reference(const std::string& id) {
  api::SessionRef ref;
  ref.set_id(id);
  return ref;
}

std::string directory_of(const std::string& given) {
  if (!given.empty()) return given;
  const char* const set = std::getenv("SLUICE_NODE");
  return set != nullptr && *set != '\0' ? set : "/etc/sluice";
}

// Ends the call when somebody leaves the wait, be it with an exception: a stream that nobody reads stays
// open.
class Leaving {
 public:
  explicit Leaving(grpc::ClientContext& context) : context_(context) {}
  Leaving(const Leaving&) = delete;
  Leaving& operator=(const Leaving&) = delete;
  ~Leaving() { context_.TryCancel(); }

 private:
  grpc::ClientContext& context_;
};

// An error holds it until an operator does something.
bool held(const Status& now) { return now.state == State::kPaused && now.error_code != 0; }

// Nothing when `until` has passed before it ended.
std::optional<Status> wait_until(const Connection& connection, const std::string& id,
                                 std::optional<std::chrono::system_clock::time_point> until,
                                 const OnProgress& on_progress) {
  grpc::ClientContext context;
  if (until) context.set_deadline(*until);
  const api::Pulse pulse(connection.stub(), context);
  const auto stream = connection.stub().WatchSession(&context, reference(id));
  const Leaving leaving(context);
  api::Session message;
  Status last;
  while (!held(last) && stream->Read(&message)) {
    last = status_of(message);
    if (on_progress) on_progress(last);
  }
  if (!held(last) && !last.ended()) {
    const grpc::Status status = stream->Finish();
    if (until && status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) return std::nullopt;
    if (!status.ok()) throw error_of(status, context, pulse, connection.socket());
    throw error(ErrorCode::kInternal, "session " + id + ": its node ended the stream before its end");
  }
  if (last.error_code != 0) throw Error(last.error_code, last.error_name, last.error);
  if (last.state != State::kSucceeded) throw error(ErrorCode::kCancelled, "session " + id + " was cancelled");
  return last;
}

}  // namespace

Error::Error(int code, std::string name, const std::string& message)
    : std::runtime_error(message), code_(code), name_(std::move(name)) {}
Error::~Error() = default;

// ---- sessions ----------------------------------------------------------------------------------

Session::Session(std::shared_ptr<const Connection> connection, std::string id)
    : connection_(std::move(connection)), id_(std::move(id)) {}

Status Session::show() const { return status_of(connection_->call(&Stub::ShowSession, reference(id_))); }

Status Session::wait(const OnProgress& on_progress) const {
  return *wait_until(*connection_, id_, std::nullopt, on_progress);
}

std::optional<Status> Session::wait_for(std::chrono::nanoseconds time, const OnProgress& on_progress) const {
  const auto ticks = std::chrono::duration_cast<std::chrono::system_clock::duration>(time);
  return wait_until(*connection_, id_, std::chrono::system_clock::now() + ticks, on_progress);
}

Status Session::cancel() const { return status_of(connection_->call(&Stub::CancelSession, reference(id_))); }

Status Session::pause() const { return status_of(connection_->call(&Stub::PauseSession, reference(id_))); }

Status Session::go_on() const { return status_of(connection_->call(&Stub::ContinueSession, reference(id_))); }

Status Session::limit(uint64_t rate_bps) const {
  api::LimitRequest request;
  request.set_id(id_);
  request.set_rate_bps(rate_bps);
  return status_of(connection_->call(&Stub::LimitSession, request));
}

Status Session::prioritize(int32_t priority) const {
  api::PriorityRequest request;
  request.set_id(id_);
  request.set_priority(priority);
  return status_of(connection_->call(&Stub::PrioritizeSession, request));
}

// ---- a node ------------------------------------------------------------------------------------

Node::Node(const std::string& directory)
    : connection_(std::make_shared<const Connection>(directory_of(directory))) {}

Session Node::send(const std::vector<std::string>& sources, const std::string& peer,
                   const std::string& destination, const Options& options) const {
  api::SendRequest request;
  for (const std::string& source : sources) request.add_sources(local(source));
  request.set_peer(peer);
  request.set_destination(destination);
  *request.mutable_options() = message_of(options);
  return {connection_, connection_->call(&Stub::Send, request).id()};
}

Session Node::get(const std::string& peer, const std::vector<std::string>& sources,
                  const std::string& destination, const Options& options) const {
  api::GetRequest request;
  request.set_peer(peer);
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
  return {connection_, connection_->call(&Stub::ShowSession, reference(id)).id()};
}

NodeStatus Node::show() const { return status_of(connection_->call(&Stub::Node, api::NodeRequest())); }

}  // namespace sluice::client
