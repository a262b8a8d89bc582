// SPDX-License-Identifier: Apache-2.0
#include "control/api/console_door.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/server_posix.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <optional>

#include "control/api/console_dispatch.h"
#include "control/api/readers.h"
#include "control/api/server.h"
#include "control/async/clock.h"
#include "dataplane/base/local_socket.h"

namespace sluice::service {
namespace {

constexpr int kDoorThreadsMax = 256;  // each stream of a person holds one
constexpr int kDoorRequestBytesMax = 16 << 20;
constexpr size_t kVisitorsMax = 256;
constexpr std::chrono::milliseconds kDoorStopGrace{1000};
// A person who is put into a group, or out of one, is known so after this.
constexpr std::chrono::seconds kPersonKept{10};

std::string_view metadata(const grpc::ServerContext& context, const char* key) {
  const auto found = context.client_metadata().find(key);
  if (found == context.client_metadata().end()) return {};
  return {found->second.data(), found->second.size()};
}

// The kernel says who comes.
Status open_to_all(const std::filesystem::path& socket) {
  const std::filesystem::path directory = socket.parent_path();
  struct stat place {};
  const bool own = ::stat(directory.c_str(), &place) == 0 && place.st_uid == ::geteuid();
  if (::chmod(socket.c_str(), 0666) == 0 &&
      (!own || ::chmod(directory.c_str(), (place.st_mode & 07777) | S_IXGRP | S_IXOTH) == 0))
    return {};
  return Error{ErrorCode::kConfiguration, "cannot open " + socket.string() +
                                              " to sluice-console: " + std::strerror(errno) +
                                              "; check who owns " + directory.string()};
}

}  // namespace

// What people of one role see; of role USER, one person.
struct ConsoleDoor::Visitor {
  std::unique_ptr<SessionManager> sessions;  // none: those of operators
  std::unique_ptr<NamesManager> names;
  std::unique_ptr<Services> services;
};

class ConsoleDoor::Dispatch {
 public:
  explicit Dispatch(ConsoleDoor& door)
      : control_(door), names_(door), logs_(door), peers_(door), rights_(door) {}
  ~Dispatch() { stop(); }

  Status start() {
    grpc::ResourceQuota quota("sluice-console");
    quota.SetMaxThreads(kDoorThreadsMax);
    grpc::ServerBuilder builder;
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kDoorRequestBytesMax);
    for (grpc::Service* each :
         std::initializer_list<grpc::Service*>{&control_, &names_, &logs_, &peers_, &rights_})
      builder.RegisterService(each);
    server_ = builder.BuildAndStart();
    if (server_ != nullptr) return {};
    return Error{ErrorCode::kConfiguration, "cannot serve a console: no thread or no memory is free"};
  }
  void take(UniqueFd connection) { grpc::AddInsecureChannelFromFd(server_.get(), connection.release()); }
  void stop() {
    if (server_ == nullptr) return;
    server_->Shutdown(std::chrono::system_clock::now() + kDoorStopGrace);
    server_->Wait();
    server_.reset();
  }

 private:
  ConsoleControl control_;
  ConsoleNames names_;
  ConsoleLogs logs_;
  ConsolePeers peers_;
  ConsoleRights rights_;
  std::unique_ptr<grpc::Server> server_;
};

ConsoleDoor::ConsoleDoor(asio::io_context& io, House house) : io_(io), house_(std::move(house)) {}

ConsoleDoor::~ConsoleDoor() { stop(); }

Status ConsoleDoor::start(const std::filesystem::path& socket, uint32_t uid, std::string certificate_pem) {
  uid_ = uid;
  certificate_pem_ = std::move(certificate_pem);
  if (auto cleared = clear_stale_socket(socket); !cleared) return cleared;
  stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stop_)
    return Error{ErrorCode::kConfiguration, std::string("cannot make an eventfd: ") + std::strerror(errno)};
  dispatch_ = std::make_unique<Dispatch>(*this);
  if (auto started = dispatch_->start(); !started) return started;
  auto listener = base::listen_locally(socket, SOCK_STREAM);
  if (!listener) return listener.error();
  listener_ = std::move(*listener);
  socket_ = socket;
  if (Status opened = open_to_all(socket); !opened) return opened;
  thread_ = std::thread([this] { run(); });
  return {};
}

void ConsoleDoor::stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t told = ::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [who, visitor] : visitors_) visitor->services->stop();
  }
  if (dispatch_) dispatch_->stop();
  // Behind all that was posted for it: the loop may still have to do with it.
  asio::post(io_, [kept = std::exchange(visitors_, {})] {});
  listener_.reset();
  if (!socket_.empty()) ::unlink(socket_.c_str());
  socket_.clear();
}

void ConsoleDoor::run() {
  for (;;) {
    pollfd both[] = {{.fd = stop_.get(), .events = POLLIN, .revents = 0},
                     {.fd = listener_.get(), .events = POLLIN, .revents = 0}};
    if (::poll(both, 2, -1) < 0 && errno != EINTR) return;
    if (both[0].revents != 0) return;
    UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) continue;
    const std::optional<uint32_t> caller = base::caller_of(connection.get());
    if (caller == uid_) {
      dispatch_->take(std::move(connection));
    } else {
      spdlog::warn("user {} called at the console's socket, which is user {}'s alone: refused",
                   caller ? std::to_string(*caller) : "?", uid_);
    }
  }
}

Result<Person> ConsoleDoor::person(uint32_t uid) {
  const auto now = std::chrono::steady_clock::now();
  {
    const std::lock_guard lock(mutex_);
    const auto known = people_.find(uid);
    if (known != people_.end() && now - known->second.since < kPersonKept) return known->second.person;
    std::erase_if(people_, [now](const auto& each) { return now - each.second.since >= kPersonKept; });
  }
  // May be asked for over a network.
  Result<Person> person = house_.person(uid);
  if (!person) return person;
  const std::lock_guard lock(mutex_);
  if (people_.size() < kVisitorsMax) people_[uid] = {.person = *person, .since = now};
  return person;
}

Result<std::shared_ptr<Services>> ConsoleDoor::services(uint32_t uid, api::Delegation::Role role) {
  const std::pair who(role, role == api::Delegation::USER ? uid : 0);
  const std::lock_guard lock(mutex_);
  auto found = visitors_.find(who);
  if (found == visitors_.end()) {
    if (visitors_.size() >= kVisitorsMax)
      return Error{ErrorCode::kResources, "too many users have come by the console; restart sluice-control"};
    auto visitor = std::make_shared<Visitor>();
    if (role == api::Delegation::VIEWER) {
      visitor->sessions = std::make_unique<ReadersSessions>(house_.sessions);
      visitor->names = std::make_unique<ReadersNames>();
    } else if (role == api::Delegation::USER) {
      visitor->sessions = std::make_unique<UserSessions>(house_.as_user.sessions(uid), uid);
      visitor->names = std::make_unique<UserNames>(house_.as_user.names(uid));
    }
    SessionManager& sessions = visitor->sessions ? *visitor->sessions : house_.sessions;
    NamesManager& names = visitor->names ? *visitor->names : house_.names;
    visitor->services = make_services(io_, sessions, names, kWatchInterval);
    found = visitors_.emplace(who, std::move(visitor)).first;
  }
  return std::shared_ptr<Services>(found->second, found->second->services.get());
}

Result<ConsoleDoor::Seen> ConsoleDoor::seen(const grpc::ServerContext& context, std::string_view method) {
  const Result<api::Delegation> said =
      check_delegation(certificate_pem_, metadata(context, kDelegationKey),
                       metadata(context, kDelegationSignatureKey), method, async::unix_ns());
  if (!said) return said.error();
  Result<Person> who = person(said->uid());
  if (!who) return who.error();
  Seen seen{.person = std::move(*who), .role = said->role(), .services = nullptr};
  if (method == "Console/Rights") return seen;
  if (Status status = check_role(seen.person, seen.role); !status) return status.error();
  Result<std::shared_ptr<Services>> found = services(seen.person.uid, seen.role);
  if (!found) return found.error();
  seen.services = std::move(*found);
  return seen;
}

}  // namespace sluice::service
