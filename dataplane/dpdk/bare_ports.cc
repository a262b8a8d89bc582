// Cold. See bare_ports.h; the order of starting is the order of the functions here.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/bare_ports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <set>
#include <thread>

#include "dataplane/dpdk/ethdev.h"
#include "dataplane/dpdk/hugepage_turn.h"
#include "dataplane/dpdk/interrupts.h"
#include "dataplane/dpdk/memif_driver.h"
#include "dataplane/dpdk/queue.h"
#include "dataplane/memif/link.h"
#include "dataplane/memif/socket.h"

namespace sluice::dpdk {
namespace {

constexpr uint64_t kDriverMib = 24;  // rings, tables and fragments of DPDK's own heap
constexpr unsigned kPollingLcore = lcore_of_worker(0);

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// A device argument means what it means in a node with these settings.
config::Node as_node(const BarePortsOptions& options, const std::string& device) {
  config::Node node;
  node.device = device;
  node.mtu = options.mtu;
  node.workers = 1;
  node.rx_ring = options.ring;
  node.tx_ring = options.ring;
  return node;
}

}  // namespace

BarePorts::BarePorts(BarePortsOptions options, Warn warn)
    : options_(std::move(options)), warn_(std::move(warn)) {}

BarePorts::~BarePorts() {
  join();
  const bool interrupts_held = link_ != nullptr;
  link_.reset();
  for (const auto& ethdev : ethdevs_) ethdev->close();
  queues_.clear();
  // As in Port: cleaning up would wait for the interrupt thread, which the link holds.
  if (eal_started_ && !interrupts_held) stop_eal();
}

Result<std::unique_ptr<BarePorts>> BarePorts::open(const BarePortsOptions& options, const Warn& warn) {
  std::unique_ptr<BarePorts> ports(new BarePorts(options, warn));
  const Status status = ports->start();
  if (!status) return status.error();
  return ports;
}

Status BarePorts::start() {
  // memif's driver writes to its control socket without MSG_NOSIGNAL.
  signal(SIGPIPE, SIG_IGN);
  std::set<std::string> names;
  for (const std::string& text : options_.devices) {
    auto device = parse_device(as_node(options_, text));
    if (!device) return device.error();
    if (!names.insert(device->name).second) {
      return Error{
          ErrorCode::kConfiguration,
          fmt::format("device {}: is there twice: number them, as net_memif0 and net_memif1", device->name)};
    }
    ethdevs_.push_back(std::make_unique<Ethdev>(std::move(*device)));
  }
  Status status = size_memory();
  if (status) status = start_environment();
  for (size_t i = 0; status && i < ethdevs_.size(); ++i) status = set_up(i);
  if (status) status = start_devices();
  return status;
}

namespace {

QueueSetup queue_setup(const Ethdev& ethdev, uint32_t ring) {
  // A device may give copies back late, so there are enough to fill its ring.
  const uint32_t copies = std::bit_ceil(ring + 4 * net::kBurst) - 1;
  return {.frame_bytes_max = ethdev.frame_bytes_max(),
          .rx_room_bytes = ethdev.rx_room_bytes(),
          .rx_ring = ring,
          .tx_ring = ring,
          .unowned_frames = copies};
}

}  // namespace

Status BarePorts::size_memory() {
  uint64_t bytes = 0;
  for (const auto& ethdev : ethdevs_) {
    if (Status status = ethdev->size_frames(options_.mtu, warn_); !status) return status;
    if (ethdev->is_memif()) {
      if (Status status = memif::prepare_socket(ethdev->device().memif); !status) return status;
    }
    bytes += Queue::memory_bytes(queue_setup(*ethdev, options_.ring));
  }
  needed_mib_ = (bytes >> 20) + kDriverMib;
  if (needed_mib_ > options_.memory_mib) {
    return Error{
        ErrorCode::kConfiguration,
        fmt::format("{} MiB for packet buffers are too few for rings of {} frames of MTU {}: {} are needed",
                    options_.memory_mib, options_.ring, options_.mtu, needed_mib_)};
  }
  return {};
}

Status BarePorts::start_environment() {
  const HugepageTurn turn;
  const auto hugepages =
      choose_hugepages("memory", options_.memory, options_.memory_mib, count_hugepages().free_mib, warn_);
  if (!hugepages) return hugepages.error();
  hugepages_ = *hugepages;
  EalRequest request{.program = options_.program,
                     .instance = fmt::format("{}-{}", options_.program, getpid()),
                     .memory_mib = options_.memory_mib,
                     .hugepages = hugepages_};
  for (const auto& ethdev : ethdevs_) {
    if (!hugepages_ && !ethdev->device().is_virtual()) {
      return needs_hugepages(ethdev->device(), options_.memory_mib);
    }
    request.devices.push_back(&ethdev->device());
  }
  const std::vector<int> allowed = allowed_cpus();
  request.lcores = fmt::format("{}@({}),{}@({})", kMainLcore, fmt::join(allowed, ","), kPollingLcore,
                               fmt::join(options_.cores.empty() ? allowed : options_.cores, ","));
  const Status started = start_eal({.arguments = eal_arguments(request), .hugepages = hugepages_});
  eal_started_ = static_cast<bool>(started);
  return started;
}

Status BarePorts::set_up(size_t device) {
  Ethdev& ethdev = *ethdevs_[device];
  std::vector<uint16_t> taken;
  for (size_t i = 0; i < device; ++i) taken.push_back(ethdevs_[i]->id());
  Status status = ethdev.find(taken);
  if (status) status = ethdev.configure(1, options_.mtu, warn_);
  if (!status) return status;
  auto rx_ring = static_cast<uint16_t>(options_.ring);
  auto tx_ring = static_cast<uint16_t>(options_.ring);
  status = ethdev.adjust_rings(&rx_ring, &tx_ring);
  if (!status) return status;
  QueueSetup setup = queue_setup(ethdev, options_.ring);
  setup.port_id = ethdev.id();
  setup.numa_node = rte_eth_dev_socket_id(ethdev.id());
  setup.rx_ring = rx_ring;
  setup.tx_ring = tx_ring;
  ethdev.complete(&setup);
  auto queue = std::make_unique<Queue>(setup);
  status = queue->allocate();
  if (status) status = ethdev.add_queue(setup, *queue);
  queues_.push_back(std::move(queue));
  return status;
}

Status BarePorts::start_devices() {
  std::vector<memif::LinkEnd> ends;
  link_ends_.assign(ethdevs_.size(), 0);
  for (size_t i = 0; i < ethdevs_.size(); ++i) {
    Ethdev& ethdev = *ethdevs_[i];
    if (ethdev.is_memif()) {
      link_ends_[i] = ends.size();
      ends.push_back({.socket = ethdev.device().memif,
                      .driver = std::make_unique<MemifDriver>(ethdev.id()),
                      .gates = {&queues_[i]->gate()},
                      .attach = {}});
    } else {
      if (Status status = ethdev.start(); !status) return status;
      ethdev.take_everything();
    }
  }
  if (ends.empty()) return {};
  link_ = std::make_unique<memif::Link>(std::move(ends), Interrupts::instance());
  return link_->start();
}

net::FrameQueue& BarePorts::queue(size_t device) { return *queues_[device]; }
const std::string& BarePorts::name(size_t device) const { return ethdevs_[device]->device().name; }
uint32_t BarePorts::frame_bytes_max(size_t device) const { return ethdevs_[device]->frame_bytes_max(); }
bool BarePorts::up(size_t device) const {
  return !ethdevs_[device]->is_memif() || link_->up(link_ends_[device]);
}

int BarePorts::run_body(void* self) {
  auto& ports = *static_cast<BarePorts*>(self);
  ports.body_();
  for (const auto& queue : ports.queues_) queue->gate().worker_ends();
  return 0;
}

Status BarePorts::launch(std::function<void()> body) {
  join();
  body_ = std::move(body);
  for (const auto& queue : queues_) queue->gate().worker_begins();
  const int code = rte_eal_remote_launch(&BarePorts::run_body, this, kPollingLcore);
  running_ = code == 0;
  if (running_) return {};
  for (const auto& queue : queues_) queue->gate().worker_ends();
  return Error{ErrorCode::kDevice, fmt::format("the polling thread does not start: {}", rte_strerror(-code))};
}

void BarePorts::join() {
  if (!running_) return;
  // DPDK's own wait spins on a CPU that the polling thread may need.
  while (rte_eal_get_lcore_state(kPollingLcore) == RUNNING) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  rte_eal_wait_lcore(kPollingLcore);
  running_ = false;
}

void BarePorts::maintain() {
  if (link_ == nullptr) return;
  for (const std::string& news : link_->take_news()) warn_(news);
}

}  // namespace sluice::dpdk
