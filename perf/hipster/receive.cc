// HIPSTER's receiver: acknowledges each packet, puts them in order when the sender has ended.
// SPDX-License-Identifier: Apache-2.0
#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <fstream>

#include "perf/hipster/hipster.h"

namespace sluice::hipster {
namespace {

using Clock = std::chrono::steady_clock;
constexpr double kSampleS = 0.5;

class Receiver {
 public:
  Receiver(int fd, const Options& options)
      : fd_(fd),
        options_(options),
        file_(options.size_bytes),
        have_((options.size_bytes + kPayloadBytes - 1) / kPayloadBytes) {}

  // Ends by SIGTERM, since the acknowledgement of the end may be lost.
  [[noreturn]] void run() {
    std::array<uint8_t, kPacketBytes> room{};
    for (;;) {
      sockaddr_in from{};
      socklen_t from_bytes = sizeof from;
      const ssize_t size =
          recvfrom(fd_, room.data(), room.size(), 0, reinterpret_cast<sockaddr*>(&from), &from_bytes);
      if (size < static_cast<ssize_t>(kHeaderBytes)) continue;
      Header header = Header::read(room.data());
      if (header.code == Code::kData) {
        store(header.sequence, room.data() + kHeaderBytes, static_cast<size_t>(size) - kHeaderBytes);
        header.code = Code::kAck;
      } else if (header.code != Code::kEnd) {
        continue;
      }
      const bool ends = header.code == Code::kEnd && !written_;
      if (ends) hold_sigterm(true);  // it comes as soon as the sender has this answer
      std::array<uint8_t, kHeaderBytes> answer{};
      header.write(answer.data());
      sendto(fd_, answer.data(), answer.size(), 0, reinterpret_cast<const sockaddr*>(&from), from_bytes);
      if (!ends) continue;
      finish();
      hold_sigterm(false);
    }
  }

 private:
  static void hold_sigterm(bool hold) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, nullptr);
  }
  void store(uint32_t number, const uint8_t* bytes, size_t size) {
    if (number >= have_.size() || have_[number]) return;
    const size_t offset = size_t{number} * kPayloadBytes;
    if (offset + size > file_.size()) return;
    have_[number] = true;
    std::copy_n(bytes, size, file_.data() + offset);
    const Clock::time_point now = Clock::now();
    if (samples_.empty()) began_ = now;
    const auto slot = static_cast<size_t>(std::chrono::duration<double>(now - began_).count() / kSampleS);
    if (samples_.size() <= slot) samples_.resize(slot + 1);
    samples_[slot] += size;
  }

  void finish() {
    std::ofstream(options_.file, std::ios::binary)
        .write(reinterpret_cast<const char*>(file_.data()), static_cast<std::streamsize>(file_.size()));
    written_ = true;
    fmt::print("{{\"useful_bytes\":[{}]}}\n", fmt::join(samples_, ","));
    std::fflush(stdout);
  }

  const int fd_;
  const Options options_;
  std::vector<uint8_t> file_;
  std::vector<bool> have_;
  std::vector<uint64_t> samples_;  // new bytes in each half second
  Clock::time_point began_;
  bool written_ = false;
};

}  // namespace

int receive_file(const Options& options) {
  const int fd = make_socket();
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_port = htons(options.port);
  if (inet_pton(AF_INET, options.address.c_str(), &here.sin_addr) != 1) fail(options.address);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0) fail(options.address);
  Receiver(fd, options).run();
}

}  // namespace sluice::hipster
