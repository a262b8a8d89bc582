// HIPSTER's sender: a thread that sends, another that listens to acknowledgements.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <memory>
#include <thread>

#include "perf/hipster/hipster.h"

namespace sluice::hipster {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kEndTimer{2500};
constexpr int kPollMs = 50;

class Sender {
 public:
  Sender(int fd, std::vector<uint8_t> file, const Options& options)
      : fd_(fd),
        file_(std::move(file)),
        options_(options),
        packets_(static_cast<uint32_t>((file_.size() + kPayloadBytes - 1) / kPayloadBytes)),
        acknowledged_(std::make_unique<std::atomic<bool>[]>(packets_)) {}

  int run() {
    const Clock::time_point began = Clock::now();
    std::thread listener([this] { listen(); });
    send_all();
    end();
    const double seconds = std::chrono::duration<double>(Clock::now() - began).count();
    stop_.store(true);
    listener.join();
    fmt::print("{{\"seconds\":{},\"bytes\":{},\"packets\":{},\"sent\":{}}}\n", seconds, file_.size(),
               packets_, sent_);
    return 0;
  }

 private:
  void listen() {
    std::array<uint8_t, kPacketBytes> room{};
    while (!stop_.load()) {
      pollfd polled{fd_, POLLIN, 0};
      if (poll(&polled, 1, kPollMs) <= 0) continue;
      while (recv(fd_, room.data(), room.size(), MSG_DONTWAIT) >= static_cast<ssize_t>(kHeaderBytes)) {
        const Header header = Header::read(room.data());
        if (header.code == Code::kEnd) ended_.store(true);
        if (header.code == Code::kAck && header.sequence < packets_) {
          acknowledged_[header.sequence].store(true, std::memory_order_relaxed);
          acks_.fetch_add(1, std::memory_order_release);
        }
      }
    }
  }

  // Every packet of the list in turn, until none is left. While the window is open they go at once, then one
  // for each acknowledgement, and one whenever none came for too long.
  void send_all() {
    std::vector<uint32_t> list(packets_);
    for (uint32_t i = 0; i < packets_; ++i) list[i] = i;
    uint64_t in_flight = 0;
    uint64_t acks_seen = 0;
    uint64_t allowed = 0;
    const auto block =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(options_.block_us * 1e-6));
    Clock::time_point last = Clock::now();
    while (!list.empty()) {
      for (const uint32_t number : list) {
        if (acknowledged_[number].load(std::memory_order_relaxed)) continue;
        while (in_flight >= options_.window && allowed == 0) {
          const uint64_t acks = acks_.load(std::memory_order_acquire);
          const uint64_t more = acks - acks_seen;
          acks_seen = acks;
          allowed += more;
          in_flight -= std::min(in_flight, more);
          if (more == 0 && Clock::now() - last > block) break;
        }
        if (allowed > 0) --allowed;
        send_data(number);
        ++in_flight;
        last = Clock::now();
      }
      std::erase_if(list, [this](uint32_t number) { return acknowledged_[number].load(); });
    }
  }

  void send_data(uint32_t number) {
    std::array<uint8_t, kPacketBytes> packet{};
    Header{Code::kData, number}.write(packet.data());
    const size_t offset = size_t{number} * kPayloadBytes;
    const size_t size = std::min(kPayloadBytes, file_.size() - offset);
    std::copy_n(file_.data() + offset, size, packet.data() + kHeaderBytes);
    ++sent_;
    while (send(fd_, packet.data(), kHeaderBytes + size, 0) < 0 && errno == ENOBUFS)
      std::this_thread::yield();
  }

  void end() {
    std::array<uint8_t, kHeaderBytes> packet{};
    Header{Code::kEnd, packets_}.write(packet.data());
    while (!ended_.load()) {
      send(fd_, packet.data(), packet.size(), 0);
      const Clock::time_point until = Clock::now() + kEndTimer;
      while (!ended_.load() && Clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  const int fd_;
  const std::vector<uint8_t> file_;
  const Options options_;
  const uint32_t packets_;
  std::unique_ptr<std::atomic<bool>[]> acknowledged_;
  std::atomic<uint64_t> acks_{0};
  std::atomic<bool> ended_{false};
  std::atomic<bool> stop_{false};
  uint64_t sent_ = 0;
};

}  // namespace

int send_file(const Options& options) {
  std::ifstream in(options.file, std::ios::binary);
  if (!in) fail(options.file);
  std::vector<uint8_t> file{std::istreambuf_iterator<char>(in), {}};
  const int fd = make_socket();
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(options.port);
  if (inet_pton(AF_INET, options.address.c_str(), &to.sin_addr) != 1) fail(options.address);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0) fail(options.address);
  const int status = Sender(fd, std::move(file), options).run();
  close(fd);
  return status;
}

}  // namespace sluice::hipster
