// sluice-users: opens files as users of this host, for sluice-control, which has no right to.
//
// It waits on a socket that only sluice-control may open. Each connection is for one user: a process is
// forked for it, which becomes that user, for good, before it looks at any path (users/identity.h), and does
// what is asked until it is not needed any more. This process itself opens nothing for anybody. It needs
// CAP_SETUID and CAP_SETGID and keeps nothing else; it reads node.toml once, at its start.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>

#include "control/users/for_caller.h"
#include "control/users/identity.h"
#include "control/users/server.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/daemon/daemon.h"
#include "dataplane/base/daemon/service.h"
#include "dataplane/base/local_socket.h"
#include "dataplane/base/open_files.h"
#include "dataplane/base/sandbox/profiles.h"

namespace sluice::users {
namespace {

constexpr uint64_t kOpenFilesLeast = 96;  // its own, and those of a child
constexpr size_t kChildrenMax = 256;  // that serve a user each; one user has several where trees are moved
constexpr std::chrono::seconds kHelloLimit{5};
constexpr std::chrono::seconds kSendLimit{5};
constexpr int kSystemdSocket = 3;  // sd_listen_fds(3)
constexpr const char* kComponents[] = {"users"};

Error cannot(const std::string& what, const std::string& remedy) {
  return {ErrorCode::kConfiguration, "cannot " + what + ": " + std::strerror(errno) + "; " + remedy};
}

// Of systemd, where it made one: then this process has no need of a right to the directory.
UniqueFd given_socket() {
  const char* const pid = std::getenv("LISTEN_PID");
  const char* const count = std::getenv("LISTEN_FDS");
  const bool ours =
      pid != nullptr && count != nullptr && pid == std::to_string(::getpid()) && std::strcmp(count, "1") == 0;
  for (const char* name : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(name);
  if (!ours) return {};
  ::fcntl(kSystemdSocket, F_SETFD, FD_CLOEXEC);
  ::fcntl(kSystemdSocket, F_SETFL, ::fcntl(kSystemdSocket, F_GETFL) | O_NONBLOCK);
  return UniqueFd(kSystemdSocket);
}

// For the user alone whose directory it stands in: sluice-control made that.
Result<UniqueFd> make_socket(const config::Node& node, uid_t* control) {
  const std::filesystem::path path = node.users_helper_socket();
  struct stat place {};
  if (::stat(node.run_dir().c_str(), &place) != 0)
    return cannot("find " + node.run_dir().string(), "start sluice-control first, which makes it");
  *control = place.st_uid;
  if (UniqueFd given = given_socket(); given) return given;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.native().size() >= sizeof address.sun_path)
    return Error{ErrorCode::kConfiguration, path.string() +
                                                " is longer than a unix socket's path may be; use a "
                                                "node directory with a shorter path"};
  std::memcpy(address.sun_path, path.c_str(), path.native().size());
  if (connect_to(path))
    return Error{ErrorCode::kConfiguration,
                 "another sluice-users answers on " + path.string() + "; stop it first"};
  UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // Made by the user of sluice-control, whose directory it is: given to him afterwards, by name, something
  // else might have its name by then.
  const uid_t self = ::geteuid();
  if (::seteuid(place.st_uid) != 0)
    return cannot("make " + path.string() + " as the user of sluice-control",
                  "start it as root, or let systemd make the socket (sluice-users.socket)");
  const mode_t before = ::umask(0177);
  ::unlink(path.c_str());
  const bool bound =
      socket && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  const int reason = errno;
  ::umask(before);
  if (::seteuid(self) != 0) return cannot("be itself again", "see the system's log");
  errno = reason;
  if (!bound) return cannot("make " + path.string(), "its directory must be writable for its owner");
  if (::listen(socket.get(), 16) != 0) return cannot("listen on " + path.string(), "see the system's log");
  return socket;
}

Status check_rights() {
  // Without them nothing could be done for anybody; asked for now, not when a user waits.
  if (::prctl(PR_CAPBSET_READ, CAP_SETUID, 0, 0, 0) == 1 && ::setgroups(0, nullptr) == 0) return {};
  return Error{ErrorCode::kDevice,
               "sluice-users may not become other users: start it as root, or with CAP_SETUID and CAP_SETGID "
               "(as sluice-users.service does)"};
}

class Helper {
 public:
  Helper(config::Node node, UniqueFd socket, uid_t control)
      : node_(std::move(node)), socket_(std::move(socket)), control_(control) {}

  Status run(daemon::Service& service) {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int one : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&signals, one);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    signals_.reset(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
    if (!signals_) return cannot("wait for signals", "see the system's log");
    int ends[2] = {};
    if (::pipe2(ends, O_CLOEXEC) != 0) return cannot("make a pipe", "see the system's log");
    watched_.reset(ends[0]);
    lifeline_.reset(ends[1]);
    service.ready("waits for sluice-control");
    while (!stopping_) turn();
    service.stopping();
    return {};  // and with this process the other end of the lifeline goes
  }

 private:
  void turn() {
    pollfd both[] = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                     {.fd = socket_.get(), .events = POLLIN, .revents = 0}};
    if (::poll(both, 2, -1) < 0) return;
    signalfd_siginfo signal{};
    while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal) {
      if (signal.ssi_signo == SIGCHLD) continue;
      spdlog::info("signal {}: stopping", signal.ssi_signo);
      stopping_ = true;
    }
    pid_t child = 0;
    while ((child = ::waitpid(-1, nullptr, WNOHANG)) > 0) children_.erase(child);
    if ((both[1].revents & POLLIN) != 0 && !stopping_) take();
  }

  void take() {
    UniqueFd connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!connection) return;
    const std::optional<uid_t> caller = base::caller_of(connection.get());
    if (!caller || (*caller != control_ && *caller != 0)) {
      spdlog::warn("{} is not sluice-control: refused",
                   caller ? "user " + std::to_string(*caller) : "a caller without a name");
      return;
    }
    Channel channel(std::move(connection));
    if (children_.size() >= kChildrenMax) {
      spdlog::warn("{} users are served already: one more has to wait", children_.size());
      const Answer answer{.error = {ErrorCode::kResources,
                                    "sluice-users serves as many users at a time as it can: try again"}};
      (void)channel.send(encode(answer), {}, std::chrono::milliseconds(0));
      return;
    }
    const pid_t child = ::fork();
    if (child == 0) {
      be_child(channel);
      ::_exit(0);
    }
    if (child < 0) spdlog::error("cannot fork: {}", std::strerror(errno));
    if (child > 0) children_.insert(child);
  }

  // One user's, from its first word on.
  void be_child(Channel& channel) {
    socket_.reset();
    // This process may not send signals to those who became others: they see when it has gone.
    lifeline_.reset();
    channel.give_up_with(watched_.get());
    sigset_t signals;
    ::sigfillset(&signals);
    ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
    signals_.reset();
    Parcel parcel;
    if (channel.receive(&parcel, kHelloLimit) != 0) return;
    Answer answer;
    if (const Status status = become_whom(parcel); !status) {
      spdlog::warn("{}", status.error().message);
      answer.error = status.error();
      (void)channel.send(encode(answer), {}, kSendLimit);
      return;
    }
    if (channel.send(encode(answer), {}, kSendLimit) != 0) return;
    const Served served{.exports = node_.exports};
    ::umask(served.umask);
    serve(channel, served);
    for (const std::string& news : sandbox::take_news()) spdlog::error("{}", news);
  }

  Status become_whom(const Parcel& hello) const {
    const Result<uint32_t> uid = uid_of_hello(hello.bytes);
    if (!uid) return uid.error();
    const Result<Account> account = member(*uid, node_.users_group, static_cast<uid_t>(node_.users_uid_min));
    if (!account) return account.error();
    return become(*account);
  }

  const config::Node node_;
  UniqueFd socket_;
  const uid_t control_;
  UniqueFd signals_;
  UniqueFd watched_;
  UniqueFd lifeline_;
  std::set<pid_t> children_;
  bool stopping_ = false;
};

Status run(const daemon::Options& options) {
  auto node = config::load(options.node);
  if (!node) return node.error();
  if (node->users_group.empty())
    return Error{ErrorCode::kConfiguration,
                 "[control] users_group is not set in " + (options.node / "node.toml").string() +
                     ": nobody may use this node as a user of this host; set it, and restart sluice-control, "
                     "or do without sluice-users"};
  if (Status enough = base::raise_open_files(kOpenFilesLeast + node->exports.size()); !enough) return enough;
  daemon::start_log("sluice-users", kComponents,
                    [&](const char*) { return options.log_level_or(node->log_level); });
  auto service = daemon::Service::from_environment();
  if (Status status = check_rights(); !status) return status;
  uid_t control = 0;
  Result<UniqueFd> socket = make_socket(*node, &control);
  if (!socket) return socket.error();
  std::vector<sandbox::PathRule> exports;
  for (const config::Export& each : node->exports)
    exports.push_back({each.path, each.write ? sandbox::Access::kChange : sandbox::Access::kRead});
  const auto sandboxed =
      sandbox::apply(sandbox::users_profile(node->run_dir(), exports), node->control_sandbox == "yes");
  if (!sandboxed) return sandboxed.error();
  spdlog::info("sandbox: {}", sandboxed->text());
  const std::filesystem::path path = node->users_helper_socket();
  spdlog::info("opens files as members of group {}, for sluice-control at {}", node->users_group,
               path.string());
  return Helper(std::move(*node), std::move(*socket), control).run(service);
}

int fail(const Error& error) {
  std::fprintf(stderr, "sluice-users: %s\n", error.message.c_str());
  return static_cast<int>(error.code);
}

}  // namespace
}  // namespace sluice::users

int main(int argc, char** argv) {
  // Of who typed a command, who need not be root, and without a node.toml that he may not read.
  if (argc == 2 && std::strcmp(argv[1], "--for-caller") == 0)
    return sluice::users::open_for_caller(STDIN_FILENO, STDOUT_FILENO);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGHUP, SIG_IGN);
  ::umask(077);
  const auto options = sluice::daemon::parse(sluice::daemon::kUsers, argc, argv);
  if (!options) return sluice::users::fail(options.error());
  if (!*options) return 0;
  const auto ran = sluice::users::run(**options);
  return ran ? 0 : sluice::users::fail(ran.error());
}
