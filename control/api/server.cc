// The server and its service of sessions: gRPC's threads outside, the io_context's thread inside (server.h).
// SPDX-License-Identifier: Apache-2.0
#include "control/api/server.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <asio/post.hpp>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "control/api/bridge.h"
#include "control/api/logs_service.h"
#include "control/api/names_service.h"
#include "control/api/news.h"
#include "control/api/peers_service.h"
#include "control/api/services.h"
#include "control/api/session_changes.h"
#include "control/async/clock.h"
#include "control/proto/api.grpc.pb.h"
#include "control/proto/session_state.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::service {
namespace {

constexpr int kWatchIntervalsQuietMax = 10;  // an unchanged session is repeated once a second
constexpr int kThreadsMax = 512;             // each watcher holds one, also of a session that waits
constexpr int kRequestBytesMax = 16 << 20;
constexpr milliseconds kStopGrace{1000};

class Service final : public api::Control::Service {
 public:
  Service(asio::io_context& io, SessionManager& sessions, milliseconds watch_interval)
      : bridge_(io), sessions_(sessions), watch_interval_(watch_interval) {}

  // Its watchers hear of an end at once, and those of no other.
  void be_told(asio::io_context& io) {
    asio::post(io, [&all = sessions_, news = news_] { all.when_ended([news] { news->tell(); }); });
  }

  // Wakes the watchers, who then leave.
  void stop() { news_->stop(); }

  grpc::Status Node(grpc::ServerContext* context, const api::NodeRequest*, api::NodeReply* reply) override {
    return reply_with(context, reply, bridge_.await_io(sessions_.node()));
  }

  grpc::Status Send(grpc::ServerContext* context, const api::SendRequest* request,
                    api::SessionRef* reply) override {
    return reply_with(context, reply, reference(bridge_.await_io(sessions_.send(*request))));
  }

  grpc::Status Get(grpc::ServerContext* context, const api::GetRequest* request,
                   api::SessionRef* reply) override {
    return reply_with(context, reply, reference(bridge_.await_io(sessions_.get(*request))));
  }

  // On gRPC's own thread: there may be a million names.
  grpc::Status PreviewSend(grpc::ServerContext* context, const api::SendRequest* request,
                           grpc::ServerWriter<api::PreviewReply>* writer) override {
    const Result<Preview> preview = bridge_.await_io(sessions_.preview(*request));
    if (!preview) return to_grpc(context, preview.error());
    bool stopped = false;
    const Status status = (*preview)([&](const api::PreviewReply& part) {
      stopped = news_->stopping();
      return !stopped && !context->IsCancelled() && writer->Write(part);
    });
    if (stopped) return gone(context);
    return status ? grpc::Status::OK : to_grpc(context, status.error());
  }

  grpc::Status ListSessions(grpc::ServerContext* context, const api::ListSessionsRequest*,
                            api::ListSessionsReply* reply) override {
    return answer(context, reply, [this] {
      api::ListSessionsReply list;
      for (api::Session& session : sessions_.list()) *list.add_sessions() = std::move(session);
      return Result<api::ListSessionsReply>(std::move(list));
    });
  }

  grpc::Status ShowSession(grpc::ServerContext* context, const api::SessionRef* request,
                           api::Session* reply) override {
    return answer(context, reply, [&] { return sessions_.show(request->id()); });
  }

  grpc::Status CancelSession(grpc::ServerContext* context, const api::SessionRef* request,
                             api::Session* reply) override {
    return reply_with(context, reply, bridge_.await_io(sessions_.cancel(request->id())));
  }

  grpc::Status PauseSession(grpc::ServerContext* context, const api::SessionRef* request,
                            api::Session* reply) override {
    return reply_with(context, reply, bridge_.await_io(sessions_.pause(request->id())));
  }

  grpc::Status ContinueSession(grpc::ServerContext* context, const api::SessionRef* request,
                               api::Session* reply) override {
    return reply_with(context, reply, bridge_.await_io(sessions_.go_on(request->id())));
  }

  grpc::Status LimitSession(grpc::ServerContext* context, const api::LimitRequest* request,
                            api::Session* reply) override {
    return reply_with(context, reply, bridge_.await_io(sessions_.limit(request->id(), request->rate_bps())));
  }

  grpc::Status PrioritizeSession(grpc::ServerContext* context, const api::PriorityRequest* request,
                                 api::Session* reply) override {
    return reply_with(context, reply,
                      bridge_.await_io(sessions_.prioritize(request->id(), request->priority())));
  }

  grpc::Status ExportSession(grpc::ServerContext* context, const api::ExportRequest* request,
                             grpc::ServerWriter<api::BundlePart>* writer) override {
    const Result<std::string> bundle = bridge_.await_io(sessions_.give(*request));
    return bundle ? write_bundle(*bundle, writer) : to_grpc(context, bundle.error());
  }

  grpc::Status ImportSession(grpc::ServerContext* context, grpc::ServerReader<api::BundlePart>* reader,
                             api::Session* reply) override {
    Result<std::string> bundle = read_bundle(reader);
    if (!bundle) return to_grpc(context, bundle.error());
    return reply_with(context, reply, bridge_.await_io(sessions_.take(std::move(*bundle))));
  }

  // On gRPC's own thread: a file may take hours.
  grpc::Status VerifySession(grpc::ServerContext* context, const api::SessionRef* request,
                             grpc::ServerWriter<api::VerifyProgress>* writer) override {
    const Result<Verification> verification = bridge_.await_io(sessions_.verification(request->id()));
    if (!verification) return to_grpc(context, verification.error());
    bool stopped = false;
    (*verification)([&](const api::VerifyProgress& progress) {
      stopped = news_->stopping();
      return !stopped && !context->IsCancelled() && writer->Write(progress);
    });
    return stopped ? gone(context) : grpc::Status::OK;
  }

  grpc::Status SessionDigests(grpc::ServerContext* context, const api::SessionRef* request,
                              grpc::ServerWriter<api::DigestsPart>* writer) override {
    const auto names = bridge_.await_io(sessions_.digests(request->id()));
    if (!names) return to_grpc(context, names.error());
    constexpr int kNamesPerPart = 256;
    api::DigestsPart part;
    for (const api::NameDigests& name : *names) {
      *part.add_names() = name;
      if (part.names_size() < kNamesPerPart) continue;
      if (!writer->Write(part)) return grpc::Status::OK;  // the caller has left
      part.clear_names();
    }
    if (part.names_size() != 0) writer->Write(part);
    return grpc::Status::OK;
  }

  grpc::Status Counters(grpc::ServerContext* context, const api::CountersRequest*,
                        api::CountersReply* reply) override {
    return answer(context, reply, [this] { return sessions_.counters(); });
  }

  grpc::Status WatchSession(grpc::ServerContext* context, const api::SessionRef* request,
                            grpc::ServerWriter<api::Session>* writer) override {
    std::string last;
    int quiet = 0;
    while (!context->IsCancelled()) {
      const uint64_t told = news_->told();
      auto session = bridge_.on_io([&] { return sessions_.show(request->id()); });
      if (!session) return to_grpc(context, session.error());
      std::string now = essence(*session);
      if (now != last || ++quiet >= kWatchIntervalsQuietMax) {
        last = std::move(now);
        quiet = 0;
        if (!writer->Write(*session)) break;
      }
      if (api::stands_still(*session)) return grpc::Status::OK;
      if (news_->wait(told, watch_interval_)) return gone(context);
    }
    return {grpc::StatusCode::CANCELLED, "the client left"};
  }

  grpc::Status SessionEvents(grpc::ServerContext* context, const api::SessionRef* request,
                             grpc::ServerWriter<api::SessionEvent>* writer) override {
    SessionChanges changes(request->id(), request->progress());
    while (!context->IsCancelled()) {
      const uint64_t told = news_->told();
      const auto events = bridge_.on_io([&] { return changes.look(sessions_, async::unix_ns()); });
      if (!events) return to_grpc(context, events.error());
      for (const api::SessionEvent& event : *events) {
        if (!writer->Write(event)) return {grpc::StatusCode::CANCELLED, "the client left"};
      }
      if (changes.over()) return grpc::Status::OK;
      if (news_->wait(told, watch_interval_)) return gone(context);
    }
    return {grpc::StatusCode::CANCELLED, "the client left"};
  }

 private:
  template <typename Reply, typename Work>
  grpc::Status answer(grpc::ServerContext* context, Reply* reply, Work work) {
    return reply_with(context, reply, bridge_.on_io(std::move(work)));
  }

  template <typename Reply>
  static grpc::Status reply_with(grpc::ServerContext* context, Reply* reply, Result<Reply> result) {
    if (!result) return to_grpc(context, result.error());
    *reply = std::move(*result);
    return grpc::Status::OK;
  }

  static Result<api::SessionRef> reference(const Result<std::string>& id) {
    if (!id) return id.error();
    api::SessionRef ref;
    ref.set_id(*id);
    return ref;
  }

  static grpc::Status gone(grpc::ServerContext* context) {
    return to_grpc(context, {ErrorCode::kDaemonNotRunning, "sluice-control is stopping"});
  }

  Bridge bridge_;
  SessionManager& sessions_;
  const milliseconds watch_interval_;
  const std::shared_ptr<News> news_ = std::make_shared<News>();
};

class AllServices final : public Services {
 public:
  AllServices(asio::io_context& io, SessionManager& sessions, NamesManager& names,
              milliseconds watch_interval)
      : service_(io, sessions, watch_interval),
        names_(io, names),
        logs_(io, sessions, watch_interval),
        peers_(io, sessions) {}
  void be_told(asio::io_context& io) { service_.be_told(io); }
  api::Control::Service& control() override { return service_; }
  api::Names::Service& names() override { return names_; }
  api::Logs::Service& logs() override { return logs_; }
  api::Peers::Service& peers() override { return peers_; }
  void stop() override {
    service_.stop();
    names_.stop();
    logs_.stop();
  }

 private:
  Service service_;
  NamesService names_;
  LogsService logs_;
  PeersService peers_;
};

// gRPC takes an address as a URI, in which a path may need escapes.
std::string unix_uri(const std::filesystem::path& socket) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string uri = "unix:";
  for (const char c : socket.native()) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || std::strchr("/._-~", c) != nullptr) {
      uri += c;
    } else {
      uri += {'%', kHex[byte >> 4], kHex[byte & 15]};
    }
  }
  return uri;
}

class GrpcServer final : public Server {
 public:
  GrpcServer(asio::io_context& io, SessionManager& sessions, NamesManager& names,
             std::filesystem::path socket, milliseconds watch_interval, int threads_max)
      : services_(io, sessions, names, watch_interval),
        socket_(std::move(socket)),
        threads_max_(threads_max) {
    services_.be_told(io);
  }
  ~GrpcServer() override { stop(); }

  Status start() {
    grpc::ResourceQuota quota("sluice-api");
    quota.SetMaxThreads(threads_max_);
    grpc::ServerBuilder builder;
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kRequestBytesMax);
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    int bound = 0;
    const bool listens = !socket_.empty();
    if (listens) builder.AddListeningPort(unix_uri(socket_), grpc::InsecureServerCredentials(), &bound);
    builder.RegisterService(&services_.control());
    builder.RegisterService(&services_.names());
    builder.RegisterService(&services_.logs());
    builder.RegisterService(&services_.peers());
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || (listens && bound == 0)) {
      server_.reset();
      return Error{ErrorCode::kConfiguration,
                   listens ? "cannot listen on " + socket_.string() +
                                 "; its directory must exist and be writable for this user"
                           : "cannot serve a user: no thread or no memory is free"};
    }
    if (listens && ::chmod(socket_.c_str(), 0600) != 0) {
      return Error{ErrorCode::kConfiguration,
                   "cannot set the mode of " + socket_.string() + ": " + std::strerror(errno)};
    }
    return {};
  }

  void take(UniqueFd connection) override {
    grpc::AddInsecureChannelFromFd(server_.get(), connection.release());
  }

  void stop() override {
    if (server_ == nullptr) return;
    services_.stop();
    server_->Shutdown(std::chrono::system_clock::now() + kStopGrace);
    server_->Wait();
    server_.reset();
    if (!socket_.empty()) ::unlink(socket_.c_str());
  }

 private:
  AllServices services_;
  std::filesystem::path socket_;
  const int threads_max_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace

std::unique_ptr<Services> make_services(asio::io_context& io, SessionManager& sessions, NamesManager& names,
                                        milliseconds watch_interval) {
  return std::make_unique<AllServices>(io, sessions, names, watch_interval);
}

Status clear_stale_socket(const std::filesystem::path& socket) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (socket.native().size() >= sizeof(address.sun_path)) {
    return Error{ErrorCode::kConfiguration, socket.string() +
                                                " is longer than a unix socket's path may be (" +
                                                std::to_string(sizeof(address.sun_path) - 1) +
                                                " bytes); use a node directory with a shorter path"};
  }
  struct stat info {};
  if (::lstat(socket.c_str(), &info) != 0) return {};
  if (!S_ISSOCK(info.st_mode)) {
    return Error{ErrorCode::kConfiguration, socket.string() + " is not a socket; remove it"};
  }
  std::memcpy(address.sun_path, socket.c_str(), socket.native().size());
  const UniqueFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
      errno != ECONNREFUSED) {
    return Error{ErrorCode::kConfiguration,
                 "another sluice-control answers on " + socket.string() + "; stop it first"};
  }
  if (::unlink(socket.c_str()) != 0) {
    return Error{ErrorCode::kConfiguration,
                 "cannot remove the stale socket " + socket.string() + ": " + std::strerror(errno)};
  }
  return {};
}

Result<std::unique_ptr<Server>> start_server(asio::io_context& io, SessionManager& sessions,
                                             NamesManager& names, const std::filesystem::path& socket,
                                             milliseconds watch_interval) {
  if (auto cleared = clear_stale_socket(socket); !cleared) return cleared.error();
  auto server = std::make_unique<GrpcServer>(io, sessions, names, socket, watch_interval, kThreadsMax);
  if (auto started = server->start(); !started) return started.error();
  return Result<std::unique_ptr<Server>>(std::move(server));
}

Result<std::unique_ptr<Server>> start_server(asio::io_context& io, SessionManager& sessions,
                                             NamesManager& names, int threads_max) {
  auto server = std::make_unique<GrpcServer>(io, sessions, names, "", kWatchInterval, threads_max);
  if (auto started = server->start(); !started) return started.error();
  return Result<std::unique_ptr<Server>>(std::move(server));
}

}  // namespace sluice::service
