// sluice-dataplane: starts the port and its workers, serves control, and ends on SIGTERM.
//
// The main thread does what is cold: start, the attach socket, keeping the port alive, the end.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <latch>
#include <thread>

#include "dataplane/base/config/config.h"
#include "dataplane/base/counted.h"
#include "dataplane/base/daemon/daemon.h"
#include "dataplane/base/daemon/service.h"
#include "dataplane/base/generated.h"
#include "dataplane/base/local_socket.h"
#include "dataplane/base/log.h"
#include "dataplane/base/open_files.h"
#include "dataplane/base/sandbox/profiles.h"
#include "dataplane/base/unique_fd.h"
#include "dataplane/board/counters.h"
#include "dataplane/crc/crc.h"
#include "dataplane/dpdk/port.h"
#include "dataplane/keeper/keeper.h"
#include "dataplane/lane/attach_server.h"
#include "dataplane/lane/worker.h"
#include "dataplane/lane/worker_watch.h"
#include "dataplane/seal/gcm_choice.h"
#include "dataplane/seal/key_chain.h"
#include "dataplane/udp/port.h"
#include "storage/ring.h"

namespace sluice {
namespace {

constexpr uint64_t kOpenFilesLeast = 64;
constexpr int kServeTimeoutMs = 100;
constexpr int kSlowStartMs = 1000;
constexpr uint64_t kMaintainIntervalNs = 1'000'000'000;

int fail(const Error& error) {
  fprintf(stderr, "sluice-dataplane: %s\n", error.message.c_str());
  return static_cast<int>(error.code);
}

// Blocks the signals that end the process, and gives a descriptor that reads them.
int signal_fd() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit of this process: the write fails
  signal(SIGHUP, SIG_IGN);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

// While the port opens, which may take long where much memory has to be cleared, a signal ends the process at
// once: there is nothing yet that would have to be ended in order. After a second the log says so.
class StartWatch {
 public:
  StartWatch(int signals, const std::string& doing)
      : done_(::eventfd(0, EFD_CLOEXEC)), thread_([this, signals, doing] { watch(signals, doing); }) {}
  ~StartWatch() {
    const uint64_t one = 1;
    (void)!::write(done_.get(), &one, sizeof one);
    thread_.join();
  }

 private:
  void watch(int signals, const std::string& doing) const {
    pollfd watched[] = {{.fd = done_.get(), .events = POLLIN, .revents = 0},
                        {.fd = signals, .events = POLLIN, .revents = 0}};
    int ready = 0;
    for (int timeout_ms = kSlowStartMs; (ready = ::poll(watched, 2, timeout_ms)) <= 0;) {
      if (ready < 0) continue;
      spdlog::info("{}: this takes a while", doing);
      timeout_ms = -1;
    }
    if (watched[0].revents == 0 && watched[1].revents != 0) {
      spdlog::info("ending before the start was over");
      std::_Exit(0);
    }
  }

  UniqueFd done_;
  std::thread thread_;
};

// CPUs of this process that no worker is pinned to; empty when there is none.
std::vector<int> helper_cpus(net::Port& port, uint32_t workers) {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cpus;
  for (uint32_t w = 0; w < workers; ++w) {
    if (port.core_of(w) >= 0) CPU_CLR(static_cast<unsigned>(port.core_of(w)), &set);
  }
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// Until a signal ends it, or the device is gone: -> why. The service manager hears that all is well only
// while every worker turns.
std::string tend(lane::AttachServer& server, lane::BoardMemory& memory, net::Port& port, int signals,
                 lane::WorkerWatch workers, daemon::Service& service) {
  // Of the device, which does not say by which queue: its first worker has them.
  const board::CounterWriter missed(memory.board().workers[0]);
  uint64_t next_maintain_ns = 0;
  lane::ClockWatch clocks(memory.board());
  lane::ArrivalWatch arrivals(memory.board());
  for (;;) {
    server.serve(kServeTimeoutMs, signals);
    signalfd_siginfo signal_info;
    if (read(signals, &signal_info, sizeof signal_info) > 0) return {};
    if (std::string gone = port.gone(); !gone.empty()) return gone;
    const uint64_t now_ns = lane::monotonic_ns();
    memory.board().dataplane_alive_ns.store(now_ns, std::memory_order_release);
    if (workers.all_turned()) service.alive(now_ns);
    if (now_ns >= next_maintain_ns) {
      port.maintain();
      missed.raise_to(board::Counter::rx_missed, port.missed_frames());
      memory.board().link.store(static_cast<uint32_t>(port.link()), std::memory_order_relaxed);
      for (const std::string& news : sandbox::take_news()) spdlog::error("{}", news);
      for (const std::string& news : clocks.take_news()) spdlog::warn("{}", news);
      for (const std::string& news : arrivals.take_news()) spdlog::warn("{}", news);
      memory.board().refused_calls.store(sandbox::refused_calls(), std::memory_order_relaxed);
      next_maintain_ns = now_ns + kMaintainIntervalNs;
    }
  }
}

// Rings are opened while there are privileges: their buffers may then lie beyond the locked-memory limit. No
// frame is taken before the privileges are gone.
struct Start {
  explicit Start(uint32_t workers) : rings_open(workers) {}
  std::latch rings_open;
  std::latch unprivileged{1};
  std::atomic<int> exit_code{0};
};

void work(Start& start, lane::Worker& worker) {
  prctl(PR_SET_TIMERSLACK, 1);  // short idle sleeps must be short
  const Status ready = worker.open();
  if (!ready) start.exit_code = fail(ready.error());
  start.rings_open.count_down();
  start.unprivileged.wait();
  if (ready) worker.run();
}

// With sockets nothing of DPDK is started.
Result<std::unique_ptr<net::Port>> open_port(const config::Node& node,
                                             const std::function<void(const std::string&)>& warn) {
  if (node.device == config::kSocketDevice) return udp::Port::open(node, warn);
  auto port = dpdk::Port::open(node, warn);
  if (!port) return port.error();
  return std::unique_ptr<net::Port>(std::move(*port));
}

Result<std::unique_ptr<net::Port>> open_watched(const config::Node& node,
                                                const std::function<void(const std::string&)>& warn,
                                                int signals) {
  const StartWatch watch(signals, fmt::format("opening device {} with [dataplane] memory_mib = {}",
                                              node.device, node.memory_mib));
  return open_port(node, warn);
}

sandbox::Profile profile_of(const config::Node& node) {
  const std::string_view device = node.device;
  const bool memif = device.starts_with("net_memif");
  sandbox::DataplaneNeeds needs{.port = sandbox::PortKind::kKernel,
                                .run_dir = node.run_dir(),
                                .raw_sockets = device.starts_with("net_af"),
                                .abstract_socket = memif && device.find("socket-abstract=no") == device.npos,
                                .memif_client = device.find("role=server") == device.npos,
                                .interface_statistics = device.starts_with("net_pcap")};
  if (device == config::kSocketDevice) needs.port = sandbox::PortKind::kSockets;
  if (memif) needs.port = sandbox::PortKind::kMemif;
  if (device.starts_with("net_vhost") || device.starts_with("net_virtio_user"))
    needs.port = sandbox::PortKind::kVhost;
  // "0000:01:00.0"; all others are DPDK's own.
  if (!device.starts_with("net_") && !device.starts_with("eth_") && device != config::kSocketDevice)
    needs.port = sandbox::PortKind::kCard;
  return sandbox::dataplane_profile(needs);
}

// Once the port serves, and every thread is there: nothing that a stranger sends was looked at before.
Result<sandbox::State> confine(const config::Node& node, bool rings_restricted) {
  // OpenSSL reads its configuration when it is first used.
  for (const seal::Cipher cipher : {seal::Cipher::kAes128Gcm, seal::Cipher::kAes256Gcm})
    const seal::KeyChain first(cipher, seal::Secret{});
  // The allocator reads /proc/sys/vm/overcommit_memory when it first gives back memory of a thread: from a
  // bound on that otherwise grows with what was freed.
  ::mallopt(M_TRIM_THRESHOLD, 128 << 10);
  std::thread([] {
    std::vector<std::unique_ptr<char[]>> blocks;
    for (int i = 0; i < 4; ++i) blocks.push_back(std::make_unique<char[]>(100 << 10));
    while (!blocks.empty()) blocks.pop_back();
  }).join();
  auto state = sandbox::apply(profile_of(node), node.dataplane_sandbox == "yes");
  if (!state) return state;
  state->rings = rings_restricted;
  const bool whole = state->landlock > 0 && state->calls;
  const auto bad = state->off == sandbox::Off::kAsked ? spdlog::level::err : spdlog::level::warn;
  spdlog::log(whole ? spdlog::level::info : bad, "sandbox: {}", state->text());
  return state;
}

bool use_tsc() {
  const std::string source = lane::kernel_clock_source();
  const bool usable = lane::tsc_is_usable(source);
  if (!usable) {
    spdlog::warn(
        "clock: the kernel keeps time by {}, not by the CPU's time stamp counter, so each turn of a worker "
        "reads "
        "it from the kernel: high rates need more CPU; docs/RUNBOOK.md, \"The clock\", says what to look at",
        source.empty() ? "an unknown device" : source);
  }
  return usable;
}

// Lets control's user connect, and control set the level of this daemon's log.
Status admit_control(lane::AttachServer& server, const config::Node& node) {
  server.when_log_level([](std::optional<uint32_t> level) {
    if (level) log::set_level(log::kDataplane, *level);
    return log::level(log::kDataplane);
  });
  return base::share_socket(node.dataplane_socket(), node.dataplane_group, "[dataplane] group");
}

struct Crew {
  std::vector<std::unique_ptr<lane::Worker>> workers;
  std::vector<const storage::Ring*> rings;  // of the workers; WorkerShared owns them
};

Crew make_workers(lane::WorkerShared& shared, uint32_t count) {
  Crew crew;
  for (uint32_t i = 0; i < count * count; ++i)
    shared.steering.push_back(std::make_unique<lane::SteeringRing>());
  for (uint32_t i = 0; i < count; ++i) {
    auto ring = std::make_unique<storage::Ring>();
    crew.rings.push_back(ring.get());
    shared.disks.push_back(std::move(ring));
    crew.workers.push_back(std::make_unique<lane::Worker>(shared, i));
  }
  return crew;
}

void log_device(const board::PortInfo& info) {
  spdlog::info("serving device {} with {}, {} byte frames, {}, CRC by {}", info.device,
               base::counted(info.workers, "worker"), info.frame_bytes_max,
               info.hugepages ? "hugepages" : "no hugepages", crc::variant());
  if (info.abilities[0] != 0) spdlog::info("device {}: {}", info.device, info.abilities);
}

board::PortInfo info_of(const net::Port& port, const keeper::Turn& turn) {
  board::PortInfo info = port.info();
  turn.note(&info);
  return info;
}

std::string doing(const board::PortInfo& info) {
  const std::string what = "serves device " + std::string(info.device);
  if (info.fallback_for[0] == 0) return what;
  return fmt::format("{}, the fallback: {} is gone ({})", what, info.fallback_for, info.fallback_reason);
}

// Nothing of a device that is gone can be stopped or closed: its memory may not answer any more. The kernel
// takes back what the process has, as if it had been killed.
[[noreturn]] void end_without_device(const config::Node& node, const board::PortInfo& info,
                                     const std::string& why) {
  const bool alone = node.fallback == config::kNoFallback;
  spdlog::error("device {} is gone: {}: this dataplane ends{}", info.device, why,
                alone
                    ? "; bring the device back and start sluice-dataplane, or name [port] fallback; sessions "
                      "wait for it"
                    : "");
  spdlog::default_logger()->flush();
  std::error_code ignored;
  std::filesystem::remove(node.dataplane_socket(), ignored);
  std::_Exit(static_cast<int>(ErrorCode::kDevice));
}

void tell_cipher() {
  const seal::GcmChoice& gcm = seal::gcm_choice();
  spdlog::info("AES-GCM by {} (8 KiB: ipsec-mb {} ns, vaes {} ns; 0: not measured)",
               seal::gcm_engine_name(gcm.engine), gcm.times.ipsec_mb_ns, gcm.times.vaes_ns);
}

int serve(const keeper::Turn& turn, daemon::Service& service) {
  const config::Node& node = turn.node;
  const auto warn = [](const std::string& text) { spdlog::warn("{}", text); };
  const int signals = signal_fd();
  // What an unprivileged start may register with io_uring; best effort.
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  (void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
  // It has what control opened as well: the files of all sessions whose turn has come.
  if (auto s = base::raise_open_files(kOpenFilesLeast); !s) return fail(s.error());
  auto opened = open_watched(node, warn, signals);
  if (!opened) return fail(opened.error());
  net::Port& port = **opened;
  const board::PortInfo info = info_of(port, turn);

  auto memory = lane::BoardMemory::create(info);
  if (!memory) return fail(memory.error());
  auto objects = std::make_unique<lane::ObjectTable>();
  const auto keys = seal::SecretBox<lane::KeyTable>::make();
  if (!keys) return fail({ErrorCode::kResources, "no memory for the keys of flows"});
  if (!keys.locked())
    warn("keys of flows may be swapped out, for memory cannot be locked: raise LimitMEMLOCK (ulimit -l)");
  tell_cipher();
  lane::WorkerEpochs epochs;
  for (uint32_t i = 0; i < info.workers; ++i) epochs.push_back(std::make_unique<std::atomic<uint64_t>>(0));
  auto server = lane::AttachServer::listen(node.dataplane_socket(), *memory, *objects, *keys, epochs,
                                           port.sends_any_memory());
  if (!server) return fail(server.error());
  if (auto s = admit_control(*server, node); !s) return fail(s.error());

  std::atomic<bool> stop{false};
  lane::WorkerShared shared{.port = port,
                            .board = memory->board(),
                            .objects = *objects,
                            .keys = *keys,
                            .with_tsc = use_tsc(),
                            .poll_busy = node.poll == "busy",
                            .stop = stop,
                            .epochs = epochs,
                            .helper_cpus = helper_cpus(port, info.workers),
                            .warn = warn};
  fill_generated({port.pattern()->data, port.pattern()->bytes});
  const Crew crew = make_workers(shared, info.workers);

  Start start(info.workers);
  if (auto s = port.launch([&](uint32_t i) { work(start, *crew.workers[i]); }); !s) return fail(s.error());
  start.rings_open.wait();
  if (const auto confined = confine(node, std::ranges::all_of(crew.rings, &storage::Ring::restricted));
      !confined) {
    start.exit_code = fail(confined.error());
  } else {
    memory->board().sandbox = confined->bits();
  }
  const bool good = start.exit_code == 0;
  stop = !good;
  start.unprivileged.count_down();
  if (good) {
    log_device(info);
    service.ready(doing(info));
    const std::string gone = tend(*server, *memory, port, signals, lane::WorkerWatch(epochs), service);
    if (!gone.empty()) end_without_device(node, info, gone);
    spdlog::info("ending");
    service.stopping();
    stop = true;
  }
  port.join();
  return start.exit_code;
}

}  // namespace
}  // namespace sluice

int main(int argc, char** argv) {
  const auto options = sluice::daemon::parse(sluice::daemon::kDataplane, argc, argv);
  if (!options) return sluice::fail(options.error());
  if (!*options) return 0;
  auto node = sluice::config::load((*options)->node);
  if (!node) return sluice::fail(node.error());
  sluice::daemon::start_log(
      sluice::daemon::kDataplane.name, std::array{sluice::log::kDataplane},
      [&](const char* component) { return (*options)->log_level_or(node->log_level_of(component)); });
  auto service = sluice::daemon::Service::from_environment();
  if (node->fallback != sluice::config::kNoFallback)
    return sluice::keeper::keep(*node, service, sluice::serve);
  return sluice::serve({.node = *node}, service);
}
