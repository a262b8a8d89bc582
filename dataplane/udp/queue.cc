// SPDX-License-Identifier: Apache-2.0
#include "dataplane/udp/queue.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "dataplane/core/wire.h"
#include "dataplane/net/frame.h"
#include "dataplane/udp/socket.h"

namespace sluice::udp {
namespace {

using board::Counter;

constexpr size_t kNewsMax = 64;
constexpr uint64_t kLookNs = 100'000'000;
// So much may leave at once: few system calls, and bursts that switches and sockets take.
constexpr uint64_t kBatchNs = 250'000;

std::string text_of(const net::Endpoint& endpoint) {
  char text[INET6_ADDRSTRLEN] = {};
  const bool ip4 = endpoint.address.is_ip4();
  inet_ntop(ip4 ? AF_INET : AF_INET6, endpoint.address.bytes + (ip4 ? 12 : 0), text, sizeof text);
  return ip4 ? fmt::format("{}:{}", text, endpoint.port) : fmt::format("[{}]:{}", text, endpoint.port);
}

std::string_view remedy_of(int error) {
  switch (error) {
    case EADDRINUSE:
      return "another program has this port: choose another [port] udp_port_base";
    case EADDRNOTAVAIL:
      return "this host has lost the address: set [port] address4 or address6, and start again";
    case ENETUNREACH:
    case EHOSTUNREACH:
      return "this host has no route there: see 'ip route get'";
    case EPERM:
    case EACCES:
      return "a firewall or policy of this host forbids it";
    default:
      return "the flow is not opened";
  }
}

}  // namespace

void News::say(std::string text) {
  const std::lock_guard lock(mutex_);
  if (texts_.size() < kNewsMax) texts_.push_back(std::move(text));
}

std::vector<std::string> News::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(texts_, {});
}

SocketPath::~SocketPath() { queue.forget(*this); }

Queue::Queue(std::vector<net::Buffer> buffers, std::span<uint8_t> memory, News& news,
             board::CounterWriter counters)
    : buffers_(std::move(buffers)),
      memory_(memory),
      news_(news),
      counters_(counters),
      sender_(counters),
      receiver_(counters) {
  batch_ns_ = kBatchNs;
}

int Queue::open_path(const net::PathConfig& config, std::unique_ptr<net::Path>* path) {
  if (config.header_bytes > kHeaderBytesMax) return EINVAL;
  UniqueFd socket;
  int error = open_socket(config, &socket);
  if (error == 0) {
    auto opened = std::make_unique<SocketPath>(*this, config, std::move(socket));
    opened->joins = !config.no_udp_checksum;  // the kernel cuts no piece without a checksum
    paths_.push_back(opened.get());
    error = receiver_.watch(*opened);
    if (error == 0) *path = std::move(opened);
  }
  if (error != 0) {
    const std::string peer = config.learns_peer ? "a peer that is to call" : text_of(config.peer);
    news_.say(fmt::format("device udp: {} to {}: {}: {}", text_of(config.local), peer, std::strerror(error),
                          remedy_of(error)));
  }
  return error;
}

void Queue::forget(SocketPath& path) {
  sender_.forget(path);
  receiver_.forget(path);
  std::erase(paths_, &path);
}

// There is always a way to a peer that is known, but for a while after the kernel found none.
bool Queue::resolve(net::Path& path, uint64_t now_ns) {
  const auto& way = static_cast<SocketPath&>(path);
  return way.knows_peer() && now_ns >= way.pause_end_ns;
}

void Queue::moved(net::Path& path) {
  auto& way = static_cast<SocketPath&>(path);
  way.to = socket_address(way.config().peer);
  way.pause_end_ns = 0;
}

net::TxDatagram Queue::begin(net::Path& path, std::span<const uint8_t> payload, const net::Buffer* owner,
                             uint64_t /*send_at_ns*/) {
  const net::TxDatagram datagram = sender_.begin(static_cast<SocketPath&>(path), payload, owner);
  if (datagram.header != nullptr) {
    ++tx_frames_;
    const bool ip4 = path.config().local.address.is_ip4();
    tx_bytes_ += net::kEthernetBytes + (ip4 ? net::kIp4Bytes : net::kIp6Bytes) + net::kUdpBytes +
                 path.config().header_bytes + payload.size();
  }
  return datagram;
}

void Queue::keep_time(uint64_t now_ns) {
  now_ns_ = now_ns;
  if (tx_frames_ > 0) {
    counters_.add(Counter::tx_frames, std::exchange(tx_frames_, 0));
    counters_.add(Counter::tx_bytes, std::exchange(tx_bytes_, 0));
  }
  if (now_ns < next_look_ns_) return;
  next_look_ns_ = now_ns + kLookNs;
  count_drops();
}

// The kernel counts pieces, each of which may hold several datagrams.
void Queue::count_drops() {
  uint64_t pieces = 0;
  for (SocketPath* const path : paths_) {
    const uint32_t drops = socket_drops(path->socket.get());
    if (drops == path->drops) continue;
    pieces += drops - path->drops;
    path->drops = drops;
  }
  if (pieces > 0) counters_.add(Counter::rx_missed, receiver_.datagrams_in(pieces));
}

}  // namespace sluice::udp
