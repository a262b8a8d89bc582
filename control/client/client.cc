// SPDX-License-Identifier: Apache-2.0
#include "control/client/client.h"

#include <vector>

#include "control/client/watch.h"
#include "control/client/way.h"

namespace sluice::api {
namespace {

template <typename Stub, typename Reply, typename Request>
Result<Reply> ask(Control::Stub& control, Stub& stub,
                  grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                  const Request& request, std::optional<double> limit_s = kCallS) {
  Call call(control, limit_s);
  Reply reply;
  if (const auto failure = call.ask(stub, method, request, &reply)) return error_of(*failure);
  return reply;
}

template <typename Reply, typename Request>
Result<Reply> ask(Control::Stub& control,
                  grpc::Status (Control::Stub::*method)(grpc::ClientContext*, const Request&, Reply*),
                  const Request& request) {
  return ask(control, control, method, request);
}

Status outcome(const std::optional<Failure>& failure) {
  if (failure) return error_of(*failure);
  return {};
}

// Whoever sets this keeps the channels of all clients open: they outlive the clients.
std::vector<std::shared_ptr<grpc::Channel>>* kept_channels = nullptr;

}  // namespace

void Client::keep_channels() { kept_channels = new std::vector<std::shared_ptr<grpc::Channel>>(); }

Result<std::unique_ptr<Client>> Client::connect(const std::filesystem::path& node_directory) {
  Result<UniqueFd> connection = connect_to(node_directory);
  if (!connection) return connection.error();
  const std::shared_ptr<grpc::Channel> channel = channel_over(std::move(*connection));
  if (kept_channels != nullptr) kept_channels->push_back(channel);
  return std::unique_ptr<Client>(new Client(Control::NewStub(channel), Names::NewStub(channel),
                                            Logs::NewStub(channel), Peers::NewStub(channel)));
}

Result<NodeReply> Client::node() {
  return ask(*stub_, *stub_, &Control::Stub::Node, NodeRequest(), limit_s_.value_or(kCallS));
}

Result<std::string> Client::begin(const TransferRequest& request) {
  const auto* const send = std::get_if<SendRequest>(&request);
  auto ref = send != nullptr ? ask(*stub_, &Control::Stub::Send, *send)
                             : ask(*stub_, &Control::Stub::Get, std::get<GetRequest>(request));
  if (!ref) return ref.error();
  return ref->id();
}

Status Client::preview(const SendRequest& request, const std::function<void(const PreviewReply&)>& on_part) {
  Call call(*stub_, std::nullopt);
  return outcome(call.read(stub_->PreviewSend(call.context(), request), [&on_part](const PreviewReply& part) {
    on_part(part);
    return true;
  }));
}

Result<ListSessionsReply> Client::list() {
  return ask(*stub_, *stub_, &Control::Stub::ListSessions, ListSessionsRequest(), limit_s_.value_or(kCallS));
}

Result<Session> Client::show(const std::string& id) {
  return ask(*stub_, &Control::Stub::ShowSession, reference(id));
}

Result<Session> Client::cancel(const std::string& id) {
  return ask(*stub_, &Control::Stub::CancelSession, reference(id));
}

Result<Session> Client::pause(const std::string& id) {
  return ask(*stub_, &Control::Stub::PauseSession, reference(id));
}

Result<Session> Client::limit(const std::string& id, uint64_t rate_bps) {
  return ask(*stub_, &Control::Stub::LimitSession, limit_of(id, rate_bps));
}

Result<Session> Client::prioritize(const std::string& id, int32_t priority) {
  return ask(*stub_, &Control::Stub::PrioritizeSession, priority_of(id, priority));
}

Result<std::string> Client::export_session(const ExportRequest& request) {
  std::string bundle;
  if (const Status status = outcome(export_bundle(*stub_, request, &bundle)); !status) return status.error();
  return bundle;
}

Result<Session> Client::import_session(const std::string& bundle) {
  Session session;
  if (const Status status = outcome(import_bundle(*stub_, bundle, &session)); !status) return status.error();
  return session;
}

Result<Session> Client::go_on(const std::string& id) {
  return ask(*stub_, &Control::Stub::ContinueSession, reference(id));
}

Status Client::verify(const std::string& id, const std::function<void(const VerifyProgress&)>& on_progress) {
  Call call(*stub_, std::nullopt);
  return outcome(call.read(stub_->VerifySession(call.context(), reference(id)),
                           [&on_progress](const VerifyProgress& progress) {
                             on_progress(progress);
                             return true;
                           }));
}

Status Client::digests(const std::string& id, const std::function<void(const NameDigests&)>& on_name) {
  Call call(*stub_, std::nullopt);
  return outcome(
      call.read(stub_->SessionDigests(call.context(), reference(id)), [&on_name](const DigestsPart& part) {
        for (const NameDigests& name : part.names()) on_name(name);
        return true;
      }));
}

Result<CountersReply> Client::counters() { return ask(*stub_, &Control::Stub::Counters, CountersRequest()); }

Status Client::list_names(const ListNamesRequest& request,
                          const std::function<bool(const ListNamesReply&)>& on_part) {
  Call call(*stub_, limit_s_);
  return outcome(call.read(names_->List(call.context(), request), on_part));
}

Result<std::optional<NameEntry>> Client::look_at(const std::string& peer, const std::string& path) {
  ListNamesRequest request;
  request.set_peer(peer);
  request.set_path(path);
  request.set_itself(true);
  std::optional<NameEntry> found;
  const Status status = list_names(request, [&found](const ListNamesReply& part) {
    if (!found && part.entries_size() != 0) found = part.entries(0);
    return true;
  });
  constexpr auto kMissing = ErrorCode::kSourceUnreadable;
  if (!status && status.error().code != kMissing) return status.error();
  if (!found || found->error_code() == static_cast<uint32_t>(kMissing)) return std::optional<NameEntry>();
  if (found->error_code() != 0) return Error{static_cast<ErrorCode>(found->error_code()), found->error()};
  return found;
}

Result<NamesReply> Client::make_directory(const MakeDirectoryRequest& request) {
  return ask(*stub_, *names_, &Names::Stub::MakeDirectory, request, std::nullopt);
}

Result<NamesReply> Client::move_name(const MoveNameRequest& request) {
  return ask(*stub_, *names_, &Names::Stub::Move, request, std::nullopt);
}

Result<NamesReply> Client::remove_name(const RemoveNameRequest& request) {
  return ask(*stub_, *names_, &Names::Stub::Remove, request, std::nullopt);
}

Status Client::compare(const CompareRequest& request,
                       const std::function<bool(const CompareReply&)>& on_part) {
  bool wanted = true;
  bool complete = false;
  Call call(*stub_, std::nullopt);
  const auto failure = call.read(names_->Compare(call.context(), request), [&](const CompareReply& part) {
    complete = complete || part.has_totals();
    return wanted = on_part(part);
  });
  if (failure || !wanted) return outcome(failure);
  if (!complete)
    return Error{ErrorCode::kInternal, "sluice-control ended the comparison before its end; see its log"};
  return {};
}

Status Client::read_log(const LogRequest& request, const std::function<bool(const LogReply&)>& on_part) {
  Call call(*stub_, std::nullopt);
  return outcome(call.read(logs_->Read(call.context(), request), on_part));
}

Result<PeerAnswer> Client::about(const std::string& peer) {
  PeerRequest request;
  request.set_peer(peer);
  return ask(*stub_, *peers_, &Peers::Stub::About, request);
}

Result<ComponentLevels> Client::log_levels() {
  return ask(*stub_, *logs_, &Logs::Stub::Levels, ComponentLevelsRequest());
}

Result<ComponentLevels> Client::set_component_level(const ComponentLevel& level) {
  return ask(*stub_, *logs_, &Logs::Stub::SetLevel, level);
}

Result<SessionLogLevel> Client::set_log_level(const std::string& id, const std::string& level) {
  SessionLogLevel request;
  request.set_id(id);
  request.set_level(level);
  return ask(*stub_, *logs_, &Logs::Stub::SetSessionLevel, request);
}

Status Client::events(const std::string& id, const std::function<bool(const SessionEvent&)>& on_event) {
  Call call(*stub_, std::nullopt);
  return outcome(call.read(stub_->SessionEvents(call.context(), reference(id)), on_event));
}

Result<Session> Client::watch(const std::string& id, std::optional<double> timeout_s,
                              const std::function<bool(const Session&)>& on_change) {
  const Watched watched = watch_session(*stub_, id, timeout_s, on_change);
  if (watched.end == Watched::End::kTimeOver && watched.last.id().empty()) return show(id);
  if (watched.end != Watched::End::kBroken) return watched.last;
  if (!watched.failure) {
    return Error{ErrorCode::kInternal,
                 "sluice-control ended the stream of session " + id + " before its end"};
  }
  Error error = error_of(*watched.failure);
  if (error.code == ErrorCode::kDaemonNotRunning) {
    error.message += "; the session goes on once it runs again: 'sluice session wait " + id + "'";
  }
  return error;
}

}  // namespace sluice::api
