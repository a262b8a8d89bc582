// Hot. See sender.h.
// SPDX-License-Identifier: Apache-2.0
#include "dataplane/udp/sender.h"

#include <netinet/in.h>
#include <netinet/udp.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <utility>

#include "dataplane/base/check.h"

namespace sluice::udp {
namespace {

using board::Counter;

// What the kernel takes in one piece, less what any headers need.
constexpr size_t kPieceBytesMax = 65000;
constexpr uint32_t kPieceDatagramsMax = 64;
// So often a datagram is tried again after an error that was reported for an earlier one.
constexpr uint32_t kReportsInARow = 2;
constexpr uint64_t kPauseNs = 100'000'000;

bool no_room(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == ENOBUFS || error == EINTR;
}

// A device that computes no checksums, an IPsec policy, an older kernel.
bool takes_none_joined(int error) { return error == EIO || error == EINVAL || error == EOPNOTSUPP; }

// There is no use in sending the next one at once.
bool pauses(int error) {
  return error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN || error == EPERM ||
         error == EACCES || error == EADDRNOTAVAIL || error == ENODEV;
}

}  // namespace

Sender::Sender(board::CounterWriter counters)
    : counters_(counters),
      headers_(Memory::map(size_t{kDatagrams} * kHeaderBytesMax)),
      copies_(Memory::reserve(size_t{kDatagrams} * kCopyBytes)) {
  std::iota(places_.begin(), places_.end(), 0U);
}

net::TxDatagram Sender::begin(SocketPath& path, std::span<const uint8_t> payload, const net::Buffer* owner) {
  if (count_ == kDatagrams || (owner == nullptr && payload.size() > kCopyBytes)) return {};
  const uint32_t i = count_++;
  const bool copied = owner == nullptr;
  datagrams_[i] = {.path = &path, .copied = copied};
  uint8_t* const place = copied ? copy(i) : const_cast<uint8_t*>(payload.data());
  pieces_[2 * i] = {.iov_base = header(i), .iov_len = path.config().header_bytes};
  pieces_[2 * i + 1] = {.iov_base = place, .iov_len = payload.size()};
  return {.header = header(i), .payload = copied ? place : nullptr};
}

bool Sender::holds(const net::Buffer& buffer) const {
  for (uint32_t i = 0; i < count_; ++i) {
    const auto* const place = static_cast<const uint8_t*>(pieces_[2 * i + 1].iov_base);
    if (place >= buffer.data && place < buffer.data + buffer.bytes) return true;
  }
  return false;
}

void Sender::move(uint32_t from, uint32_t to) {
  if (from == to) return;
  datagrams_[to] = datagrams_[from];
  pieces_[2 * to] = {.iov_base = header(to), .iov_len = pieces_[2 * from].iov_len};
  pieces_[2 * to + 1] = pieces_[2 * from + 1];
  std::memcpy(header(to), header(from), pieces_[2 * to].iov_len);
  std::swap(places_[from], places_[to]);
}

void Sender::forget(const SocketPath& path) {
  uint32_t kept = 0;
  for (uint32_t i = 0; i < count_; ++i) {
    if (datagrams_[i].path != &path) move(i, kept++);
  }
  count_ = kept;
}

void Sender::flush(uint64_t now_ns) {
  if (count_ == 0) return;
  for (uint32_t i = 0; i < count_; ++i) datagrams_[i].path->full = false;
  uint32_t kept = 0;
  for (uint32_t first = 0; first < count_;) {
    SocketPath& path = *datagrams_[first].path;
    uint32_t end = first + 1;
    while (end < count_ && datagrams_[end].path == &path) ++end;
    const uint32_t gone = path.full ? 0 : send_run(path, first, end, now_ns);
    for (uint32_t i = first + gone; i < end; ++i) move(i, kept++);
    first = end;
  }
  count_ = kept;
  if (kept > 0) counters_.add(Counter::tx_partial_bursts);
}

// Returns how many are no more to be sent: taken by the kernel, or lost.
uint32_t Sender::send_run(SocketPath& path, uint32_t first, uint32_t end, uint64_t now_ns) {
  uint32_t at = first;
  uint32_t reports = 0;
  while (at < end) {
    const uint32_t messages = gather(path, at, end);
    const int taken = ::sendmmsg(path.socket.get(), calls_.data(), messages, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (taken > 0) {
      for (int i = 0; i < taken; ++i) at += messages_[static_cast<size_t>(i)].datagrams;
      reports = 0;
      continue;
    }
    const int error = errno;
    if (no_room(error)) {
      path.full = true;
      break;
    }
    if (messages_[0].datagrams > 1 && takes_none_joined(error)) {
      path.joins = false;
      continue;
    }
    if (reports++ < kReportsInARow) {
      counters_.add(Counter::socket_errors);
      continue;
    }
    refusal_.store(error, std::memory_order_relaxed);
    const uint32_t lost = pauses(error) ? end - at : 1;
    if (pauses(error)) path.pause_end_ns = now_ns + kPauseNs;
    counters_.add(Counter::tx_refused, lost);
    at += lost;
    reports = 0;
  }
  return at - first;
}

// Fills calls_: datagrams of one size become one message, of which the last may be shorter.
uint32_t Sender::gather(SocketPath& path, uint32_t first, uint32_t end) {
  const uint32_t most = path.joins ? kPieceDatagramsMax : 1;
  uint32_t messages = 0;
  for (uint32_t at = first; at < end && messages < kMessages; ++messages) {
    const size_t bytes = bytes_of(at);
    size_t sum = bytes;
    uint32_t next = at + 1;
    while (next < end && next - at < most && bytes_of(next) <= bytes &&
           sum + bytes_of(next) <= kPieceBytesMax) {
      sum += bytes_of(next++);
      if (bytes_of(next - 1) < bytes) break;
    }
    Message& message = messages_[messages];
    message.datagrams = next - at;
    msghdr& call = calls_[messages].msg_hdr;
    call = {};
    if (path.to.bytes != 0) {
      call.msg_name = &path.to.storage;
      call.msg_namelen = path.to.bytes;
    }
    call.msg_iov = &pieces_[2 * at];
    call.msg_iovlen = size_t{2} * message.datagrams;
    if (message.datagrams > 1) {
      call.msg_control = message.control.data();
      call.msg_controllen = message.control.size();
      cmsghdr* const item = CMSG_FIRSTHDR(&call);
      item->cmsg_level = SOL_UDP;
      item->cmsg_type = UDP_SEGMENT;
      item->cmsg_len = CMSG_LEN(sizeof(uint16_t));
      const auto segment = static_cast<uint16_t>(bytes);
      std::memcpy(CMSG_DATA(item), &segment, sizeof segment);
    }
    at = next;
  }
  return messages;
}

}  // namespace sluice::udp
