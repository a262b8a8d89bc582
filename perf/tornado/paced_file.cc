// SPDX-License-Identifier: Apache-2.0
#include "perf/tornado/paced_file.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <filesystem>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/base/unique_fd.h"
#include "perf/tornado/coded_file.h"

namespace sluice::tornado {
namespace {

constexpr uint32_t kSymbolBytes = 1400;
constexpr uint64_t kOnTheLink =
    kSymbolBytes + 72 + 28 + 14 + 24;  // with the headers of Sluice, and Ethernet's
constexpr uint64_t kPartBytes = 1ULL << 20;
constexpr uint32_t kRepairSent = 4;  // of each block that is decoded although it is intact
constexpr uint32_t kBatch = 16;
constexpr int kSocketBytes = 8 << 20;  // nothing is lost while a decoder holds its receiver up
constexpr int kSilenceS = 20;          // a receiver that hears nothing for so long gives up

struct Datagram {
  uint32_t block = 0;
  uint32_t symbol = 0;  // of the block; from its count on, repair symbols
  std::array<uint8_t, kSymbolBytes> bytes;
};

uint64_t clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}
void sleep_until(uint64_t due_ns) {
  const timespec t{static_cast<time_t>(due_ns / 1'000'000'000), static_cast<int64_t>(due_ns % 1'000'000'000)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) continue;
}

Division division_for(Mistake mistakes) {
  return {.symbol_bytes = kSymbolBytes, .part_bytes = mistakes >= Mistake::kOneEncoder ? 0 : kPartBytes};
}

// Messages that each have one datagram.
template <size_t kCount>
struct Messages {
  Messages() {
    for (size_t i = 0; i < kCount; ++i) {
      parts[i] = {.iov_base = &datagrams[i], .iov_len = sizeof(Datagram)};
      headers[i] = {};
      headers[i].msg_hdr.msg_iov = &parts[i];
      headers[i].msg_hdr.msg_iovlen = 1;
    }
  }
  std::array<Datagram, kCount> datagrams;
  std::array<iovec, kCount> parts;
  std::array<mmsghdr, kCount> headers;
};

class SendingEnd {
 public:
  SendingEnd(int socket, const std::string& path, const Sending& sending)
      : socket_(socket), path_(path), sending_(sending) {}

  void run() {
    read_source();
    CodedFile coded(file_, division_for(sending_.mistakes));
    std::vector<std::vector<uint8_t>> repair(coded.blocks().size());
    if (sending_.mistakes >= Mistake::kEncodesFirst) {
      coded.plan();
      for (size_t i = 0; i < repair.size(); ++i) coded.encode(coded.blocks()[i], &repair[i]);
    }
    due_ns_ = clock_ns(CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < repair.size(); ++i) send_block(i, coded.blocks()[i], repair[i]);
    flush();
  }

 private:
  void read_source() {
    file_.resize(sending_.bytes);
    const UniqueFd fd(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
    for (size_t at = 0; at < file_.size();) {
      const ssize_t got = pread(fd.get(), file_.data() + at, file_.size() - at, static_cast<off_t>(at));
      if (got <= 0) return;
      at += static_cast<size_t>(got);
    }
  }
  void send_block(uint32_t number, const Block& block, const std::vector<uint8_t>& repair) {
    for (uint32_t i = 0; i < block.count; ++i) {
      const size_t at = size_t{block.first + i} * kSymbolBytes;
      add(number, i, {file_.data() + at, std::min<size_t>(kSymbolBytes, file_.size() - at)});
    }
    if (sending_.mistakes < Mistake::kDecodesIntact) return;
    for (uint32_t i = 0; i < kRepairSent; ++i)
      add(number, block.count + i, {repair.data() + size_t{i} * kSymbolBytes, kSymbolBytes});
  }
  void add(uint32_t block, uint32_t symbol, std::span<const uint8_t> bytes) {
    Datagram& datagram = messages_.datagrams[count_++];
    datagram.block = block;
    datagram.symbol = symbol;
    std::copy(bytes.begin(), bytes.end(), datagram.bytes.begin());
    if (count_ == (sending_.mistakes >= Mistake::kOneCallPerSymbol ? 1 : kBatch)) flush();
  }
  // They leave when the link has carried the last of them.
  void flush() {
    due_ns_ += count_ * kOnTheLink * 8 * 1'000'000'000 / sending_.rate_bps;
    sleep_until(due_ns_);
    for (uint32_t sent = 0; sent < count_;) {
      const int now = sendmmsg(socket_, &messages_.headers[sent], count_ - sent, 0);
      if (now < 0) break;
      sent += static_cast<uint32_t>(now);
    }
    count_ = 0;
  }

  const int socket_;
  const std::string path_;
  const Sending sending_;
  std::vector<uint8_t> file_;
  Messages<kBatch> messages_;
  uint32_t count_ = 0;
  uint64_t due_ns_ = 0;
};

class ReceivingEnd {
 public:
  ReceivingEnd(int socket, const std::string& path, const Sending& sending)
      : socket_(socket),
        sending_(sending),
        fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)),
        file_(sending.bytes),
        coded_(file_, division_for(sending.mistakes)),
        missing_(coded_.blocks().size()),
        repair_(coded_.blocks().size()) {
    for (size_t i = 0; i < missing_.size(); ++i)
      missing_[i] = coded_.blocks()[i].count + (decodes() ? kRepairSent : 0);
  }

  // True: all of it is here.
  bool run() {
    if (decodes()) coded_.plan();
    std::thread decoder;
    if (decodes() && sending_.mistakes < Mistake::kOneThread)
      decoder = std::thread([this] { decode_queued(); });
    const bool all = receive();
    if (decoder.joinable()) {
      {
        const std::lock_guard lock(mutex_);
        ended_ = true;
      }
      queued_.notify_all();
      decoder.join();
    }
    if (sending_.mistakes >= Mistake::kWholeFileBuffer) write(0, file_.size());
    return all && !failed_;
  }

 private:
  bool decodes() const { return sending_.mistakes >= Mistake::kDecodesIntact; }

  bool receive() {
    const timeval silence{.tv_sec = kSilenceS, .tv_usec = 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &silence, sizeof silence);
    size_t open_blocks = missing_.size();
    while (open_blocks > 0) {
      const unsigned most = sending_.mistakes >= Mistake::kOneCallPerSymbol ? 1 : kBatch;
      const int got = recvmmsg(socket_, messages_.headers.data(), most, MSG_WAITFORONE, nullptr);
      if (got <= 0) return false;
      for (int i = 0; i < got; ++i) open_blocks -= take(messages_.datagrams[static_cast<size_t>(i)]) ? 1 : 0;
    }
    return true;
  }
  // True: its block has all its symbols.
  bool take(const Datagram& datagram) {
    const Block& block = coded_.blocks()[datagram.block];
    if (datagram.symbol < block.count) {
      const size_t at = size_t{block.first + datagram.symbol} * kSymbolBytes;
      std::copy_n(datagram.bytes.begin(), std::min<size_t>(kSymbolBytes, file_.size() - at),
                  file_.begin() + static_cast<int64_t>(at));
    } else {
      auto& repair = repair_[datagram.block];
      repair.insert(repair.end(), datagram.bytes.begin(), datagram.bytes.end());
    }
    if (--missing_[datagram.block] > 0) return false;
    if (!decodes()) {
      end_block(datagram.block);
    } else if (sending_.mistakes >= Mistake::kOneThread) {
      decode(datagram.block);
    } else {
      const std::lock_guard lock(mutex_);
      queue_.push_back(datagram.block);
      queued_.notify_all();
    }
    return true;
  }
  void decode_queued() {
    std::unique_lock lock(mutex_);
    while (true) {
      queued_.wait(lock, [this] { return ended_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const uint32_t block = queue_.front();
      queue_.pop_front();
      lock.unlock();
      decode(block);
      lock.lock();
    }
  }
  // As if it lacked a symbol: a decoder that is given all of them returns at once.
  void decode(uint32_t number) {
    constexpr std::array<uint32_t, 1> kMissing = {0};
    if (!coded_.decode(coded_.blocks()[number], kMissing, repair_[number])) failed_ = true;
    end_block(number);
  }
  void end_block(uint32_t number) {
    if (sending_.mistakes >= Mistake::kWholeFileBuffer) return;
    const Block& block = coded_.blocks()[number];
    const size_t at = size_t{block.first} * kSymbolBytes;
    write(at, std::min<size_t>(size_t{block.count} * kSymbolBytes, file_.size() - at));
  }
  void write(size_t at, size_t bytes) {
    for (const size_t end = at + bytes; at < end;) {
      const ssize_t put = pwrite(fd_.get(), file_.data() + at, end - at, static_cast<off_t>(at));
      if (put <= 0) {
        failed_ = true;
        return;
      }
      at += static_cast<size_t>(put);
    }
  }

  const int socket_;
  const Sending sending_;
  UniqueFd fd_;
  std::vector<uint8_t> file_;
  CodedFile coded_;
  std::vector<uint32_t> missing_;  // symbols of each block
  std::vector<std::vector<uint8_t>> repair_;
  Messages<kBatch> messages_;
  std::mutex mutex_;
  std::condition_variable queued_;
  std::deque<uint32_t> queue_;
  bool ended_ = false;
  std::atomic<bool> failed_ = false;
};

struct Sockets {
  UniqueFd from, to;
};
bool open_sockets(Sockets* sockets) {
  sockets->from = UniqueFd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockets->to = UniqueFd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  here.sin_family = AF_INET;
  here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof here;
  auto* const address = reinterpret_cast<sockaddr*>(&here);
  if (setsockopt(sockets->to.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kSocketBytes, sizeof kSocketBytes) != 0)
    setsockopt(sockets->to.get(), SOL_SOCKET, SO_RCVBUF, &kSocketBytes, sizeof kSocketBytes);
  return bind(sockets->to.get(), address, length) == 0 &&
         getsockname(sockets->to.get(), address, &length) == 0 &&
         connect(sockets->from.get(), address, length) == 0;
}

bool write_source(const std::string& path, uint64_t bytes) {
  std::mt19937_64 random(bytes);
  std::vector<uint8_t> file(bytes);
  for (uint8_t& byte : file) byte = static_cast<uint8_t>(random());
  const UniqueFd fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  return fd.get() >= 0 && ::write(fd.get(), file.data(), file.size()) == static_cast<ssize_t>(file.size());
}

bool same_bytes(const std::string& a, const std::string& b) {
  const auto read_all = [](const std::string& path) {
    std::string bytes(std::filesystem::file_size(path), 0);
    const UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
    return pread(fd.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size())
               ? bytes
               : std::string();
  };
  const std::string first = read_all(a);
  return !first.empty() && first == read_all(b);
}

int fail(const std::string& what) {
  fmt::print(stderr, "sluice-tornado: {}\n", what);
  return 1;
}

}  // namespace

int ask_time(const Sending& sending) {
  const std::string source = fmt::format("{}/tornado-{}.source", sending.folder, getpid());
  const std::string target = fmt::format("{}/tornado-{}.target", sending.folder, getpid());
  Sockets sockets;
  if (!open_sockets(&sockets)) return fail(fmt::format("sockets on loopback: {}", std::strerror(errno)));
  if (!write_source(source, sending.bytes))
    return fail(fmt::format("{}: {}; name another --folder", source, std::strerror(errno)));
  ReceivingEnd to(sockets.to.get(), target, sending);
  SendingEnd from(sockets.from.get(), source, sending);
  const uint64_t began_ns = clock_ns(CLOCK_MONOTONIC);
  const uint64_t cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  std::thread sender([&from] { from.run(); });
  const bool arrived = to.run();
  const uint64_t ended_ns = clock_ns(CLOCK_MONOTONIC);
  const uint64_t cpu_end_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  sender.join();
  const bool same = arrived && same_bytes(source, target);
  std::filesystem::remove(source);
  std::filesystem::remove(target);
  if (!same) return fail(arrived ? "what arrived differs from the source" : "not all of it arrived");
  fmt::print("{{\"mistakes\": {}, \"seconds\": {:.6f}, \"cpu_s\": {:.6f}}}\n",
             static_cast<uint32_t>(sending.mistakes), static_cast<double>(ended_ns - began_ns) * 1e-9,
             static_cast<double>(cpu_end_ns - cpu_ns) * 1e-9);
  return 0;
}

}  // namespace sluice::tornado
