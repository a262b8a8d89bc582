// SPDX-License-Identifier: Apache-2.0
#include "tools/cli/client.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/grpcpp.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <vector>

#include "control/client/pulse.h"
#include "control/proto/error_metadata.h"
#include "control/proto/session_state.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/unique_fd.h"
#include "tools/cli/app.h"
#include "tools/cli/progress.h"

namespace sluice::cli {
namespace {

constexpr int kCallTimeoutSeconds = 60;
constexpr time_t kConnectTimeoutS = 15;
constexpr int kErrorCodeMax = static_cast<int>(kErrorCodeLast);

std::chrono::system_clock::time_point after_s(double seconds) {
  return std::chrono::system_clock::now() + std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                                std::chrono::duration<double>(seconds));
}

// The code that control attached; without one the status came from gRPC itself.
std::optional<ErrorCode> attached_code(const grpc::ClientContext& context) {
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto found = metadata.find(api::kErrorCodeKey);
  if (found == metadata.end()) return std::nullopt;
  int code = 0;
  const auto parsed =
      std::from_chars(found->second.data(), found->second.data() + found->second.size(), code);
  if (parsed.ec != std::errc() || code <= 0 || code > kErrorCodeMax) return ErrorCode::kInternal;
  return static_cast<ErrorCode>(code);
}

Error to_error(const grpc::Status& status, const grpc::ClientContext& context) {
  if (const auto code = attached_code(context)) return {*code, status.error_message()};
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::CANCELLED:
      return {ErrorCode::kDaemonNotRunning,
              "sluice-control ended the connection; see its log, and start it again if it is down"};
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return {ErrorCode::kDaemonNotRunning,
              "sluice-control runs and did not answer within " + std::to_string(kCallTimeoutSeconds) +
                  " s: a disk or a peer may keep it waiting; see its log and 'sluice session list'"};
    case grpc::StatusCode::UNIMPLEMENTED:
      return {ErrorCode::kIncompatible,
              "sluice-control is of another version than this command; restart it after an upgrade"};
    default:
      return {ErrorCode::kInternal, "unexpected answer of sluice-control: " + status.error_message()};
  }
}

// A call, and a look now and then whether somebody is there who could answer it.
struct Call {
  explicit Call(api::Control::Stub& control) : pulse(control, context) {}

  Error error_of(const grpc::Status& status) const {
    if (pulse.stands_still() && !attached_code(context))
      return {ErrorCode::kDaemonNotRunning, api::Pulse::problem("")};
    return to_error(status, context);
  }

  grpc::ClientContext context;
  api::Pulse pulse;  // last: it ends before the context
};

template <typename Stub, typename Reply, typename Request>
Result<Reply> call(api::Control::Stub& control, Stub& stub,
                   grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                   const Request& request, std::optional<double> timeout_s = kCallTimeoutSeconds) {
  Call asked(control);
  if (timeout_s) asked.context.set_deadline(after_s(*timeout_s));
  Reply reply;
  const grpc::Status status = (stub.*method)(&asked.context, request, &reply);
  if (!status.ok()) return asked.error_of(status);
  return reply;
}

template <typename Reply, typename Request>
Result<Reply> call(api::Control::Stub& control,
                   grpc::Status (api::Control::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                   const Request& request) {
  return call(control, control, method, request);
}

// Hands out part after part, until there are no more or no more are wanted.
template <typename Reader, typename Part>
Status read_parts(Reader reader, Call& asked, const std::function<bool(const Part&)>& on_part) {
  Part part;
  bool wanted = true;
  while (wanted && reader->Read(&part)) wanted = on_part(part);
  if (!wanted) asked.context.TryCancel();
  const grpc::Status status = reader->Finish();
  if (!status.ok() && wanted) return asked.error_of(status);
  return {};
}

api::SessionRef reference(const std::string& id) {
  api::SessionRef ref;
  ref.set_id(id);
  return ref;
}

Error cannot_connect(const std::filesystem::path& directory, const std::filesystem::path& socket, int error) {
  if (error == EACCES || error == EPERM) {
    return {ErrorCode::kConfiguration,
            "no permission for " + socket.string() +
                "; run as the user that runs sluice-control, or as a member of [control] group, or of "
                "users_group to send as yourself"};
  }
  if (error == ENOENT || error == ECONNREFUSED) {
    return {ErrorCode::kDaemonNotRunning, "sluice-control is not running for " + directory.string() +
                                              "; start it with 'sluice-control --node " + directory.string() +
                                              "'"};
  }
  if (error == EAGAIN)
    return {ErrorCode::kDaemonNotRunning, api::Pulse::problem(" of " + directory.string())};
  return {ErrorCode::kDaemonNotRunning, "cannot connect to " + socket.string() + ": " + std::strerror(error)};
}

// Nothing, with errno, if nobody answers.
UniqueFd connect_to(const std::filesystem::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (path.native().size() >= sizeof(address.sun_path)) return {};
  std::memcpy(address.sun_path, path.c_str(), path.native().size());
  // One that stands still takes no more calls once its queue is full.
  const timeval limit{.tv_sec = kConnectTimeoutS, .tv_usec = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return socket;
  const int error = errno;
  socket.reset();
  errno = error;
  return socket;
}

// What outlives its clients, if anything does.
std::vector<std::shared_ptr<grpc::Channel>>* kept_channels = nullptr;

}  // namespace

void Client::keep_channels() { kept_channels = new std::vector<std::shared_ptr<grpc::Channel>>(); }

Result<std::unique_ptr<Client>> Client::connect(const std::filesystem::path& node_directory) {
  std::error_code problem;
  if (!std::filesystem::is_directory(node_directory, problem)) {
    if (problem == std::errc::permission_denied) return not_to_be_seen(node_directory);
    return Error{ErrorCode::kConfiguration,
                 "no node directory " + node_directory.string() +
                     "; make one with 'sluice node init', or name yours with --node "
                     "or SLUICE_NODE"};
  }
  config::Node node;
  node.directory = node_directory;
  const std::filesystem::path path = node.control_socket();
  if (path.native().size() >= sizeof(sockaddr_un::sun_path)) {
    return Error{ErrorCode::kConfiguration,
                 path.string() + " is longer than a unix socket's path may be; use a shorter node directory"};
  }
  UniqueFd socket = connect_to(path);
  const int error = errno;
  // Who may not use the node may still be one of those who send as themselves, or may look.
  if (!socket && error == EACCES) socket = connect_to(node.users_socket());
  if (!socket && error == EACCES) socket = connect_to(node.readers_socket());
  if (!socket) return cannot_connect(node_directory, path, error);
  ::fcntl(socket.get(), F_SETFL, O_NONBLOCK);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);  // a list of sessions with many files is long
  arguments.SetMaxSendMessageSize(-1);
  auto channel = grpc::CreateCustomInsecureChannelFromFd("sluice-control", socket.release(), arguments);
  if (kept_channels != nullptr) kept_channels->push_back(channel);
  return std::unique_ptr<Client>(new Client(api::Control::NewStub(channel), api::Names::NewStub(channel),
                                            api::Logs::NewStub(channel), api::Peers::NewStub(channel)));
}

Result<api::NodeReply> Client::node() {
  return call(*stub_, *stub_, &api::Control::Stub::Node, api::NodeRequest(),
              limit_s_.value_or(kCallTimeoutSeconds));
}

Result<std::string> Client::begin(const TransferRequest& request) {
  const auto* const send = std::get_if<api::SendRequest>(&request);
  auto ref = send != nullptr ? call(*stub_, &api::Control::Stub::Send, *send)
                             : call(*stub_, &api::Control::Stub::Get, std::get<api::GetRequest>(request));
  if (!ref) return ref.error();
  return ref->id();
}

Status Client::preview(const api::SendRequest& request,
                       const std::function<void(const api::PreviewReply&)>& on_part) {
  const auto all = [&on_part](const api::PreviewReply& part) {
    on_part(part);
    return true;
  };
  Call asked(*stub_);
  return read_parts(stub_->PreviewSend(&asked.context, request), asked,
                    std::function<bool(const api::PreviewReply&)>(all));
}

Result<api::ListSessionsReply> Client::list() {
  return call(*stub_, *stub_, &api::Control::Stub::ListSessions, api::ListSessionsRequest(),
              limit_s_.value_or(kCallTimeoutSeconds));
}

Result<api::Session> Client::show(const std::string& id) {
  return call(*stub_, &api::Control::Stub::ShowSession, reference(id));
}

Result<api::Session> Client::cancel(const std::string& id) {
  return call(*stub_, &api::Control::Stub::CancelSession, reference(id));
}

Result<api::Session> Client::pause(const std::string& id) {
  return call(*stub_, &api::Control::Stub::PauseSession, reference(id));
}

Result<api::Session> Client::limit(const std::string& id, uint64_t rate_bps) {
  api::LimitRequest request;
  request.set_id(id);
  request.set_rate_bps(rate_bps);
  return call(*stub_, &api::Control::Stub::LimitSession, request);
}

Result<api::Session> Client::prioritize(const std::string& id, int32_t priority) {
  api::PriorityRequest request;
  request.set_id(id);
  request.set_priority(priority);
  return call(*stub_, &api::Control::Stub::PrioritizeSession, request);
}

Result<api::Session> Client::go_on(const std::string& id) {
  return call(*stub_, &api::Control::Stub::ContinueSession, reference(id));
}

Status Client::verify(const std::string& id,
                      const std::function<void(const api::VerifyProgress&)>& on_progress) {
  const auto all = [&on_progress](const api::VerifyProgress& progress) {
    on_progress(progress);
    return true;
  };
  Call asked(*stub_);
  return read_parts(stub_->VerifySession(&asked.context, reference(id)), asked,
                    std::function<bool(const api::VerifyProgress&)>(all));
}

Result<api::CountersReply> Client::counters() {
  return call(*stub_, &api::Control::Stub::Counters, api::CountersRequest());
}

Status Client::list_names(const api::ListNamesRequest& request,
                          const std::function<bool(const api::ListNamesReply&)>& on_part) {
  Call asked(*stub_);
  if (limit_s_) asked.context.set_deadline(after_s(*limit_s_));
  return read_parts(names_->List(&asked.context, request), asked, on_part);
}

Result<std::optional<api::NameEntry>> Client::look_at(const std::string& peer, const std::string& path) {
  api::ListNamesRequest request;
  request.set_peer(peer);
  request.set_path(path);
  request.set_itself(true);
  std::optional<api::NameEntry> found;
  const Status status = list_names(request, [&found](const api::ListNamesReply& part) {
    if (!found && part.entries_size() != 0) found = part.entries(0);
    return true;
  });
  constexpr auto kMissing = ErrorCode::kSourceUnreadable;
  if (!status && status.error().code != kMissing) return status.error();
  if (!found || found->error_code() == static_cast<uint32_t>(kMissing))
    return std::optional<api::NameEntry>();
  if (found->error_code() != 0) return Error{static_cast<ErrorCode>(found->error_code()), found->error()};
  return found;
}

Result<api::NamesReply> Client::make_directory(const api::MakeDirectoryRequest& request) {
  return call(*stub_, *names_, &api::Names::Stub::MakeDirectory, request, std::nullopt);
}

Result<api::NamesReply> Client::move_name(const api::MoveNameRequest& request) {
  return call(*stub_, *names_, &api::Names::Stub::Move, request, std::nullopt);
}

Result<api::NamesReply> Client::remove_name(const api::RemoveNameRequest& request) {
  return call(*stub_, *names_, &api::Names::Stub::Remove, request, std::nullopt);
}

Status Client::compare(const api::CompareRequest& request,
                       const std::function<bool(const api::CompareReply&)>& on_part) {
  Call asked(*stub_);
  bool wanted = true;
  bool complete = false;
  const auto watched = [&](const api::CompareReply& part) {
    complete = complete || part.has_totals();
    return wanted = on_part(part);
  };
  Status status = read_parts(names_->Compare(&asked.context, request), asked,
                             std::function<bool(const api::CompareReply&)>(watched));
  if (!status || !wanted) return status;
  if (!complete)
    return Error{ErrorCode::kInternal, "sluice-control ended the comparison before its end; see its log"};
  return {};
}

Status Client::read_log(const api::LogRequest& request,
                        const std::function<bool(const api::LogReply&)>& on_part) {
  Call asked(*stub_);
  return read_parts(logs_->Read(&asked.context, request), asked, on_part);
}

Result<api::PeerAnswer> Client::about(const std::string& peer) {
  api::PeerRequest request;
  request.set_peer(peer);
  return call(*stub_, *peers_, &api::Peers::Stub::About, request);
}

Result<api::ComponentLevels> Client::log_levels() {
  return call(*stub_, *logs_, &api::Logs::Stub::Levels, api::ComponentLevelsRequest());
}

Result<api::ComponentLevels> Client::set_component_level(const api::ComponentLevel& level) {
  return call(*stub_, *logs_, &api::Logs::Stub::SetLevel, level);
}

Result<api::SessionLogLevel> Client::set_log_level(const std::string& id, const std::string& level) {
  api::SessionLogLevel request;
  request.set_id(id);
  request.set_level(level);
  return call(*stub_, *logs_, &api::Logs::Stub::SetSessionLevel, request);
}

Status Client::events(const std::string& id, const std::function<bool(const api::SessionEvent&)>& on_event) {
  Call asked(*stub_);
  return read_parts(stub_->SessionEvents(&asked.context, reference(id)), asked, on_event);
}

Result<api::Session> Client::watch(const std::string& id, std::optional<double> timeout_s,
                                   const std::function<bool(const api::Session&)>& on_change) {
  Call asked(*stub_);
  if (timeout_s) asked.context.set_deadline(after_s(*timeout_s));
  auto reader = stub_->WatchSession(&asked.context, reference(id));
  api::Session session;
  bool enough = false;
  while (!enough && reader->Read(&session)) enough = !on_change(session);
  if (enough) asked.context.TryCancel();
  const grpc::Status status = reader->Finish();
  if (enough || api::stands_still(session)) return session;
  const bool timed_out = timeout_s && status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
  if (timed_out && !attached_code(asked.context)) return session.id().empty() ? show(id) : session;
  if (status.ok()) {
    return Error{ErrorCode::kInternal,
                 "sluice-control ended the stream of session " + id + " before its end"};
  }
  Error error = asked.error_of(status);
  if (error.code == ErrorCode::kDaemonNotRunning) {
    error.message += "; the session goes on once it runs again: 'sluice session wait " + id + "'";
  }
  return error;
}

}  // namespace sluice::cli
