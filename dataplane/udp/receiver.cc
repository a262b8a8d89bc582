// Hot. See receiver.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/udp/receiver.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "dataplane/base/check.h"
#include "dataplane/net/frame.h"
#include "dataplane/udp/socket.h"

namespace sluice::udp {
namespace {

using board::Counter;

// Joined datagrams are taken a few pieces at a time: what is read next is then still in the cache.
constexpr uint32_t kJoinedAtOnce = 4;
// A socket whose network reports errors gives them one by one, before its datagrams.
constexpr uint32_t kReportsAtOnce = 16;

uint32_t headers_of(const SocketPath& path) {
  const bool ip4 = path.config().local.address.is_ip4();
  return static_cast<uint32_t>(net::kEthernetBytes + (ip4 ? net::kIp4Bytes : net::kIp6Bytes) +
                               net::kUdpBytes);
}

}  // namespace

Receiver::Receiver(board::CounterWriter counters)
    : counters_(counters),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      rooms_(Memory::map(size_t{kMessages} * kStrideBytes)) {
  for (uint32_t i = 0; rooms_ && i < kMessages; ++i) {
    pieces_[i] = {.iov_base = room(i), .iov_len = kRoomBytes};
  }
}

int Receiver::watch(SocketPath& path) {
  if (!epoll_ || !rooms_) return ENOMEM;
  if (watched_ == board::kFlowsMax) return ENOBUFS;
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &path;
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, path.socket.get(), &event) != 0) return errno;
  ++watched_;
  return 0;
}

void Receiver::forget(SocketPath& path) {
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, path.socket.get(), nullptr) == 0) --watched_;
  auto* const end = std::remove(ready_.data(), ready_.data() + ready_count_, &path);
  ready_count_ = static_cast<uint32_t>(end - ready_.data());
  if (reading_ != &path) return;
  reading_ = nullptr;
  message_ = message_count_ = at_ = 0;
}

void Receiver::sleep(uint64_t ns) {
  const timespec t{static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  const int found =
      ::epoll_pwait2(epoll_.get(), events_.data(), static_cast<int>(events_.size()), &t, nullptr);
  if (found < 0 && errno != EINTR) ::nanosleep(&t, nullptr);
  for (int i = 0; i < found; ++i) {
    auto* const path = static_cast<SocketPath*>(events_[static_cast<size_t>(i)].data.ptr);
    if (std::find(ready_.data(), ready_.data() + ready_count_, path) == ready_.data() + ready_count_) {
      ready_[ready_count_++] = path;
    }
  }
}

bool Receiver::find_ready() {
  if (ready_count_ > 0) return true;
  if (watched_ == 0) return false;
  const int found = ::epoll_wait(epoll_.get(), events_.data(), static_cast<int>(events_.size()), 0);
  for (int i = 0; i < found; ++i) {
    ready_[ready_count_++] = static_cast<SocketPath*>(events_[static_cast<size_t>(i)].data.ptr);
  }
  return ready_count_ > 0;
}

// Takes what the next socket has. False: nothing is there.
bool Receiver::refill() {
  message_ = message_count_ = at_ = 0;
  while (find_ready()) {
    SocketPath& path = *ready_[0];
    const uint32_t wanted = wanted_;
    const uint32_t taken = take(path);
    // One that gave all that was asked for may have more, and goes to the end of the row.
    std::copy(ready_.data() + 1, ready_.data() + ready_count_, ready_.data());
    if (taken == wanted) {
      ready_[ready_count_ - 1] = &path;
    } else {
      --ready_count_;
    }
    if (taken == 0) continue;
    reading_ = &path;
    message_count_ = taken;
    return true;
  }
  return false;
}

uint32_t Receiver::take(SocketPath& path) {
  for (uint32_t reports = 0; reports < kReportsAtOnce; ++reports) {
    for (uint32_t i = 0; i < wanted_; ++i) {
      msghdr& call = calls_[i].msg_hdr;
      call = {};
      call.msg_name = &sources_[i];
      call.msg_namelen = sizeof sources_[i];
      call.msg_iov = &pieces_[i];
      call.msg_iovlen = 1;
      call.msg_control = controls_[i].bytes.data();
      call.msg_controllen = controls_[i].bytes.size();
    }
    const int taken = ::recvmmsg(path.socket.get(), calls_.data(), wanted_, MSG_DONTWAIT, nullptr);
    if (taken < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return 0;
    if (taken <= 0) {
      counters_.add(Counter::socket_errors);
      continue;
    }
    const auto count = static_cast<uint32_t>(taken);
    pieces_taken_ += count;
    bool joined = false;
    for (uint32_t i = 0; i < count; ++i) joined |= inspect(i, path);
    wanted_ = joined ? kJoinedAtOnce : kMessages;
    return count;
  }
  return 0;
}

// What the kernel says of a piece. True: it holds several datagrams.
bool Receiver::inspect(uint32_t i, const SocketPath& path) {
  msghdr& call = calls_[i].msg_hdr;
  Message& message = messages_[i];
  message = {.bytes = calls_[i].msg_len, .datagram_bytes = calls_[i].msg_len};
  bool fragments = false;
  for (cmsghdr* item = CMSG_FIRSTHDR(&call); item != nullptr; item = CMSG_NXTHDR(&call, item)) {
    if (item->cmsg_level == SOL_UDP && item->cmsg_type == UDP_GRO) {
      int bytes = 0;
      std::memcpy(&bytes, CMSG_DATA(item), sizeof bytes);
      if (bytes > 0) message.datagram_bytes = std::min(message.bytes, static_cast<uint32_t>(bytes));
    } else {
      fragments = true;  // the size of the largest of them
    }
  }
  const bool cut = (call.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  if (message.bytes > 0 && !fragments && !cut) return message.datagram_bytes < message.bytes;
  counters_.add(Counter::rx_frames);
  counters_.add(Counter::rx_bytes, headers_of(path) + message.bytes);
  counters_.add(fragments ? Counter::rx_drop_fragment
                : cut     ? Counter::rx_drop_malformed_ip
                          : Counter::rx_drop_too_short);
  message.bytes = 0;
  return false;
}

uint32_t Receiver::receive(std::span<net::RxDatagram, net::kBurst> datagrams) {
  DCHECK(handed_ == 0, "a burst is released before the next one is taken");
  if (message_ == message_count_ && !refill()) return 0;
  const uint32_t headers = headers_of(*reading_);
  uint32_t count = 0;
  while (message_ < message_count_ && count < net::kBurst) {
    const Message& message = messages_[message_];
    if (at_ >= message.bytes) {
      ++message_;
      at_ = 0;
      continue;
    }
    const uint32_t bytes = std::min(message.datagram_bytes, message.bytes - at_);
    datagrams[count++] = {.source = endpoint_of(sources_[message_]),
                          .destination = reading_->config().local,
                          .payload = {room(message_) + at_, bytes},
                          .frame_bytes = headers + bytes};
    at_ += bytes;
    handed_bytes_ += headers + bytes;
  }
  handed_ = count;
  return count;
}

void Receiver::release() {
  counters_.add(Counter::rx_frames, handed_);
  counters_.add(Counter::rx_bytes, handed_bytes_);
  datagrams_taken_ += handed_;
  handed_ = handed_bytes_ = 0;
}

uint64_t Receiver::datagrams_in(uint64_t pieces) {
  const uint64_t taken = std::exchange(pieces_taken_, 0), held = std::exchange(datagrams_taken_, 0);
  return taken == 0 ? pieces : std::max(pieces, pieces * held / taken);
}

}  // namespace sluice::udp
