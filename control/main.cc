// sluice-control: the daemon that decides. One io_context on the main thread carries the sessions, the peers
// and the board; gRPC's threads hand the operator's calls to it.
//
// An error before the daemon serves is one line on stderr and an exit status of its class; afterwards errors
// belong to sessions, and the daemon stays. SIGTERM and SIGINT end it.
// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "control/doors.h"
#include "control/exporter/exporter.h"
#include "control/exports/exports.h"
#include "control/identity/identity.h"
#include "control/journal/journal.h"
#include "control/node/manager.h"
#include "control/shutdown.h"
#include "dataplane/base/config/apart.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/daemon/daemon.h"
#include "dataplane/base/daemon/service.h"
#include "dataplane/base/error.h"
#include "dataplane/base/log.h"
#include "dataplane/base/open_files.h"
#include "dataplane/base/sandbox/profiles.h"
#include "dataplane/base/unique_fd.h"

namespace sluice::control {
namespace {

namespace fs = std::filesystem;

std::string_view remedy(int error) {
  if (error == EROFS) return "mount its file system for writing";
  if (error == ENOSPC || error == EDQUOT) return "free some space there";
  if (error == EACCES || error == EPERM) return "run this as the owner of the node's directory";
  return "check the node's directory";
}

Error cannot(const std::string& what, const fs::path& path, int error) {
  return {ErrorCode::kConfiguration, "cannot " + what + " " + path.string() + ": " + std::strerror(error) +
                                         "; " + std::string(remedy(error))};
}

// Held as long as the process lives; the kernel gives it back however the process ends.
Result<UniqueFd> lock_node(const fs::path& run_dir) {
  if (::mkdir(run_dir.c_str(), 0700) != 0 && errno != EEXIST) return cannot("create", run_dir, errno);
  const fs::path path = run_dir / "control.lock";
  UniqueFd lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!lock) return cannot("open", path, errno);
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return cannot("lock", path, errno);
    char pid[16] = {};
    const ssize_t got = ::pread(lock.get(), pid, sizeof pid - 1, 0);
    const std::string owner(pid, got > 0 ? std::strcspn(pid, "\n") : 0);
    return Error{ErrorCode::kConfiguration,
                 "sluice-control runs already for " + run_dir.parent_path().string() +
                     (owner.empty() ? "" : " (pid " + owner + ")") + "; stop it first"};
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(lock.get(), 0) != 0 ||
      ::pwrite(lock.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return cannot("write", path, errno);
  }
  return lock;
}

// A journal that stayed where it was would be forgotten without a word, and its sessions with it.
Status check_state(const config::Node& node) {
  if (node.state_dir.empty()) return {};
  const std::string where = "[control] state_dir = \"" + node.state_dir + "\": ";
  std::error_code error;
  if (!fs::is_directory(node.state(), error))
    return Error{ErrorCode::kConfiguration,
                 where +
                     "no such directory; make it, for the user of this daemon alone: "
                     "install -d -m 700 " +
                     node.state_dir};
  const fs::path before = node.directory / node.journal().filename();
  if (fs::exists(before, error) && !fs::exists(node.journal(), error) && !error)
    return Error{ErrorCode::kConfiguration,
                 where + "the journal of this node stands in " + node.directory.string() +
                     " and would be forgotten; move it: mv " + before.string() + "* " + node.state_dir};
  return {};
}

std::string doing(const node::Manager& manager) {
  const metrics::NodeFigures figures = manager.report().figures();
  const size_t sessions = figures.sessions.size();
  return std::to_string(sessions) + (sessions == 1 ? " session" : " sessions") +
         (figures.dataplane ? "" : "; no dataplane: they wait for it");
}

// Tells the service manager from the loop itself what control does, and that the loop turns.
class Heartbeat {
 public:
  Heartbeat(asio::io_context& io, daemon::Service& service, const node::Manager& manager)
      : timer_(io), service_(service), manager_(manager) {}
  void begin() {
    // The first turn of the loop: before it no call of an operator and no peer would be answered.
    asio::post(timer_.get_executor(), [this] {
      if (stopped_) return;
      service_.ready(doing(manager_));
      if (service_.is_told()) beat();
    });
  }
  void stop() {
    stopped_ = true;
    timer_.cancel();
    service_.stopping();
  }

 private:
  void beat() {
    service_.alive(static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count()));
    service_.status(doing(manager_));
    constexpr std::chrono::nanoseconds kStatusInterval = std::chrono::seconds(5);
    const auto alive = service_.alive_interval();
    timer_.expires_after(alive.count() == 0 ? kStatusInterval : std::min(kStatusInterval, alive));
    timer_.async_wait([this](std::error_code error) {
      if (!error && !stopped_) beat();
    });
  }

  asio::steady_timer timer_;
  daemon::Service& service_;
  const node::Manager& manager_;
  bool stopped_ = false;
};

// Says what the sandbox did not allow.
class SandboxNews {
 public:
  explicit SandboxNews(asio::io_context& io) : timer_(io) { look(); }
  void stop() {
    stopped_ = true;
    timer_.cancel();
  }

 private:
  void look() {
    for (const std::string& news : sandbox::take_news()) spdlog::error("{}", news);
    timer_.expires_after(std::chrono::seconds(1));
    timer_.async_wait([this](std::error_code error) {
      if (!error && !stopped_) look();
    });
  }

  asio::steady_timer timer_;
  bool stopped_ = false;
};

// An export within another has the rights of both: which of them counts for a path is for control/exports to
// say.
sandbox::ControlNeeds needs_of(const config::Node& node, bool removes) {
  sandbox::ControlNeeds needs{.node = node.directory,
                              .authorities = {},
                              .run = node.run_dir(),
                              .state = node.state(),
                              .exports = {},
                              .tcp_ports = {}};
  for (const config::Export& each : node.exports) {
    const bool changes = each.write || each.manage;
    needs.exports.push_back({each.path, changes ? sandbox::Access::kChange : sandbox::Access::kRead});
    if (!changes && removes) needs.exports.push_back({each.path, sandbox::Access::kRemove});
  }
  // Their files are replaced by others.
  for (const std::string& file : {node.ca_file, node.crl_file, node.addresses_file, node.users_map_file}) {
    if (!file.empty()) needs.authorities.push_back((node.directory / file).parent_path());
  }
  for (const std::string& address : {node.listen, node.metrics_listen}) {
    if (const auto where = config::parse_host_port(address)) needs.tcp_ports.push_back(where->port);
  }
  return needs;
}

Result<sandbox::State> confine(const config::Node& node, bool removes) {
  return sandbox::apply(sandbox::control_profile(needs_of(node, removes)), node.control_sandbox == "yes");
}

// Unfinished files of a session go when it ends, also beneath an export that may only be read by now. Where
// there can be none, nothing may be removed there.
Result<bool> may_leave_files(journal::Journal& journal) {
  const auto records = journal.sessions();
  if (!records) return records.error();
  return std::ranges::any_of(*records, [](const transfer::Record& record) {
    return record.role == transfer::Role::kDestination &&
           (record.files_left || !transfer::has_ended(record.state));
  });
}

void tell(const sandbox::State& state) {
  const bool whole = state.landlock > 0 && state.calls;
  const auto bad = state.off == sandbox::Off::kAsked ? spdlog::level::err : spdlog::level::warn;
  spdlog::log(whole ? spdlog::level::info : bad, "sandbox: {}", state.text());
}

// What the daemon has before there are other threads, a peer's word or an operator's.
struct Prepared {
  UniqueFd lock;
  identity::Identity self;
  exports::Exports exports;
  std::unique_ptr<journal::Journal> journal;
  sandbox::State sandbox;
};

Result<Prepared> prepare(const config::Node& node) {
  auto lock = lock_node(node.run_dir());
  if (!lock) return lock.error();
  auto self = identity::load_of(node.directory, node.name, node.ca_domain);
  if (!self) return self.error();
  if (!node.users_map_file.empty()) {
    if (const auto map = identity::UserMap::load(node.users_map_file); !map) return map.error();
  }
  auto exports = exports::Exports::open(node.exports);
  if (!exports) return exports.error();
  if (Status apart = config::check_apart(node, config::Paths::kFollowed); !apart) return apart.error();
  if (auto usable = check_state(node); !usable) return usable.error();
  auto journal = journal::Journal::open(node.journal());
  if (!journal) return journal.error();
  const Result<bool> removes = may_leave_files(**journal);
  if (!removes) return removes.error();
  const auto sandboxed = confine(node, *removes);
  if (!sandboxed) return sandboxed.error();
  if (const size_t restored = exports->note_opened_in(node.state() / "opened-directories"); restored > 0)
    spdlog::warn("{} directories that a former life had opened up have their modes again", restored);
  return Prepared{.lock = std::move(*lock),
                  .self = std::move(*self),
                  .exports = std::move(*exports),
                  .journal = std::move(*journal),
                  .sandbox = *sandboxed};
}

Status serve(const daemon::Options& options) {
  auto node = config::load(options.node);
  if (!node) return node.error();
  daemon::start_log(daemon::kControl.name, log::kOfControl, [&](const char* component) {
    return options.log_level_or(node->log_level_of(component));
  });
  // A transfer may hold thousands of files open. Afterwards the sandbox forbids it.
  if (Status enough = base::raise_open_files(runtime::kOpenFilesOfNode + node->exports.size()); !enough)
    return enough;
  auto service = daemon::Service::from_environment();
  // gRPC reports as errors what start_server explains better.
  gpr_set_log_function([](gpr_log_func_args* args) { spdlog::debug("gRPC: {}", args->message); });
  auto prepared = prepare(*node);
  if (!prepared) return prepared.error();

  asio::io_context io(1);
  asio::signal_set signals(io, SIGTERM, SIGINT);
  node::Manager manager(io, *node, std::move(prepared->self), std::move(prepared->exports),
                        std::move(prepared->journal));
  std::unique_ptr<exporter::Exporter> exporter;
  if (node->metrics_listen != "none") {
    auto started = exporter::start(io, *node, [&manager] { return manager.report().figures(); });
    if (!started) return started.error();
    exporter = std::move(*started);
  }
  if (auto started = manager.start(); !started) return started.error();
  Doors doors(io, manager, *node, exporter ? exporter->address() : "", prepared->sandbox);
  if (auto started = doors.start(); !started) return started.error();
  {
    Heartbeat heartbeat(io, service, manager);
    SandboxNews sandbox_news(io);
    Shutdown shutdown(io, manager, [&doors] { doors.stop(); });
    signals.async_wait([&](std::error_code error, int signal) {
      if (error) return;
      if (exporter) exporter->stop_waiting();
      spdlog::info("signal {}: stopping", signal);
      signals.clear();  // the next one kills
      heartbeat.stop();
      sandbox_news.stop();
      shutdown.begin();
    });
    // Sockets and the journal are made. What is made from here on is made for users: directories by this, all
    // else with a mode that is given.
    ::umask(static_cast<mode_t>(std::stoul(node->umask, nullptr, 8)));
    tell(prepared->sandbox);
    spdlog::info("node {} serves {}, {}", node->name, node->control_socket().string(),
                 node->calls_only() ? "and only calls its peers" : "peers at " + node->listen);
    heartbeat.begin();
    io.run();
    if (const std::string stuck = shutdown.finish(); !stuck.empty()) {
      spdlog::warn("stopped; calls into file systems have not come back, and are left behind: {}", stuck);
      spdlog::default_logger()->flush();
      std::_Exit(0);
    }
  }
  spdlog::info("stopped");
  return {};
}

int fail(const Error& error) {
  std::fprintf(stderr, "sluice-control: %s\n", error.message.c_str());
  return static_cast<int>(error.code);
}

}  // namespace
}  // namespace sluice::control

int main(int argc, char** argv) {
  google::protobuf::SetLogHandler(nullptr);  // it would print a line for each malformed text of a peer
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit of this process: the write fails
  std::signal(SIGHUP, SIG_IGN);
  ::umask(077);
  const auto options = sluice::daemon::parse(sluice::daemon::kControl, argc, argv);
  if (!options) return sluice::control::fail(options.error());
  if (!*options) return 0;
  const auto served = sluice::control::serve(**options);
  return served ? 0 : sluice::control::fail(served.error());
}
