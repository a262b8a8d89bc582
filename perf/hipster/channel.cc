// sluice-channel: HIPSTER's transport channel between two network interfaces (docs/SOURCES.md, section 3).
//
// A second opinion: it shares no code with sluice-wire. A UDP datagram with L bytes of payload is dropped
// with probability 1 - exp(-L / l0), and else arrives after an exponential time of mean delay / ln(L),
// whatever came before or after it. Other frames pass at once. One thread; ends with SIGTERM or SIGINT.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fmt/format.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "dataplane/base/arguments/arguments.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFrameBytesMax = 10'000;
constexpr int kBurst = 64;
constexpr int kSocketBufferBytes = 64 << 20;
constexpr std::chrono::milliseconds kIdle{10};
constexpr size_t kEthernetBytes = 14;
constexpr uint8_t kUdp = 17;

volatile std::sig_atomic_t stopping = 0;

[[noreturn]] void fail(const std::string& what) {
  fmt::print(stderr, "sluice-channel: {}: {}\n", what, std::strerror(errno));
  std::exit(1);
}

// Everything that comes in at an interface, and a way out of it.
int open_port(const std::string& name) {
  const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_ALL));
  if (fd < 0) fail("packet socket");
  const int one = 1;
  if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof one) != 0)
    fail("PACKET_IGNORE_OUTGOING");
  for (const int option : {SO_RCVBUFFORCE, SO_SNDBUFFORCE}) {
    if (setsockopt(fd, SOL_SOCKET, option, &kSocketBufferBytes, sizeof kSocketBufferBytes) != 0) fail(name);
  }
  sockaddr_ll address{};
  address.sll_family = AF_PACKET;
  address.sll_protocol = htons(ETH_P_ALL);
  address.sll_ifindex = static_cast<int>(if_nametoindex(name.c_str()));
  if (address.sll_ifindex == 0) fail(name);
  packet_mreq all{};
  all.mr_ifindex = address.sll_ifindex;
  all.mr_type = PACKET_MR_PROMISC;
  if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) != 0) fail(name);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail(name);
  return fd;
}

// Payload of a UDP datagram over IPv4; 0 of anything else.
size_t udp_payload(const uint8_t* frame, size_t size) {
  if (size < kEthernetBytes + 28 || frame[12] != 0x08 || frame[13] != 0) return 0;
  const uint8_t* ip = frame + kEthernetBytes;
  const size_t ip_bytes = 4U * (ip[0] & 15U);
  if (ip[9] != kUdp || size < kEthernetBytes + ip_bytes + 8) return 0;
  const size_t udp_bytes = (size_t{ip[ip_bytes + 4]} << 8U) + ip[ip_bytes + 5];
  return udp_bytes > 8 ? udp_bytes - 8 : 0;
}

struct Waiting {
  Clock::time_point due;
  uint64_t number;
  int to;
  std::vector<uint8_t> bytes;
  bool operator<(const Waiting& other) const {  // the top of the queue is due first
    return due != other.due ? due > other.due : number > other.number;
  }
};

class Channel {
 public:
  Channel(double l0_bytes, double delay_s, uint64_t seed)
      : l0_bytes_(l0_bytes), delay_s_(delay_s), random_(seed) {}

  void take(const uint8_t* frame, size_t size, int to, Clock::time_point now) {
    ++frames_;
    const auto length = static_cast<double>(udp_payload(frame, size));
    double wait_s = 0;
    if (length > 0) {
      if (unit_(random_) < -std::expm1(-length / l0_bytes_)) {
        ++dropped_;
        return;
      }
      if (length > 1) wait_s = std::exponential_distribution<double>(std::log(length) / delay_s_)(random_);
    }
    const auto wait = std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(wait_s));
    waiting_.push({now + wait, frames_, to, {frame, frame + size}});
  }
  void give(Clock::time_point now) {
    while (!waiting_.empty() && waiting_.top().due <= now) {
      const Waiting& next = waiting_.top();
      if (send(next.to, next.bytes.data(), next.bytes.size(), MSG_DONTWAIT) < 0) ++refused_;
      waiting_.pop();
    }
  }
  std::chrono::nanoseconds until_next(Clock::time_point now) const {
    if (waiting_.empty()) return kIdle;
    return std::clamp<std::chrono::nanoseconds>(waiting_.top().due - now, std::chrono::nanoseconds(0), kIdle);
  }
  void report() const {
    fmt::print("{{\"frames\":{},\"dropped\":{},\"refused\":{},\"inside\":{}}}\n", frames_, dropped_, refused_,
               waiting_.size());
  }

 private:
  const double l0_bytes_;
  const double delay_s_;
  std::mt19937_64 random_;
  std::uniform_real_distribution<double> unit_{0, 1};
  std::priority_queue<Waiting> waiting_;
  uint64_t frames_ = 0;
  uint64_t dropped_ = 0;
  uint64_t refused_ = 0;  // by the interface
};

// All that waits at one interface, at most a burst.
void receive(Channel& channel, int from, int to) {
  static std::array<std::array<uint8_t, kFrameBytesMax>, kBurst> room;
  std::array<iovec, kBurst> parts{};
  std::array<mmsghdr, kBurst> messages{};
  for (size_t i = 0; i < kBurst; ++i) {
    parts[i] = {room[i].data(), room[i].size()};
    messages[i].msg_hdr.msg_iov = &parts[i];
    messages[i].msg_hdr.msg_iovlen = 1;
  }
  const int count = recvmmsg(from, messages.data(), kBurst, MSG_DONTWAIT, nullptr);
  const Clock::time_point now = Clock::now();
  for (int i = 0; i < count; ++i) {
    const auto n = static_cast<size_t>(i);
    channel.take(room[n].data(), messages[n].msg_len, to, now);
  }
}

}  // namespace

int main(int count, char** words) {
  CLI::App app{"HIPSTER's channel between two network interfaces", "sluice-channel"};
  std::array<std::string, 2> names;
  double l0_bytes = 1024;
  double delay_ms = 1024;
  uint64_t seed = 1;
  app.add_option("--if-a", names[0], "Interface of one end")->required();
  app.add_option("--if-b", names[1], "Interface of the other")->required();
  app.add_option("--l0-bytes", l0_bytes, "Dropped with probability 1 - exp(-L / this)");
  app.add_option("--delay-ms", delay_ms, "Late by an exponential time of mean this / ln(L)");
  app.add_option("--seed", seed, "Of all chance");
  if (const auto parsed = sluice::arguments::parse_main(app, count, words); parsed.ended)
    return parsed.status;

  for (const int number : {SIGTERM, SIGINT}) std::signal(number, [](int) { stopping = 1; });
  const std::array<int, 2> ports{open_port(names[0]), open_port(names[1])};
  Channel channel(l0_bytes, delay_ms * 1e-3, seed);
  fmt::print(stderr, "sluice-channel: ready\n");
  while (stopping == 0) {
    const std::chrono::nanoseconds wait = channel.until_next(Clock::now());
    const timespec patience{0, static_cast<long>(wait.count())};
    std::array<pollfd, 2> polled{{{ports[0], POLLIN, 0}, {ports[1], POLLIN, 0}}};
    ppoll(polled.data(), polled.size(), &patience, nullptr);
    if ((polled[0].revents & POLLIN) != 0) receive(channel, ports[0], ports[1]);
    if ((polled[1].revents & POLLIN) != 0) receive(channel, ports[1], ports[0]);
    channel.give(Clock::now());
  }
  channel.report();
  for (const int port : ports) close(port);
  return 0;
}
