// SPDX-License-Identifier: Apache-2.0
#include "dataplane/keeper/keeper.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "dataplane/base/unique_fd.h"
#include "dataplane/dpdk/device_place.h"
#include "dataplane/keeper/fallback_plan.h"
#include "dataplane/net/ram.h"
#include "dataplane/udp/local_addresses.h"

namespace sluice::keeper {
namespace {

constexpr int kLookMs = 200;                       // between looks at the device
constexpr uint64_t kStartNsMax = 180'000'000'000;  // as TimeoutStartSec: then its start is stuck
constexpr uint64_t kEndNsMax = 10'000'000'000;     // of a child that shall make room for another port
constexpr auto kGoneWait = std::chrono::milliseconds(1500);  // a card's folder goes a little after the card
constexpr auto kFormerWait = std::chrono::seconds(5);

uint64_t monotonic_ns() {
  return static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
}
uint64_t unix_ns() {
  return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::system_clock::now().time_since_epoch())
                                   .count());
}

int fail(const Error& error) {
  fprintf(stderr, "sluice-dataplane: %s\n", error.message.c_str());
  return static_cast<int>(error.code);
}

std::string in_words(int status) {
  return WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                             : fmt::format("exit status {}", WEXITSTATUS(status));
}

// What the fallback needs is missed at the start, not in the night in which it is needed.
Status check_fallback(const config::Node& node) {
  const config::Node sockets = on_sockets(node);
  const auto local = udp::choose_addresses(sockets, udp::host_interfaces(), "fallback_");
  if (!local) return local.error();
  const uint64_t bytes = uint64_t{node.workers} * node.extents_per_worker * node.extent_bytes;
  return net::check_ram("[port] fallback = \"udp\", in ordinary pages", bytes >> 20);
}

// A dataplane whose keeper was killed ends a moment later.
void await_former(const config::Node& node) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = node.dataplane_socket().native();
  if (path.size() >= sizeof address.sun_path) return;  // told where it is bound
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const auto until = std::chrono::steady_clock::now() + kFormerWait;
  while (std::chrono::steady_clock::now() < until) {
    const UniqueFd probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

class Keeper {
 public:
  Keeper(const config::Node& node, const dpdk::Device& device, daemon::Service& service, const Serve& serve)
      : node_(node),
        service_(service),
        serve_(serve),
        place_(device),
        plan_(uint64_t{node.fallback_return_s} * 1'000'000'000) {
    turn_.device = device.name;
  }

  int run() {
    block_signals();
    await_former(node_);
    std::string why = place_.missing();
    for (;;) {
      if (!why.empty()) fall(why);
      why.clear();
      turn_.node = turn_.fell ? on_sockets(node_) : node_;
      const std::optional<int> status = run_child();
      if (!status) return fail({ErrorCode::kResources, "a process cannot be started: " + reason_});
      if (stopping_) return code_of(*status);
      if (returning_) {
        come_back();
        continue;
      }
      if (turn_.fell) return end_as(*status);
      const auto fallen = why_fallen(*status);
      if (!fallen) return end_as(*status);
      why = *fallen;
    }
  }

 private:
  void block_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int each : {SIGTERM, SIGINT, SIGCHLD}) sigaddset(&set, each);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    ::signal(SIGPIPE, SIG_IGN);
    ::signal(SIGHUP, SIG_IGN);
    signals_.reset(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  void fall(const std::string& why) {
    plan_.fell(monotonic_ns());
    turn_.fell = true;
    turn_.reason = why;
    turn_.since_unix_ns = unix_ns();
    ++turn_.falls;
    spdlog::error(
        "device {} is gone ({}): FALLBACK: sockets carry the data, with new flows; it is tried again when it "
        "has been there for {} s; docs/RUNBOOK.md, \"The card died\"",
        turn_.device, why, plan_.wait_ns() / 1'000'000'000);
  }

  void come_back() {
    returning_ = false;
    turn_.fell = false;
    turn_.reason.clear();
    turn_.since_unix_ns = 0;
  }

  // A device that is gone makes its driver, and so the child, end in any way. Nothing: that is not why.
  std::optional<std::string> why_fallen(int status) {
    const bool told = WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(ErrorCode::kDevice);
    const auto until = std::chrono::steady_clock::now() + kGoneWait;
    for (;;) {
      std::string gone = ready_ ? place_.gone() : "";
      if (gone.empty() && told) gone = place_.missing();
      if (!gone.empty()) return gone;
      if (told || std::chrono::steady_clock::now() >= until) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    if (!told) return std::nullopt;
    return fmt::format("it {}: {}; the log says why", ready_ ? "ended" : "did not start", in_words(status));
  }

  // ---- the child ----

  [[noreturn]] void be_child(pid_t keeper, UniqueFd telling) const {
    // Before anything else: a keeper that is killed leaves nobody behind.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != keeper) std::_Exit(1);
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    auto service = daemon::Service::over(std::move(telling), service_.alive_interval());
    std::exit(serve_(turn_, service));
  }

  // -> its status; nothing: it could not be started.
  std::optional<int> run_child() {
    int ends[2] = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
      reason_ = std::strerror(errno);
      return std::nullopt;
    }
    UniqueFd listening(ends[0]);
    UniqueFd telling(ends[1]);
    ready_ = false;
    returning_ = false;
    started_ns_ = monotonic_ns();
    const pid_t keeper = ::getpid();
    child_ = ::fork();
    if (child_ < 0) {
      reason_ = std::strerror(errno);
      return std::nullopt;
    }
    if (child_ == 0) {
      listening.reset();
      be_child(keeper, std::move(telling));
    }
    telling.reset();
    for (;;) {
      pollfd watched[] = {{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                          {.fd = listening.get(), .events = POLLIN, .revents = 0}};
      if (::poll(watched, 2, kLookMs) < 0) continue;
      if ((watched[1].revents & POLLIN) != 0) {
        hear(listening.get());
      } else if (watched[1].revents != 0) {
        listening.reset();  // it has ended, and SIGCHLD comes
      }
      take_signals();
      int status = 0;
      if (::waitpid(child_, &status, WNOHANG) == child_) return status;
      look();
    }
  }

  // What the child says to the service manager is said by the process that the manager knows.
  void hear(int listening) {
    std::array<char, 4096> text{};
    const ssize_t bytes = ::recv(listening, text.data(), text.size(), MSG_DONTWAIT);
    if (bytes <= 0) return;
    const std::string_view said(text.data(), static_cast<size_t>(bytes));
    if (said.starts_with("READY=")) {
      ready_ = true;
      if (!turn_.fell) {
        place_.opened();
        plan_.served(monotonic_ns());
      }
    }
    if (said.starts_with("STOPPING=") && !stopping_) return;  // another takes its place
    service_.forward(said);
  }

  void take_signals() {
    signalfd_siginfo info;
    while (::read(signals_.get(), &info, sizeof info) == sizeof info) {
      if (info.ssi_signo == SIGCHLD) continue;
      stopping_ = true;
      ::kill(child_, SIGTERM);
    }
  }

  void look() {
    const uint64_t now_ns = monotonic_ns();
    // While a port opens nobody turns who could say that all is well.
    if (!ready_ && now_ns - started_ns_ < kStartNsMax) service_.alive(now_ns);
    if (stopping_) return;
    if (returning_) {
      if (now_ns - asked_ns_ < kEndNsMax) return;
      spdlog::warn("the dataplane on sockets has not ended within {} s: killed", kEndNsMax / 1'000'000'000);
      ::kill(child_, SIGKILL);
      asked_ns_ = now_ns;
      return;
    }
    if (!turn_.fell || !ready_ || now_ns < look_ns_) return;
    look_ns_ = now_ns + uint64_t{kLookMs} * 1'000'000;
    if (!plan_.may_return(place_.missing().empty(), now_ns)) return;
    spdlog::warn("device {} has been there for {} s: going back to it, with new flows", turn_.device,
                 plan_.wait_ns() / 1'000'000'000);
    returning_ = true;
    asked_ns_ = now_ns;
    ::kill(child_, SIGTERM);
  }

  static int code_of(int status) {
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }

  // As if there were no keeper: whoever started it decides about another start.
  static int end_as(int status) {
    if (WIFSIGNALED(status)) spdlog::error("the dataplane ended by signal {}", WTERMSIG(status));
    return code_of(status);
  }

  const config::Node& node_;
  daemon::Service& service_;
  const Serve& serve_;
  dpdk::DevicePlace place_;
  FallbackPlan plan_;
  Turn turn_;
  UniqueFd signals_;
  std::string reason_;  // why no child could be started
  pid_t child_ = -1;
  uint64_t started_ns_ = 0;
  uint64_t asked_ns_ = 0;  // it was asked to end
  uint64_t look_ns_ = 0;   // the next look
  bool ready_ = false;
  bool returning_ = false;
  bool stopping_ = false;
};

}  // namespace

void Turn::note(board::PortInfo* info) const {
  info->falls = falls;
  if (!fell) return;
  device.copy(info->fallback_for, sizeof info->fallback_for - 1);
  reason.copy(info->fallback_reason, sizeof info->fallback_reason - 1);
  info->fallback_unix_ns = since_unix_ns;
}

config::Node on_sockets(const config::Node& node) {
  config::Node sockets = node;
  sockets.device = config::kSocketDevice;
  sockets.address4 = node.fallback_address4;
  sockets.address6 = node.fallback_address6;
  // Of the device's network: sockets use the routes of the host.
  sockets.gateway4.clear();
  sockets.gateway6.clear();
  sockets.neighbours.clear();
  return sockets;
}

int keep(const config::Node& node, daemon::Service& service, const Serve& serve) {
  const auto device = dpdk::parse_device(node);
  if (!device) return fail(device.error());
  if (auto checked = check_fallback(node); !checked) return fail(checked.error());
  return Keeper(node, *device, service, serve).run();
}

}  // namespace sluice::keeper
