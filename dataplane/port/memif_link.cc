// Cold. See memif_link.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/port/memif_link.h"

#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <rte_ethdev.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <utility>

#include "dataplane/port/memif_socket.h"

namespace sluice::port {
namespace {

constexpr int kServerPollMs = 5;
constexpr int kRetryMs = 200;
constexpr int kHandshakeMs = 1000;

// Rings in the connected region, both directions; 0 when it cannot be told. The driver keeps the
// negotiated number to itself, and a queue without a ring of its own uses the first one's: two workers on
// one ring destroy it. The layout is memif's protocol: rings one after the other, each with a cookie, a
// head of 128 bytes and 2^n descriptors of 16.
uint32_t connected_rings() {
  constexpr uint32_t kCookie = 0x3E31F20;
  constexpr uint64_t kRingHeadBytes = 128;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/memfd:memif_region_0") == std::string::npos) continue;
    uint64_t begin = 0;
    uint64_t end = 0;
    if (sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64, &begin, &end) != 2) return 0;
    const auto cookie_at = [&](uint64_t offset) {
      uint32_t cookie = 0;
      if (offset + sizeof cookie > end - begin) return false;
      memcpy(&cookie, reinterpret_cast<const void*>(begin + offset), sizeof cookie);
      return cookie == kCookie;
    };
    for (uint32_t log2 = 1; log2 <= 14; ++log2) {
      const uint64_t ring_bytes = kRingHeadBytes + (16ULL << log2);
      if (!cookie_at(0) || !cookie_at(ring_bytes)) continue;
      uint32_t rings = 2;
      while (cookie_at(rings * ring_bytes)) ++rings;
      return rings;
    }
    return 0;
  }
  return 0;
}

}  // namespace

MemifLink::MemifLink(Device device, uint16_t port_id, std::vector<Gate*> gates)
    : device_(std::move(device)), port_id_(port_id), gates_(std::move(gates)) {}

Status MemifLink::start() {
  stop_event_.reset(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  // A server only begins to answer; a client is started when its server is there.
  if (device_.server && rte_eth_dev_start(port_id_) != 0) {
    return Error{ErrorCode::kDevice, fmt::format("[port] device {}: cannot start", device_.name)};
  }
  // The process's signals are for its main thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) sigdelset(&all, signal);  // privileges.cc
  pthread_sigmask(SIG_BLOCK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "sluice-link");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return {};
}

MemifLink::~MemifLink() {
  if (thread_.joinable()) {
    stopping_ = true;
    const uint64_t one = 1;
    (void)!write(stop_event_.get(), &one, sizeof one);
    thread_.join();
  }
  // From here on the driver frees what its handlers use: they must not run again.
  if (!online_) interrupts_.hold();
  rte_eth_dev_stop(port_id_);
}

void MemifLink::run() {
  while (!stopping_.load()) {
    if (online_) {
      wait_online();
    } else if (device_.server) {
      server_offline();
    } else {
      client_offline();
    }
  }
}

void MemifLink::server_offline() {
  if (!sleep_ms(kServerPollMs) && device_up()) try_online();
}

void MemifLink::client_offline() {
  if (!greeting_) greeting_ = connect_to_server(device_);
  if (!greeting_) {
    sleep_ms(kRetryMs);
    return;
  }
  const int answer = greeted(greeting_, kRetryMs);
  if (answer == 0) return;
  greeting_.reset();
  if (answer < 0) {
    sleep_ms(kRetryMs);
    return;
  }
  interrupts_.hold();
  rte_eth_dev_stop(port_id_);
  rte_eth_dev_start(port_id_);
  interrupts_.let_go();
  for (int waited_ms = 0; waited_ms < kHandshakeMs && !device_up(); ++waited_ms) {
    if (sleep_ms(1)) return;
  }
  if (device_up()) try_online();
  if (!online_) sleep_ms(kRetryMs);
}

void MemifLink::try_online() {
  interrupts_.hold();
  const uint32_t rings = device_up() ? connected_rings() : 0;
  const size_t wanted = 2 * gates_.size();
  if (!device_up() || (rings != 0 && rings != wanted)) {
    interrupts_.let_go();
    if (device_up() && !std::exchange(mismatch_said_, true)) {
      say(
          fmt::format("device {}: the peer's memif has {} queue pairs, ours {}: give both nodes the same "
                      "[dataplane] workers",
                      device_.name, rings / 2, wanted / 2));
    }
    sleep_ms(kRetryMs);
    return;
  }
  online_ = true;
  mismatch_said_ = false;
  up_ = true;
  for (Gate* gate : gates_) gate->open();
  say(fmt::format("device {}: link up", device_.name));
}

void MemifLink::wait_online() {
  std::vector<pollfd> polled{{.fd = stop_event_.get(), .events = POLLIN, .revents = 0}};
  for (const int fd : socket_descriptors(device_)) {
    polled.push_back({.fd = fd, .events = POLLIN | POLLRDHUP, .revents = 0});
  }
  if (poll(polled.data(), polled.size(), 1000) <= 0 || polled[0].revents != 0) return;
  close_gates(Gate::State::kPaused);
  interrupts_.handle_ready();
  if (!device_up()) {
    go_offline();
    return;
  }
  for (Gate* gate : gates_) gate->open();
  sleep_ms(10);  // whatever knocks there must not keep the workers from their work
}

void MemifLink::go_offline() {
  close_gates(Gate::State::kOffline);
  interrupts_.let_go();
  online_ = false;
  up_ = false;
  say(fmt::format("device {}: link down: waiting for the peer", device_.name));
}

bool MemifLink::device_up() const {
  rte_eth_link link{};
  return rte_eth_link_get_nowait(port_id_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

bool MemifLink::sleep_ms(int timeout_ms) {
  pollfd stop{.fd = stop_event_.get(), .events = POLLIN, .revents = 0};
  poll(&stop, 1, timeout_ms);
  return stopping_.load();
}

void MemifLink::close_gates(Gate::State state) {
  for (Gate* gate : gates_) gate->close(state);
}

void MemifLink::say(std::string news) {
  const std::lock_guard lock(news_mutex_);
  if (news_.size() < 16) news_.push_back(std::move(news));
}

std::vector<std::string> MemifLink::take_news() {
  const std::lock_guard lock(news_mutex_);
  return std::exchange(news_, {});
}

}  // namespace sluice::port
