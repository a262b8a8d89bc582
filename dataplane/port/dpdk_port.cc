// Cold. See dpdk_port.h; the order of starting is the order of the functions here.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/port/dpdk_port.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_malloc.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>

#include "dataplane/core/wire.h"
#include "dataplane/port/host_addresses.h"
#include "dataplane/port/memif_socket.h"

namespace sluice::port {
namespace {

constexpr uint32_t kEthernetHeaderBytes = 14;
constexpr uint32_t kUdpHeaderBytes = 8;
constexpr uint64_t kDriverMib = 24;  // rings, tables and fragments of DPDK's own heap
constexpr uint64_t kChecksumTx = RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
constexpr uint64_t kChecksumRx = RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;

uint32_t chunk_bytes_that_fit(uint32_t frame_bytes, uint32_t ip_header_bytes) {
  const uint32_t headers = kEthernetHeaderBytes + ip_header_bytes + kUdpHeaderBytes + wire::kHeaderBytes;
  if (frame_bytes <= headers) return 0;
  return std::min((frame_bytes - headers) & ~7U, wire::kChunkBytesMax);
}

// Some drivers only tell the frame, with its FCS; some only the MTU.
uint32_t largest_mtu(const rte_eth_dev_info& ethdev) {
  const bool told = ethdev.max_mtu != UINT16_MAX && ethdev.max_rx_pktlen > ethdev.max_mtu;
  const uint32_t overhead =
      told ? ethdev.max_rx_pktlen - ethdev.max_mtu : RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
  if (ethdev.max_rx_pktlen <= overhead) return ethdev.max_mtu;
  return std::min<uint32_t>(ethdev.max_mtu, ethdev.max_rx_pktlen - overhead);
}

Result<uint32_t> interface_mtu(const Device& device) {
  const UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  device.interface_name.copy(request.ifr_name, IFNAMSIZ - 1);
  if (ioctl(fd.get(), SIOCGIFMTU, &request) != 0) {
    return Error{ErrorCode::kDevice, fmt::format("[port] device {}: interface {}: {}: name one of `ip link`",
                                                 device.name, device.interface_name, strerror(errno))};
  }
  const auto mtu = static_cast<uint32_t>(request.ifr_mtu);
  if (ioctl(fd.get(), SIOCGIFFLAGS, &request) != 0 || (request.ifr_flags & IFF_UP) == 0) {
    return Error{ErrorCode::kDevice, fmt::format("[port] device {}: interface {} is down: ip link set {} up",
                                                 device.name, device.interface_name, device.interface_name)};
  }
  return mtu;
}

}  // namespace

DpdkPort::DpdkPort(const config::Node& node, Device device, Warn warn)
    : node_(node), device_(std::move(device)), warn_(std::move(warn)) {}

DpdkPort::~DpdkPort() {
  join();
  const bool interrupts_held = link_ != nullptr;
  link_.reset();
  if (configured_) {
    if (device_.kind != DeviceKind::kMemif) rte_eth_dev_stop(port_id_);
    rte_eth_dev_close(port_id_);
  }
  queues_.clear();
  rte_free(pattern_.data);
  // Cleaning up waits for the interrupt thread, which MemifLink holds for good. There is nothing to clean:
  // all memory is this process's own.
  if (eal_started_ && !interrupts_held) stop_eal();
}

Error DpdkPort::failed(const char* what, int code) const {
  return {ErrorCode::kDevice,
          fmt::format("[port] device {}: {}: {}{}", device_.name, what, rte_strerror(-code), dpdk_reason())};
}

Status DpdkPort::start() {
  // memif's driver writes to its control socket without MSG_NOSIGNAL.
  signal(SIGPIPE, SIG_IGN);
  Status status = check_frame_size();
  if (status && device_.kind == DeviceKind::kMemif) status = prepare_socket(device_);
  EalPlan plan;
  if (status) status = choose_memory_and_cores(&plan);
  if (status) status = start_eal(plan);
  if (!status) return status;
  eal_started_ = true;
  hugepages_ = plan.hugepages;
  if (device_.zero_copy) {
    warn_(
        fmt::format("device {}: zero-copy=yes maps this process's memory into the peer, and buffers are lost "
                    "when the peer restarts: for trusted benchmarks only",
                    device_.name));
  }
  status = find_device();
  if (status) status = configure();
  if (status) status = allocate_pattern();
  if (status) status = set_up_queues();
  if (status) status = describe();
  if (status) status = start_device();
  return status;
}

// What fits, as far as it is known before the device is open.
Status DpdkPort::check_frame_size() {
  frame_bytes_max_ = node_.mtu + kEthernetHeaderBytes;
  if (device_.kind == DeviceKind::kAfPacket) {
    const auto mtu = interface_mtu(device_);
    if (!mtu) return mtu.error();
    if (*mtu < node_.mtu) {
      warn_(fmt::format("interface {} has MTU {}, [port] mtu = {}: using the smaller; ip link set {} mtu {}",
                        device_.interface_name, *mtu, node_.mtu, device_.interface_name, node_.mtu));
      frame_bytes_max_ = *mtu + kEthernetHeaderBytes;
    }
  }
  if (device_.frame_bytes_carried != 0) {
    frame_bytes_max_ = std::min(frame_bytes_max_, device_.frame_bytes_carried);
  }
  if (chunk_bytes_that_fit(frame_bytes_max_, 40) < wire::kChunkBytesMin) {
    return Error{
        ErrorCode::kConfiguration,
        fmt::format("[port] device {}: frames of {} bytes hold no chunk of {}: raise mtu or the device's "
                    "buffer size",
                    device_.name, frame_bytes_max_, wire::kChunkBytesMin)};
  }
  return {};
}

Status DpdkPort::choose_memory_and_cores(EalPlan* plan) {
  const auto units = processing_units();
  if (!units) return units.error();
  const auto cores = choose_cores(
      *units, {.workers = node_.workers, .cores = node_.cores, .numa_node = device_numa_node(device_)});
  if (!cores) return cores.error();
  cores_ = *cores;
  if (cores_.shared) {
    warn_(
        fmt::format("{} workers share the cores of this machine, which slows them: lower [dataplane] workers",
                    node_.workers));
  }
  const uint64_t pattern_bytes = node_.extent_bytes + DpdkQueue::extent_alignment(node_.extent_bytes);
  const uint64_t bytes = node_.workers * DpdkQueue::memory_bytes(queue_setup(0)) + pattern_bytes;
  const EalFacts facts{.hugepages_free_mib = hugepages_free_mib(), .needed_mib = (bytes >> 20) + kDriverMib};
  const auto planned = plan_eal(node_, device_, cores_, facts, warn_);
  if (!planned) return planned.error();
  *plan = *planned;
  return {};
}

Status DpdkPort::find_device() {
  if (rte_eth_dev_get_port_by_name(device_.name.c_str(), &port_id_) != 0) {
    uint16_t found = rte_eth_find_next(0);
    if (found >= RTE_MAX_ETHPORTS) {
      return Error{ErrorCode::kDevice,
                   fmt::format("[port] device {}: DPDK finds no such device{}: check its name, its driver "
                               "(dpdk-devbind.py --status) and the rights of this process",
                               device_.name, dpdk_reason())};
    }
    port_id_ = found;
  }
  const int code = rte_eth_dev_info_get(port_id_, &ethdev_);
  if (code != 0) return failed("cannot be asked", code);
  if (node_.workers > std::min(ethdev_.max_rx_queues, ethdev_.max_tx_queues)) {
    return Error{
        ErrorCode::kConfiguration,
        fmt::format("[dataplane] workers = {}: device {} has {} queue pairs: lower it", node_.workers,
                    device_.name, std::min(ethdev_.max_rx_queues, ethdev_.max_tx_queues))};
  }
  rte_eth_macaddr_get(port_id_, &mac_);
  return {};
}

QueueSetup DpdkPort::queue_setup(uint32_t worker) const {
  return {.port_id = port_id_,
          .queue_id = static_cast<uint16_t>(worker),
          .numa_node = eal_started_ ? rte_eth_dev_socket_id(port_id_) : -1,
          .frame_bytes_max = frame_bytes_max_,
          .rx_room_bytes = std::max({frame_bytes_max_, device_.data_room_bytes_min, 2048U}),
          .rx_ring = node_.rx_ring,
          .tx_ring = node_.tx_ring,
          .extents = node_.extents_per_worker,
          .extent_bytes = node_.extent_bytes};
}

Status DpdkPort::configure() {
  // memif and af_packet report 1518 bytes and carry what their buffers hold: their MTU stays as it is.
  const bool sized_by_arguments = device_.frame_bytes_carried != 0;
  if (!sized_by_arguments && node_.mtu > largest_mtu(ethdev_)) {
    return Error{ErrorCode::kConfiguration,
                 fmt::format("[port] mtu = {}: device {} carries at most {}: lower it", node_.mtu,
                             device_.name, largest_mtu(ethdev_))};
  }
  rte_eth_conf conf{};
  if (!sized_by_arguments) conf.rxmode.mtu = node_.mtu;
  conf.txmode.offloads = ethdev_.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  checksum_offload_ = (ethdev_.tx_offload_capa & kChecksumTx) == kChecksumTx &&
                      (ethdev_.rx_offload_capa & kChecksumRx) == kChecksumRx;
  if (checksum_offload_) {
    conf.txmode.offloads |= kChecksumTx;
    conf.rxmode.offloads |= kChecksumRx;
  }
  if (node_.workers > 1 && ethdev_.flow_type_rss_offloads != 0) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf = ethdev_.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
  }
  const auto queues = static_cast<uint16_t>(node_.workers);
  int code = rte_eth_dev_configure(port_id_, queues, queues, &conf);
  if (code != 0) return failed("cannot be configured", code);
  configured_ = true;
  if (!sized_by_arguments) {
    code = rte_eth_dev_set_mtu(port_id_, static_cast<uint16_t>(node_.mtu));
    if (code != 0 && code != -ENOTSUP) return failed("refuses the configured mtu", code);
    uint16_t mtu = 0;
    if (rte_eth_dev_get_mtu(port_id_, &mtu) == 0) {
      frame_bytes_max_ = std::min(frame_bytes_max_, mtu + kEthernetHeaderBytes);
    }
  }
  return {};
}

Status DpdkPort::allocate_pattern() {
  pattern_.data = static_cast<uint8_t*>(rte_malloc_socket(
      "pattern", node_.extent_bytes, static_cast<unsigned>(DpdkQueue::extent_alignment(node_.extent_bytes)),
      rte_eth_dev_socket_id(port_id_)));
  if (pattern_.data == nullptr) {
    return Error{ErrorCode::kDevice, "no memory for an extent buffer: raise [dataplane] memory_mib"};
  }
  pattern_.bytes = node_.extent_bytes;
  return {};
}

Status DpdkPort::set_up_queues() {
  uint16_t rx_ring = static_cast<uint16_t>(node_.rx_ring);
  uint16_t tx_ring = static_cast<uint16_t>(node_.tx_ring);
  int code = rte_eth_dev_adjust_nb_rx_tx_desc(port_id_, &rx_ring, &tx_ring);
  if (code != 0) return failed("refuses the sizes of its rings", code);
  for (uint32_t w = 0; w < node_.workers; ++w) {
    QueueSetup setup = queue_setup(w);
    setup.rx_ring = rx_ring;
    setup.tx_ring = tx_ring;
    setup.chains = (ethdev_.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
    setup.reclaims_by_burst = device_.kind == DeviceKind::kMemif;
    setup.reclaims = !setup.reclaims_by_burst && device_.kind != DeviceKind::kAfPacket;
    auto queue = std::make_unique<DpdkQueue>(setup);
    queue->share_pattern(pattern_);
    const Status status = queue->allocate();
    if (!status) return status;
    const auto socket = static_cast<unsigned>(setup.numa_node);
    code = rte_eth_rx_queue_setup(port_id_, setup.queue_id, rx_ring, socket, nullptr, queue->rx_pool());
    if (code != 0) return failed("cannot set up a receive queue", code);
    rte_eth_txconf txconf = ethdev_.default_txconf;
    txconf.offloads &= ~RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;  // it would ignore the extents' counts
    code = rte_eth_tx_queue_setup(port_id_, setup.queue_id, tx_ring, socket, &txconf);
    if (code != 0) return failed("cannot set up a transmit queue", code);
    if (device_.kind == DeviceKind::kMemif) queue->gate().close(Gate::State::kOffline);
    queues_.push_back(std::move(queue));
  }
  return {};
}

Status DpdkPort::start_device() {
  if (device_.kind == DeviceKind::kMemif) {
    std::vector<Gate*> gates;
    for (const auto& queue : queues_) gates.push_back(&queue->gate());
    link_ = std::make_unique<MemifLink>(device_, port_id_, std::move(gates));
    return link_->start();
  }
  const int code = rte_eth_dev_start(port_id_);
  if (code != 0) return failed("cannot start", code);
  accept_multicast();
  return {};
}

// Neighbour solicitations come to multicast addresses. Where a device cannot be told, it takes all.
void DpdkPort::accept_multicast() {
  if (device_.kind != DeviceKind::kAfPacket) {
    if (rte_eth_allmulticast_enable(port_id_) != 0) rte_eth_promiscuous_enable(port_id_);
    return;
  }
  multicast_.reset(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));  // protocol 0: receives nothing itself
  packet_mreq request{};
  request.mr_ifindex = static_cast<int>(if_nametoindex(device_.interface_name.c_str()));
  request.mr_type = PACKET_MR_ALLMULTI;
  setsockopt(multicast_.get(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof request);
}

Status DpdkPort::describe() {
  const auto host = host_addresses(node_, mac_.addr_bytes);
  if (!host) return host.error();
  device_.name.copy(info_.device, sizeof info_.device - 1);
  memcpy(info_.ip4, host->ip4, sizeof info_.ip4);
  memcpy(info_.ip6, host->ip6, sizeof info_.ip6);
  info_.frame_bytes_max = frame_bytes_max_;
  info_.chunk_bytes_max_ip4 = chunk_bytes_that_fit(frame_bytes_max_, 20);
  info_.chunk_bytes_max_ip6 = chunk_bytes_that_fit(frame_bytes_max_, 40);
  info_.workers = node_.workers;
  info_.extent_bytes_max = node_.extent_bytes;
  info_.rx_extents = node_.extents_per_worker / 2;
  info_.tx_extents = node_.extents_per_worker - info_.rx_extents;
  info_.udp_port_base = node_.udp_port_base;
  info_.udp_checksum_offload = checksum_offload_ ? 1 : 0;
  info_.hugepages = hugepages_ ? 1 : 0;
  info_.rate_bps_max = node_.port_rate_bps;
  return {};
}

int DpdkPort::run_worker(void* launched) {
  const auto* const self = static_cast<Launched*>(launched);
  self->port->body_(self->worker);
  self->port->queues_[self->worker]->gate().worker_ends();
  return 0;
}

Status DpdkPort::launch(std::function<void(uint32_t)> body) {
  join();
  body_ = std::move(body);
  launched_.resize(node_.workers);
  running_ = true;
  for (uint32_t w = 0; w < node_.workers; ++w) {
    launched_[w] = {this, w};
    queues_[w]->gate().worker_begins();
    const int code = rte_eal_remote_launch(&DpdkPort::run_worker, &launched_[w], lcore_of_worker(w));
    if (code != 0) {
      queues_[w]->gate().worker_ends();
      return failed("a worker does not start", code);
    }
  }
  return {};
}

void DpdkPort::join() {
  if (!running_) return;
  // DPDK's own wait spins, on a CPU that a worker may need to come to its end.
  for (uint32_t w = 0; w < node_.workers; ++w) {
    while (rte_eal_get_lcore_state(lcore_of_worker(w)) == RUNNING) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    rte_eal_wait_lcore(lcore_of_worker(w));
  }
  running_ = false;
}

void DpdkPort::maintain() {
  if (link_ == nullptr) return;
  for (const std::string& news : link_->take_news()) warn_(news);
}

Result<std::unique_ptr<Port>> Port::open(const config::Node& node,
                                         const std::function<void(const std::string&)>& warn) {
  auto device = parse_device(node);
  if (!device) return device.error();
  if (node.workers == 0 || node.workers > board::kWorkersMax) {
    return Error{ErrorCode::kConfiguration,
                 fmt::format("[dataplane] workers = {}: expected 1 to {}", node.workers, board::kWorkersMax)};
  }
  const uint8_t no_mac[6] = {};
  const auto host = host_addresses(node, no_mac);  // wrong addresses are told before anything starts
  if (!host) return host.error();
  auto port = std::make_unique<DpdkPort>(node, std::move(*device), warn);
  const Status status = port->start();
  if (!status) return status.error();
  return std::unique_ptr<Port>(std::move(port));
}

}  // namespace sluice::port
