// Cold. See port.h; the order of starting is the order of the functions here.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/port.h"

#include <fmt/format.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_malloc.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "dataplane/core/wire.h"
#include "dataplane/dpdk/flow_rules.h"
#include "dataplane/dpdk/hugepage_turn.h"
#include "dataplane/dpdk/interrupts.h"
#include "dataplane/dpdk/memif_driver.h"
#include "dataplane/dpdk/privileges.h"
#include "dataplane/memif/socket.h"
#include "dataplane/net/frame_datagrams.h"
#include "dataplane/net/host_addresses.h"
#include "dataplane/net/ram.h"

namespace sluice::dpdk {
namespace {

constexpr uint64_t kDriverMib = 24;  // rings, tables and fragments of DPDK's own heap

// A process that was killed leaves its socket behind, over which these drivers stumble.
Status clear_served_socket(const Device& device) {
  const std::string& path = device.served_socket;
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  struct stat status {};
  if (path.empty() || path.size() >= sizeof address.sun_path || lstat(path.c_str(), &status) != 0) return {};
  path.copy(address.sun_path, path.size());
  const UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool stale = S_ISSOCK(status.st_mode) &&
                     connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
                     errno == ECONNREFUSED && unlink(path.c_str()) == 0;
  if (stale) return {};
  return Error{ErrorCode::kDevice,
               fmt::format("[port] device {}: {}: another process serves there, or it is no socket: "
                           "stop it, or name another path",
                           device.name, path)};
}

}  // namespace

Result<std::unique_ptr<Port>> Port::open(const config::Node& node, const Warn& warn) {
  auto device = parse_device(node);
  if (!device) return device.error();
  if (node.workers == 0 || node.workers > board::kWorkersMax) {
    return Error{ErrorCode::kConfiguration,
                 fmt::format("[dataplane] workers = {}: expected 1 to {}", node.workers, board::kWorkersMax)};
  }
  const uint8_t no_mac[6] = {};
  const auto host = net::host_addresses(node, no_mac);  // wrong addresses are told before anything starts
  if (!host) return host.error();
  std::unique_ptr<Port> port(new Port(node, std::move(*device), warn));
  if (Status status = port->start(); !status) return status.error();
  return port;
}

Port::Port(const config::Node& node, Device device, Warn warn)
    : node_(node), ethdev_(std::move(device)), warn_(std::move(warn)), workers_(node.workers) {}

Port::~Port() {
  join();
  const bool interrupts_held = link_ != nullptr;
  link_.reset();
  ethdev_.close();
  memif_queues_.clear();
  queues_.clear();
  rte_free(pattern_.data);
  // Cleaning up waits for the interrupt thread, which memif::Link holds for good. There is nothing to clean
  // up, since all memory is this process's own.
  if (eal_started_ && !interrupts_held) stop_eal();
}

Status Port::start() {
  // memif's driver writes to its control socket without MSG_NOSIGNAL.
  signal(SIGPIPE, SIG_IGN);
  if (config::can_vanish(node_.device)) place_.emplace(device()).opened();
  Status status = check_rights();
  if (status) status = check_frame_size();
  if (status && ethdev_.is_memif()) status = memif::prepare_socket(device().memif);
  if (status) status = clear_served_socket(device());
  EalPlan plan;
  {
    const HugepageTurn turn;
    if (status) status = choose_memory_and_cores(&plan);
    if (status) status = start_eal(plan);
  }
  if (!status) return status;
  eal_started_ = true;
  hugepages_ = plan.hugepages;
  if (device().zero_copy) {
    warn_(
        fmt::format("device {}: zero-copy=yes maps this process's memory into the peer, and buffers are lost "
                    "when the peer restarts: for trusted benchmarks only",
                    device().name));
  }
  status = find_device();
  if (status) status = ethdev_.configure(workers_, node_.mtu, warn_);
  if (status) status = allocate_pattern();
  if (status) status = set_up_queues();
  if (status) status = describe();
  if (status) status = start_device();
  return status;
}

// DPDK would only say that there is no such device.
Status Port::check_rights() const {
  if (!device().name.starts_with("net_af_packet") || may_open_raw_sockets()) return {};
  return Error{
      ErrorCode::kDevice,
      fmt::format(
          "[port] device {}: needs the right CAP_NET_RAW, which this process lacks: start it as root, "
          "by a unit with AmbientCapabilities=CAP_NET_RAW (sluice node setup writes it) or by setpriv "
          "--inh-caps +net_raw --ambient-caps +net_raw, or take device = \"udp\", which needs no rights",
          device().name)};
}

Status Port::check_frame_size() {
  if (Status status = ethdev_.size_frames(node_.mtu, warn_); !status) return status;
  if (net::chunk_bytes_that_fit(ethdev_.frame_bytes_max(), net::kIp6Bytes) < wire::kChunkBytesMin) {
    return Error{
        ErrorCode::kConfiguration,
        fmt::format("[port] device {}: frames of {} bytes hold no chunk of {}: raise mtu or the device's "
                    "buffer size",
                    device().name, ethdev_.frame_bytes_max(), wire::kChunkBytesMin)};
  }
  return {};
}

Status Port::choose_memory_and_cores(EalPlan* plan) {
  const auto units = processing_units();
  if (!units) return units.error();
  const auto cores = choose_cores(
      *units, {.workers = node_.workers, .cores = node_.cores, .numa_node = device_numa_node(device())});
  if (!cores) return cores.error();
  cores_ = *cores;
  if (cores_.shared) {
    warn_(
        node_.workers == 1
            ? "the worker shares its core with all else on this machine, which slows it: give it another core"
            : fmt::format(
                  "{} workers share the cores of this machine, which slows them: lower [dataplane] workers",
                  node_.workers));
  }
  const uint64_t pattern_bytes = node_.extent_bytes + Queue::extent_alignment(node_.extent_bytes);
  const uint64_t bytes = node_.workers * Queue::memory_bytes(queue_setup(0)) + pattern_bytes;
  EalFacts facts{.needed_mib = (bytes >> 20) + kDriverMib, .ram_mib = net::machine_ram_mib()};
  if (node_.memory != "no-huge") {
    facts.hugepages_free_mib = await_hugepages_mib(node_.memory_mib, kHugepagesWait, warn_);
  }
  const auto planned = plan_eal(node_, device(), cores_, facts, warn_);
  if (!planned) return planned.error();
  *plan = *planned;
  return {};
}

Status Port::find_device() {
  if (Status status = ethdev_.find(); !status) return status;
  if (workers_ > ethdev_.queues_max()) {
    workers_ = std::max(1U, ethdev_.queues_max());
    warn_(fmt::format("[dataplane] workers = {}: device {} has queues for {}: using that", node_.workers,
                      device().name, workers_));
  }
  return {};
}

QueueSetup Port::queue_setup(uint32_t worker) const {
  return {.port_id = ethdev_.id(),
          .queue_id = static_cast<uint16_t>(worker),
          .numa_node = eal_started_ ? rte_eth_dev_socket_id(ethdev_.id()) : -1,
          .frame_bytes_max = ethdev_.frame_bytes_max(),
          .rx_room_bytes = ethdev_.rx_room_bytes(),
          .rx_ring = node_.rx_ring,
          .tx_ring = node_.tx_ring,
          .extents = node_.extents_per_worker,
          .extent_bytes = node_.extent_bytes};
}

Status Port::allocate_pattern() {
  pattern_.data = static_cast<uint8_t*>(rte_malloc_socket(
      "pattern", node_.extent_bytes, static_cast<unsigned>(Queue::extent_alignment(node_.extent_bytes)),
      rte_eth_dev_socket_id(ethdev_.id())));
  if (pattern_.data == nullptr) {
    return Error{ErrorCode::kDevice, "no memory for an extent buffer: raise [dataplane] memory_mib"};
  }
  pattern_.bytes = node_.extent_bytes;
  return {};
}

Status Port::set_up_queues() {
  auto rx_ring = static_cast<uint16_t>(node_.rx_ring);
  auto tx_ring = static_cast<uint16_t>(node_.tx_ring);
  if (Status status = ethdev_.adjust_rings(&rx_ring, &tx_ring); !status) return status;
  const uint32_t wait = std::max<uint32_t>(device().kernel_ring_frames, rx_ring);
  receive_queue_ = {.datagrams = wait, .loses = !ethdev_.is_memif()};
  info_.queue_datagrams = rx_ring;  // more of one peer at a time would only make others wait
  for (uint32_t w = 0; w < workers_; ++w) {
    QueueSetup setup = queue_setup(w);
    setup.rx_ring = rx_ring;
    setup.tx_ring = tx_ring;
    ethdev_.complete(&setup);
    // What is enciphered is a copy. A device that reads it where it lies holds as many as its ring.
    if (!setup.driver_copies) setup.unowned_frames = std::bit_ceil(setup.tx_ring + 4 * net::kBurst) - 1;
    auto queue = std::make_unique<Queue>(setup);
    queue->share_pattern(pattern_);
    Status status = queue->allocate();
    if (status) status = ethdev_.add_queue(setup, *queue);
    if (!status) return status;
    if (ethdev_.is_memif() && !device().zero_copy) {
      const memif::QueueSetup in_place{.pair = w,
                                       .client = !device().memif.server,
                                       .buffer_bytes = device().frame_bytes_carried,
                                       .frame_bytes_max = setup.frame_bytes_max};
      memif_queues_.push_back(std::make_unique<memif::Queue>(in_place, *queue, queue->gate()));
    }
    queues_.push_back(std::move(queue));
  }
  return {};
}

Status Port::start_device() {
  if (ethdev_.is_memif()) {
    std::vector<memif::Gate*> gates;
    for (const auto& queue : queues_) gates.push_back(&queue->gate());
    std::vector<memif::LinkEnd> ends(1);
    ends[0] = {.socket = device().memif,
               .driver = std::make_unique<MemifDriver>(ethdev_.id()),
               .gates = std::move(gates),
               .attach = [this](const memif::Region* region) {
                 for (const auto& queue : memif_queues_) queue->attach(region);
               }};
    link_ = std::make_unique<memif::Link>(std::move(ends), Interrupts::instance());
    return link_->start();
  }
  if (Status status = ethdev_.start(); !status) return status;
  for (const auto& queue : queues_) {
    if (queue->has_rx_buffers()) continue;
    return Error{
        ErrorCode::kDevice,
        fmt::format("[port] device {}: its driver has taken all receive buffers of a queue, so that nothing "
                    "could be received: report it, with the text of `sluice doctor --report`",
                    device().name)};
  }
  const bool from_extents = ethdev_.may_send_from_extents(info_.tx_extents);
  if (!from_extents) {
    for (const auto& queue : queues_) queue->copy_payloads();
  }
  ethdev_.take_multicast();
  const FlowRules rules = steer_lanes(ethdev_.id(), {.udp_port_base = node_.udp_port_base,
                                                     .workers = workers_,
                                                     .ip4 = !node_.address4.empty(),
                                                     .ip6 = !node_.address6.empty()});
  if (rules.made > 0 && rules.made < rules.wanted) {
    warn_(
        fmt::format("device {}: room for {} of {} flow rules: workers hand on the frames of the other lanes",
                    device().name, rules.made, rules.wanted));
  }
  ethdev_.abilities(workers_, from_extents, rules).copy(info_.abilities, sizeof info_.abilities - 1);
  return {};
}

Status Port::describe() {
  const auto host = net::host_addresses(node_, ethdev_.mac().addr_bytes);
  if (!host) return host.error();
  neighbours_ = std::make_unique<net::Neighbours>(*host);
  device().name.copy(info_.device, sizeof info_.device - 1);
  memcpy(info_.ip4, host->ip4, sizeof info_.ip4);
  memcpy(info_.ip6, host->ip6, sizeof info_.ip6);
  info_.frame_bytes_max = ethdev_.frame_bytes_max();
  info_.chunk_bytes_max_ip4 = net::chunk_bytes_that_fit(ethdev_.frame_bytes_max(), net::kIp4Bytes);
  info_.chunk_bytes_max_ip6 = net::chunk_bytes_that_fit(ethdev_.frame_bytes_max(), net::kIp6Bytes);
  info_.workers = workers_;
  info_.extent_bytes_max = node_.extent_bytes;
  info_.rx_extents = node_.extents_per_worker / 2;
  info_.tx_extents = node_.extents_per_worker - info_.rx_extents;
  info_.udp_port_base = node_.udp_port_base;
  info_.udp_checksum_offload = ethdev_.checksum_offload() ? 1 : 0;
  info_.hugepages = hugepages_ ? 1 : 0;
  info_.rate_bps_max = node_.port_rate_bps;
  return {};
}

std::unique_ptr<net::DatagramQueue> Port::datagrams(uint32_t worker, board::CounterWriter counters) {
  if (memif_queues_.empty()) {
    return std::make_unique<net::FrameDatagramsOf<Queue>>(*queues_[worker], *neighbours_, info_, counters);
  }
  return std::make_unique<net::FrameDatagramsOf<memif::Queue>>(*memif_queues_[worker], *neighbours_, info_,
                                                               counters);
}

net::FrameQueue& Port::frames(uint32_t worker) {
  if (memif_queues_.empty()) return *queues_[worker];
  return *memif_queues_[worker];
}

int Port::run_worker(void* launched) {
  const auto* const self = static_cast<Launched*>(launched);
  self->port->body_(self->worker);
  self->port->queues_[self->worker]->gate().worker_ends();
  return 0;
}

Status Port::launch(std::function<void(uint32_t)> body) {
  join();
  body_ = std::move(body);
  launched_.resize(workers_);
  running_ = true;
  for (uint32_t w = 0; w < workers_; ++w) {
    launched_[w] = {this, w};
    queues_[w]->gate().worker_begins();
    const int code = rte_eal_remote_launch(&Port::run_worker, &launched_[w], lcore_of_worker(w));
    if (code != 0) {
      queues_[w]->gate().worker_ends();
      return ethdev_.failed("a worker does not start", code);
    }
  }
  return {};
}

void Port::join() {
  if (!running_) return;
  // DPDK's own wait spins, on a CPU that a worker may need to come to its end.
  for (uint32_t w = 0; w < workers_; ++w) {
    while (rte_eal_get_lcore_state(lcore_of_worker(w)) == RUNNING) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    rte_eal_wait_lcore(lcore_of_worker(w));
  }
  running_ = false;
}

void Port::maintain() {
  if (link_ == nullptr) return;
  for (const std::string& news : link_->take_news()) warn_(news);
}

board::Link Port::link() const {
  rte_eth_link link{};
  if (rte_eth_link_get_nowait(ethdev_.id(), &link) != 0) return board::Link::kUnknown;
  return link.link_status == RTE_ETH_LINK_UP ? board::Link::kUp : board::Link::kDown;
}

uint64_t Port::missed_frames() const {
  rte_eth_stats stats{};
  return rte_eth_stats_get(ethdev_.id(), &stats) == 0 ? stats.imissed : 0;
}

}  // namespace sluice::dpdk
