// Cold. See ethdev.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/dpdk/ethdev.h"

#include <fmt/format.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <rte_mbuf_dyn.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace sluice::dpdk {
namespace {

constexpr uint32_t kEthernetHeaderBytes = 14;
constexpr uint32_t kAfXdpRoomBytes = 3584;  // a buffer with all that surrounds it lies in a page
constexpr uint32_t kAfXdpDescriptors =
    2048;  // of each ring of that driver, whatever it is asked for (DPDK 22.11)
constexpr uint64_t kChecksumTx = RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
constexpr uint64_t kSendTimes = RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP;
constexpr uint64_t kChecksumRx = RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_IPV4_CKSUM;

// Some drivers only tell the frame, with its FCS; some only the MTU.
uint32_t largest_mtu(const rte_eth_dev_info& ethdev) {
  const bool told = ethdev.max_mtu != UINT16_MAX && ethdev.max_rx_pktlen > ethdev.max_mtu;
  const uint32_t tag = ethdev.max_rx_pktlen == RTE_ETHER_MAX_VLAN_FRAME_LEN ? RTE_VLAN_HLEN : 0;
  const uint32_t overhead =
      told ? ethdev.max_rx_pktlen - ethdev.max_mtu : RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN + tag;
  if (ethdev.max_rx_pktlen <= overhead) return ethdev.max_mtu;
  return std::min<uint32_t>(ethdev.max_mtu, ethdev.max_rx_pktlen - overhead);
}

// Most drivers fill one ring of the size that they were asked for.
uint32_t rx_kept(std::string_view driver, uint32_t rx_ring) {
  if (driver == "net_vmxnet3") return 2 * rx_ring;  // two rings for each queue
  if (driver == "net_af_xdp")
    return 2 * kAfXdpDescriptors;  // what it fills, and what it copies frames into to send them
  return rx_ring;
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

Error Ethdev::failed(const char* what, int code) const {
  return {ErrorCode::kDevice,
          fmt::format("[port] device {}: {}: {}{}", device_.name, what, rte_strerror(-code), dpdk_reason())};
}

Status Ethdev::size_frames(uint32_t mtu, const Warn& warn) {
  frame_bytes_max_ = mtu + kEthernetHeaderBytes;
  if (device_.kind == DeviceKind::kAfPacket) {
    const auto there = interface_mtu(device_);
    if (!there) return there.error();
    if (*there < mtu) {
      warn(fmt::format("interface {} has MTU {}, [port] mtu = {}: using the smaller; ip link set {} mtu {}",
                       device_.interface_name, *there, mtu, device_.interface_name, mtu));
      frame_bytes_max_ = *there + kEthernetHeaderBytes;
    }
  }
  if (device_.frame_bytes_carried != 0) {
    frame_bytes_max_ = std::min(frame_bytes_max_, device_.frame_bytes_carried);
  }
  return {};
}

// A driver may name its device in another way than its argument did: then it is the one that is left.
Status Ethdev::find(std::span<const uint16_t> taken) {
  if (rte_eth_dev_get_port_by_name(device_.name.c_str(), &port_id_) != 0) {
    port_id_ = RTE_MAX_ETHPORTS;
    uint16_t each = 0;
    RTE_ETH_FOREACH_DEV(each) {
      if (std::ranges::find(taken, each) == taken.end()) {
        port_id_ = each;
        break;
      }
    }
    if (port_id_ == RTE_MAX_ETHPORTS) {
      return Error{ErrorCode::kDevice,
                   fmt::format("[port] device {}: DPDK finds no such device{}: check its name, its driver "
                               "(dpdk-devbind.py --status) and the rights of this process",
                               device_.name, dpdk_reason())};
    }
  }
  const int code = rte_eth_dev_info_get(port_id_, &info_);
  if (code != 0) return failed("cannot be asked", code);
  rte_eth_macaddr_get(port_id_, &mac_);
  return {};
}

Status Ethdev::configure(uint32_t queues, uint32_t mtu, const Warn& warn) {
  // memif and af_packet report 1518 bytes and carry what their buffers hold: their MTU stays as it is.
  const bool sized_by_arguments = device_.frame_bytes_carried != 0;
  if (!sized_by_arguments && mtu > largest_mtu(info_)) {
    warn(fmt::format("[port] mtu = {}: device {} carries at most {}: using that", mtu, device_.name,
                     largest_mtu(info_)));
    mtu = largest_mtu(info_);
    frame_bytes_max_ = mtu + kEthernetHeaderBytes;
  }
  rte_eth_conf conf{};
  if (!sized_by_arguments) conf.rxmode.mtu = mtu;
  conf.txmode.offloads = info_.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  checksum_offload_ = (info_.tx_offload_capa & kChecksumTx) == kChecksumTx &&
                      (info_.rx_offload_capa & kChecksumRx) == kChecksumRx;
  if (checksum_offload_) {
    conf.txmode.offloads |= kChecksumTx;
    conf.rxmode.offloads |= kChecksumRx;
  }
  // mlx5 offers it if its device arguments have tx_pp. The clock that another driver lets us read is not
  // always the one that its device sends by.
  const bool mlx5 = std::string_view(info_.driver_name).starts_with("mlx5");
  if (mlx5 && (info_.tx_offload_capa & kSendTimes) != 0 &&
      rte_mbuf_dyn_tx_timestamp_register(&send_time_at_, &send_time_flag_) == 0) {
    conf.txmode.offloads |= kSendTimes;
  }
  if (queues > 1 && info_.flow_type_rss_offloads != 0) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf = info_.flow_type_rss_offloads & (RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP);
    spreads_ = true;
  }
  const auto count = static_cast<uint16_t>(queues);
  int code = rte_eth_dev_configure(port_id_, count, count, &conf);
  if (code != 0) return failed("cannot be configured", code);
  configured_ = true;
  if (sized_by_arguments) return {};
  code = rte_eth_dev_set_mtu(port_id_, static_cast<uint16_t>(mtu));
  if (code != 0 && code != -ENOTSUP) return failed("refuses the configured mtu", code);
  uint16_t set = 0;
  if (rte_eth_dev_get_mtu(port_id_, &set) == 0) {
    frame_bytes_max_ = std::min(frame_bytes_max_, set + kEthernetHeaderBytes);
  }
  return {};
}

Status Ethdev::adjust_rings(uint16_t* rx_ring, uint16_t* tx_ring) const {
  const int code = rte_eth_dev_adjust_nb_rx_tx_desc(port_id_, rx_ring, tx_ring);
  return code == 0 ? Status() : failed("refuses the sizes of its rings", code);
}

uint32_t Ethdev::rx_room_bytes() const {
  if (device_.kind == DeviceKind::kAfXdp) return kAfXdpRoomBytes;
  const bool sized_by_arguments = device_.frame_bytes_carried != 0;
  const uint32_t room = sized_by_arguments ? frame_bytes_max_ : room_for_driver(frame_bytes_max_);
  return std::max({room, device_.data_room_bytes_min, info_.min_rx_bufsize, 2048U});
}

void Ethdev::complete(QueueSetup* setup) const {
  setup->rx_kept = rx_kept(info_.driver_name, setup->rx_ring);
  setup->chains = (info_.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
  setup->driver_copies = sends_any_memory();
  setup->reclaims_by_burst = is_memif();
  setup->send_time_at = send_time_at_;
  setup->send_time_flag = send_time_flag_;
  setup->reclaims = !is_memif() && device_.kind != DeviceKind::kAfPacket;
}

// Without chains a frame is a copy that we make; memif copies into the ring that it shares with its peer.
bool Ethdev::sends_any_memory() const {
  return (info_.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) == 0 || (is_memif() && !device_.zero_copy);
}

Status Ethdev::add_queue(const QueueSetup& setup, Queue& queue) {
  const auto socket = static_cast<unsigned>(setup.numa_node);
  int code = rte_eth_rx_queue_setup(port_id_, setup.queue_id, static_cast<uint16_t>(setup.rx_ring), socket,
                                    nullptr, queue.rx_pool());
  if (code != 0) return failed("cannot set up a receive queue", code);
  rte_eth_txconf txconf = info_.default_txconf;
  txconf.offloads &= ~RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;  // it would ignore the extents' counts
  code =
      rte_eth_tx_queue_setup(port_id_, setup.queue_id, static_cast<uint16_t>(setup.tx_ring), socket, &txconf);
  if (code != 0) return failed("cannot set up a transmit queue", code);
  if (is_memif()) queue.gate().close(memif::Gate::State::kOffline);
  return {};
}

Status Ethdev::start() {
  const int code = rte_eth_dev_start(port_id_);
  if (code != 0) return failed("cannot start", code);
  // Some drivers only know whether they can once they have chosen how they send.
  reclaims_when_asked_ = rte_eth_tx_done_cleanup(port_id_, 0, 0) >= 0;
  return {};
}

// Drivers of Intel's learn of what was sent by so many descriptors at a time, two for a frame of ours. The
// last ones stay with them until more is sent.
bool Ethdev::may_send_from_extents(uint32_t extents) const {
  return reclaims_when_asked_ && extents >= std::max<uint32_t>(info_.default_txconf.tx_rs_thresh, 2);
}

std::string Ethdev::abilities(uint32_t queues, bool from_extents, const FlowRules& rules) const {
  char firmware[64] = {};
  const bool told = rte_eth_dev_fw_version_get(port_id_, firmware, sizeof firmware) == 0 && firmware[0] != 0;
  std::string spread = "one queue";
  if (queues > 1) {
    spread = fmt::format("{} queues, frames spread by {}", queues,
                         rules.made > 0 ? fmt::format("{} of {} flow rules", rules.made, rules.wanted)
                         : spreads_     ? "a hash (RSS)"
                                        : "workers (all come by the first)");
  }
  return fmt::format(
      "driver {}{}{}, {}, UDP checksums by the {}, payloads {}{}", info_.driver_name,
      told ? ", firmware " : "", told ? firmware : "", spread, checksum_offload_ ? "device" : "worker",
      from_extents ? "sent from where they lie" : "copied", send_time_at_ >= 0 ? ", sends at times" : "");
}

void Ethdev::join_group(int type) {
  membership_.reset(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));  // protocol 0: receives nothing itself
  packet_mreq request{};
  request.mr_ifindex = static_cast<int>(if_nametoindex(device_.interface_name.c_str()));
  request.mr_type = static_cast<unsigned short>(type);
  setsockopt(membership_.get(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request, sizeof request);
}

// Neighbour solicitations come to multicast addresses. Where a device cannot be told, it takes all.
void Ethdev::take_multicast() {
  if (device_.kind == DeviceKind::kAfPacket) {
    join_group(PACKET_MR_ALLMULTI);
  } else if (rte_eth_allmulticast_enable(port_id_) != 0) {
    rte_eth_promiscuous_enable(port_id_);
  }
}

void Ethdev::take_everything() {
  if (device_.kind == DeviceKind::kAfPacket) {
    join_group(PACKET_MR_PROMISC);
  } else {
    rte_eth_promiscuous_enable(port_id_);
  }
}

void Ethdev::close() {
  if (!configured_) return;
  configured_ = false;
  // Its program stays at the interface, and lets all frames pass: to take it off wants calls of bpf, which a
  // dataplane may not make once it has started.
  if (device_.kind == DeviceKind::kAfXdp) return;
  if (!is_memif()) rte_eth_dev_stop(port_id_);
  rte_eth_dev_close(port_id_);
}

}  // namespace sluice::dpdk
