// SPDX-License-Identifier: Apache-2.0
#include "perf/probe/end.h"

#include <fmt/format.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "dataplane/base/arguments/arguments.h"
#include "dataplane/base/config/config.h"
#include "dataplane/base/version.h"
#include "dataplane/net/frame.h"

namespace sluice::probe {
namespace {

constexpr auto kLookInterval = std::chrono::milliseconds(5);
// A ring, and what the device and its driver need of their own, at the longest frames.
constexpr uint32_t kMemoryMib = 96;

std::atomic<bool> signalled{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int) { signalled.store(true); }

bool may_run_on(int cpu) {
  cpu_set_t allowed;
  return cpu < CPU_SETSIZE && sched_getaffinity(0, sizeof allowed, &allowed) == 0 &&
         CPU_ISSET(static_cast<unsigned>(cpu), &allowed);
}

}  // namespace

bool stop_wanted() { return signalled.load(std::memory_order_relaxed); }

void add_end_options(CLI::App& app, EndOptions* options) {
  const config::Node node;
  options->ring = node.rx_ring;
  options->memory_mib = kMemoryMib;
  app.add_option("--frame-bytes", options->frame_bytes, "Bytes of each frame, without FCS")
      ->required()
      ->check(CLI::Range(64, 65014));
  app.add_option("--seconds", options->seconds, "How long to measure")
      ->required()
      ->check(CLI::Range(0.01, 3600.0));
  app.add_option("--mtu", options->mtu, "Largest IP packet of the device; else 9000, or what the frames need")
      ->check(CLI::Range(576, 65000));
  app.add_option("--ring", options->ring, "Frames in a device's ring, as [dataplane] rx_ring")
      ->check(CLI::Range(64, 4096))
      ->capture_default_str();
  app.add_option("--memory", options->memory, "Packet memory: auto, hugepages, no-huge")
      ->check(CLI::IsMember({"auto", "hugepages", "no-huge"}))
      ->capture_default_str();
  app.add_option("--memory-mib", options->memory_mib, "Packet memory of one end, MiB")
      ->check(CLI::Range(16, 1 << 20))
      ->capture_default_str();
  app.add_option("--wait-seconds", options->wait_seconds, "How long to wait for the other end")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  app.set_version_flag("--version", SLUICE_VERSION);
}

int run_program(CLI::App& app, int argc, char** argv, const std::function<Status()>& body) {
  if (const auto parsed = arguments::parse_main(app, argc, argv); parsed.ended) return parsed.status;
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  const Status status = body();
  if (status) return 0;
  fprintf(stderr, "%s: %s\n", app.get_name().c_str(), status.error().message.c_str());
  return static_cast<int>(status.error().code);
}

Result<End> End::open(const std::string& program, const EndOptions& options) {
  if (!may_run_on(options.core)) {
    return Error{
        ErrorCode::kDevice,
        fmt::format("CPU {}: is not there, or not for this process: take one that taskset -p $$ shows",
                    options.core)};
  }
  const auto needed_mtu = options.frame_bytes - static_cast<uint32_t>(net::kEthernetBytes);
  const uint32_t mtu = options.mtu != 0 ? options.mtu : std::max(config::Node{}.mtu, needed_mtu);
  auto ports = dpdk::BarePorts::open(
      {.program = program,
       .devices = {options.device},
       .mtu = mtu,
       .ring = options.ring,
       .memory = options.memory,
       .memory_mib = options.memory_mib,
       .cores = {options.core}},
      [program](const std::string& text) { fprintf(stderr, "%s: %s\n", program.c_str(), text.c_str()); });
  if (!ports) return ports.error();
  if ((*ports)->frame_bytes_max(0) < options.frame_bytes) {
    return Error{
        ErrorCode::kUsage,
        fmt::format("--frame-bytes {}: device {} carries at most {}: lower it, or raise --mtu or the "
                    "device's own limit",
                    options.frame_bytes, (*ports)->name(0), (*ports)->frame_bytes_max(0))};
  }
  return End(options, std::move(*ports));
}

Status End::wait_for_peer(const std::function<bool()>& gone) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options_.wait_seconds);
  while (!up() && !stop_wanted() && !gone()) {
    if (std::chrono::steady_clock::now() > end) {
      return Error{ErrorCode::kPeerUnreachable,
                   fmt::format("device {}: no peer within {} s: start the other end with the same socket and "
                               "the other role",
                               ports_->name(0), options_.wait_seconds)};
    }
    ports_->maintain();
    std::this_thread::sleep_for(kLookInterval);
  }
  return {};
}

Status End::run(std::atomic<bool>& stop, const std::function<bool()>& gone,
                const std::function<void()>& body) {
  std::atomic<bool> ended{false};
  const Status launched = ports_->launch([&] {
    body();
    ended.store(true);
  });
  if (!launched) return launched;
  bool was_up = false;
  while (!ended.load()) {
    was_up |= up();
    if (stop_wanted() || gone() || (was_up && !up())) stop.store(true);
    ports_->maintain();
    std::this_thread::sleep_for(kLookInterval);
  }
  ports_->join();
  return {};
}

}  // namespace sluice::probe
