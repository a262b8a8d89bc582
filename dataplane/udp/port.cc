// Cold. See port.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/udp/port.h"

#include <fmt/format.h>
#include <net/if.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dataplane/base/unique_fd.h"
#include "dataplane/core/wire.h"
#include "dataplane/net/cpus.h"
#include "dataplane/net/frame.h"
#include "dataplane/net/ram.h"
#include "dataplane/udp/socket.h"

namespace sluice::udp {
namespace {

constexpr uint32_t kKi = 1024;

// Linux gives what was asked for twice: the other half is for its book-keeping.
uint32_t given(uint32_t bytes) { return bytes / 2; }

}  // namespace

Result<std::unique_ptr<net::Port>> Port::open(const config::Node& node, const Warn& warn) {
  std::unique_ptr<Port> port(new Port(node, warn));
  if (Status status = port->start(); !status) return status.error();
  return std::unique_ptr<net::Port>(std::move(port));
}

Port::~Port() { join(); }

Status Port::start() {
  const auto local = choose_addresses(node_, host_interfaces());
  if (!local) return local.error();
  describe(*local);
  if (std::max(info_.chunk_bytes_max_ip4, info_.chunk_bytes_max_ip6) < wire::kChunkBytesMin) {
    return Error{ErrorCode::kConfiguration,
                 fmt::format("[port] device udp: an MTU of {} holds no chunk of {} bytes: raise it",
                             local->mtu, wire::kChunkBytesMin)};
  }
  if (Status status = net::check_cores(node_.cores, net::possible_cpus()); !status) return status;
  // The extents, which are all that is taken of it, are less.
  if (Status status =
          net::check_ram(fmt::format("[dataplane] memory_mib = {}", node_.memory_mib), node_.memory_mib);
      !status)
    return status;
  const size_t worker_bytes = size_t{node_.extents_per_worker} * node_.extent_bytes;
  pattern_memory_ = Memory::map(node_.extent_bytes);
  bool enough = static_cast<bool>(pattern_memory_);
  for (uint32_t w = 0; enough && w < node_.workers; ++w) {
    extents_.push_back(Memory::map(worker_bytes));
    enough = static_cast<bool>(extents_.back());
  }
  if (!enough) {
    return Error{
        ErrorCode::kDevice,
        fmt::format("no memory for {} x {} MiB of extent buffers: lower [dataplane] extents_per_worker",
                    node_.workers, worker_bytes >> 20)};
  }
  pattern_ = {.data = pattern_memory_.data(), .bytes = node_.extent_bytes};
  interfaces_ = local->interfaces;
  asking_.reset(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  tell_socket_buffers();
  return {};
}

void Port::describe(const LocalAddresses& local) {
  config::kSocketDevice.copy(info_.device, sizeof info_.device - 1);
  std::memcpy(info_.ip4, local.ip4.bytes, sizeof info_.ip4);
  std::memcpy(info_.ip6, local.ip6.bytes, sizeof info_.ip6);
  info_.frame_bytes_max = local.mtu + static_cast<uint32_t>(net::kEthernetBytes);
  info_.chunk_bytes_max_ip4 = net::chunk_bytes_that_fit(info_.frame_bytes_max, net::kIp4Bytes);
  info_.chunk_bytes_max_ip6 = net::chunk_bytes_that_fit(info_.frame_bytes_max, net::kIp6Bytes);
  info_.workers = node_.workers;
  info_.extent_bytes_max = node_.extent_bytes;
  info_.rx_extents = node_.extents_per_worker / 2;
  info_.tx_extents = node_.extents_per_worker - info_.rx_extents;
  info_.udp_port_base = node_.udp_port_base;
  info_.rate_bps_max = node_.port_rate_bps;
}

// Datagrams that come while a worker does something else wait there; what finds no room is lost.
void Port::tell_socket_buffers() const {
  const UniqueFd socket(::socket(info_.ip4[10] != 0 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const int wanted = kSocketBufferBytes;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_RCVBUF, &wanted, sizeof wanted);
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDBUF, &wanted, sizeof wanted);
  const SocketBuffers got = socket_buffers(socket.get());
  if (given(std::min(got.rx_bytes, got.tx_bytes)) >= kSocketBufferBytes) return;
  warn_(fmt::format(
      "device udp: sockets get {} KiB to receive and {} KiB to send of the {} KiB asked for: at high "
      "rates more is lost; sysctl -w net.core.rmem_max={} net.core.wmem_max={}",
      given(got.rx_bytes) / kKi, given(got.tx_bytes) / kKi, kSocketBufferBytes / kKi, kSocketBufferBytes,
      kSocketBufferBytes));
}

std::unique_ptr<net::DatagramQueue> Port::datagrams(uint32_t worker, board::CounterWriter counters) {
  std::vector<net::Buffer> buffers;
  for (uint32_t i = 0; i < node_.extents_per_worker; ++i) {
    buffers.push_back(
        {.data = extents_[worker].data() + size_t{i} * node_.extent_bytes, .bytes = node_.extent_bytes});
  }
  auto queue = std::make_unique<Queue>(std::move(buffers), extents_[worker].span(), news_, counters);
  queues_.push_back(queue.get());
  return queue;
}

Status Port::launch(std::function<void(uint32_t)> body) {
  join();
  for (uint32_t w = 0; w < node_.workers; ++w) {
    threads_.emplace_back([body, w] { body(w); });
    const std::string name = fmt::format("sluice-worker{}", w);
    (void)pthread_setname_np(threads_.back().native_handle(), name.substr(0, 15).c_str());
    if (core_of(w) < 0) continue;
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(static_cast<unsigned>(core_of(w)), &cpus);
    const int error = pthread_setaffinity_np(threads_.back().native_handle(), sizeof cpus, &cpus);
    if (error != 0) {
      warn_(fmt::format("[dataplane] cores: worker {} cannot be pinned to CPU {}: {}: it runs where it likes",
                        w, core_of(w), std::strerror(error)));
    }
  }
  return {};
}

void Port::join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

board::Link Port::link() const {
  if (!asking_) return board::Link::kUnknown;
  const auto up = [this](const std::string& interface) {
    ifreq request{};
    interface.copy(request.ifr_name, IFNAMSIZ - 1);
    return ::ioctl(asking_.get(), SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_RUNNING) != 0;
  };
  return std::ranges::all_of(interfaces_, up) ? board::Link::kUp : board::Link::kDown;
}

void Port::maintain() {
  for (const std::string& text : news_.take()) warn_(text);
  for (Queue* const queue : queues_) {
    const int error = queue->take_refusal();
    if (error == 0) continue;
    warn_(fmt::format(
        "device udp: the kernel refuses datagrams: {}: see the routes, the firewall and the MTU of "
        "this host",
        std::strerror(error)));
  }
}

}  // namespace sluice::udp
